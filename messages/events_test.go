package messages

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestEveryEventIsInTheTable(t *testing.T) {
	var listed []string
	for _, ev := range Events() {
		listed = append(listed, reflect.TypeOf(ev).Name())
	}
	slices.Sort(listed)
	types := slices.DeleteFunc(withMethod(t, "EventType"), func(name string) bool { return name == "EncryptedEvent" })
	if !slices.Equal(types, listed) {
		t.Errorf("eventTable lists %v, the package has %v", listed, types)
	}
	if len(eventsByType) != len(eventTable) {
		t.Error("two entries have the same type")
	}
}

// designed are the events that the design lists.
const designed = `agent.created agent.configured agent.activated agent.cleared agent.deleted
input.accepted input.requeued input.cancelled input.dropped command.noop
turn.started turn.paused turn.resumed turn.completed turn.failed turn.aborted
model.requested model.completed model.failed model.restarted model.switched
tool.requested tool.started tool.completed tool.failed tool.denied tool.skipped tool.flagged tool.unknown
approval.requested approval.granted approval.denied child.spawned child.completed child.failed child.aborted
state.patched history.compacted hook.decided budget.reserved budget.settled budget.exhausted budget.raised
timer.set timer.fired timer.cancelled`

func TestOtherEventsSayWhyTheyExist(t *testing.T) {
	for _, e := range eventTable {
		name := e.zero.EventType()
		if known := slices.Contains(strings.Fields(designed), name); known == (e.why != "") {
			t.Errorf("%s: listed by the design: %v, why it exists: %q", name, known, e.why)
		}
	}
}

func TestTraits(t *testing.T) {
	for trait, want := range map[Trait]string{
		BeginsTurn:      "turn.started",
		EndsTurn:        "turn.completed turn.failed turn.aborted",
		HoldsTurn:       "turn.paused turn.resumed",
		JoinsTurn:       "input.accepted turn.started",
		LeavesTurn:      "input.requeued",
		EndsInput:       "input.cancelled input.dropped turn.completed turn.failed turn.aborted",
		EndsTool:        "tool.completed tool.failed tool.denied tool.skipped tool.unknown",
		BeginsModelCall: "model.requested compaction.requested",
		EndsModelCall:   "model.completed model.failed model.restarted compaction.failed history.compacted",
		Failed:          "turn.failed model.failed tool.failed compaction.failed",
		Lost:            "model.restarted tool.unknown",
		Summarizes:      "compaction.requested compaction.failed history.compacted",
		Replied:         "input.accepted input.cancelled input.dropped turn.completed turn.failed turn.aborted approval.requested",
		EndsAgent:       "agent.deleted",
		Public:          "agent.activated agent.deleted", // stored as they are where all others are encrypted
	} {
		if got := EventTypes(trait); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%b: %v, want %s", trait, got, want)
		}
	}
	if Is("agent.unheard", ^Trait(0)) || Is("turn.started", EndsTurn|EndsInput) || !Is("turn.failed", EndsTurn|BeginsTurn) {
		t.Error("a type has the traits of another")
	}
}

// What an event's fields hold is found whatever its type.
func TestFieldsOfEvents(t *testing.T) {
	for name, ev := range samples() {
		v := reflect.ValueOf(ev)
		same := func(field string, got any) {
			t.Helper()
			want := reflect.Zero(reflect.TypeOf(got))
			if f, ok := v.Type().FieldByName(field); ok && len(f.Index) == 1 && f.Type == want.Type() {
				want = v.FieldByIndex(f.Index)
			}
			if !reflect.DeepEqual(got, want.Interface()) {
				t.Errorf("%s: %s is %v, want %v", name, field, got, want)
			}
		}
		same("Turn", TurnOf(ev))
		same("Step", StepOf(ev))
		same("Call", CallOf(ev))
		same("Model", ModelOf(ev))
		same("Kind", KindOf(ev))
		if _, one := v.Type().FieldByName("Input"); !one {
			same("Inputs", InputsOf(ev))
		}
	}
	if got := InputsOf(InputDropped{Input: "u1"}); !slices.Equal(got, []string{"u1"}) {
		t.Errorf("an input alone is %v", got)
	}
	if TurnOf(alien{}) != "" || TurnOf(EncryptedEvent{Type: "turn.started"}) != "" {
		t.Error("an event that is not in the table, or is encrypted, names a turn")
	}
}

// blobsIn counts the blobs below v.
func blobsIn(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n = blobsIn(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += blobsIn(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Blob]() {
			return 1
		}
		for i := range v.NumField() {
			n += blobsIn(v.Field(i))
		}
	}
	return n
}

// Every blob that an event can name is found.
func TestBlobsOfEveryEvent(t *testing.T) {
	for name, ev := range samples() {
		v := reflect.New(reflect.TypeOf(ev)).Elem()
		v.Set(reflect.ValueOf(ev))
		withBlobs(v)
		ev := v.Interface().(Event)
		if got, want := len(BlobsOf(ev)), blobsIn(v); got != want {
			t.Errorf("%s names %d blobs, and has %d", name, got, want)
		}
		if left := blobsIn(reflect.ValueOf(WithoutBlobs(ev))); left != 0 {
			t.Errorf("%s still names %d blobs without them", name, left)
		}
	}
}

// withBlobs gives each part of a content below v a blob: fill leaves them out.
func withBlobs(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			withBlobs(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			withBlobs(v.Index(i))
		}
	case reflect.Struct:
		if p, ok := v.Addr().Interface().(*Part); ok {
			p.Blob = &Blob{SHA256: "x"}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				withBlobs(v.Field(i))
			}
		}
	}
}
