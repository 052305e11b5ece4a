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
		t.Errorf("eventTable: got %v, want %v", listed, types)
	}
	if len(eventsByType) != len(eventTable) {
		t.Errorf("types of eventTable: got %d, want %d different ones", len(eventsByType), len(eventTable))
	}
}

// designed lists the events of the design.
const designed = `agent.created agent.configured agent.activated agent.cleared agent.forked agent.deleted
input.accepted input.requeued input.cancelled input.dropped command.noop
turn.started turn.paused turn.resumed turn.completed turn.failed turn.aborted
model.requested model.completed model.failed model.restarted model.switched
tool.requested tool.started tool.completed tool.failed tool.denied tool.skipped tool.flagged tool.unknown
approval.requested approval.granted approval.denied child.spawned child.completed child.failed child.aborted
state.patched history.compacted hook.decided budget.reserved budget.settled budget.exhausted budget.raised
timer.set timer.fired timer.cancelled`

// Each event that the design does not list has a reason in the table.
func TestOtherEventsHaveReasons(t *testing.T) {
	for _, e := range eventTable {
		name := e.zero.EventType()
		if known := slices.Contains(strings.Fields(designed), name); known == (e.why != "") {
			t.Errorf("%s: got reason %q, listed by the design: %t", name, e.why, known)
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
		BeginsFork:      "agent.forked agent.imported",
		Public:          "agent.activated agent.deleted", // not encrypted
	} {
		if got := EventTypes(trait); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("types with trait %b: got %v, want %s", trait, got, want)
		}
	}
	if Is("agent.unheard", ^Trait(0)) || Is("turn.started", EndsTurn|EndsInput) || !Is("turn.failed", EndsTurn|BeginsTurn) {
		t.Error("Is: got wrong traits for an unknown type, turn.started or turn.failed")
	}
}

// TurnOf, StepOf, CallOf, ModelOf, KindOf, DispositionOf and InputsOf return the fields of any event.
func TestFieldsOfEvents(t *testing.T) {
	for name, ev := range samples() {
		v := reflect.ValueOf(ev)
		same := func(field string, got any) {
			t.Helper()
			want := reflect.Zero(reflect.TypeOf(got))
			if f, ok := v.Type().FieldByName(field); ok && len(f.Index) == 1 && f.Type.Kind() == want.Kind() {
				want = v.FieldByIndex(f.Index).Convert(want.Type())
			}
			if !reflect.DeepEqual(got, want.Interface()) {
				t.Errorf("%s: %s: got %v, want %v", name, field, got, want)
			}
		}
		same("Turn", TurnOf(ev))
		same("Step", StepOf(ev))
		same("Call", CallOf(ev))
		same("Model", ModelOf(ev))
		same("Kind", KindOf(ev))
		same("Disposition", DispositionOf(ev))
		if _, one := v.Type().FieldByName("Input"); !one {
			same("Inputs", InputsOf(ev))
		}
	}
	if got := InputsOf(InputDropped{Input: "u1"}); !slices.Equal(got, []string{"u1"}) {
		t.Errorf("inputs of input.dropped: got %v, want u1", got)
	}
	if TurnOf(unknownEvent{}) != "" || TurnOf(EncryptedEvent{Type: "turn.started"}) != "" {
		t.Error("turn of an unknown or encrypted event: got one, want none")
	}
}

// blobsIn returns the number of blobs in v.
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

// BlobsOf returns, and WithoutBlobs removes, every blob that an event names.
func TestBlobsOfEveryEvent(t *testing.T) {
	for name, ev := range samples() {
		v := reflect.New(reflect.TypeOf(ev)).Elem()
		v.Set(reflect.ValueOf(ev))
		withBlobs(v)
		ev := v.Interface().(Event)
		if got, want := len(BlobsOf(ev)), blobsIn(v); got != want {
			t.Errorf("%s: BlobsOf: got %d blobs, want %d", name, got, want)
		}
		if left := blobsIn(reflect.ValueOf(WithoutBlobs(ev))); left != 0 {
			t.Errorf("%s: WithoutBlobs: got %d blobs, want 0", name, left)
		}
	}
}

// withBlobs sets a blob in each part of the contents in v, which fill leaves out.
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
