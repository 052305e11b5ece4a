package verify

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
)

// changed returns the event with one field changed; ok reports whether it has such a field with a
// value that can be.
func changed(ev messages.Event, field int) (other messages.Event, name string, ok bool) {
	v := reflect.New(reflect.TypeOf(ev)).Elem()
	v.Set(reflect.ValueOf(ev))
	f := v.Field(field)
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "x")
	case reflect.Int, reflect.Int64:
		f.SetInt(f.Int() + 1)
	case reflect.Uint64:
		f.SetUint(f.Uint() + 1)
	case reflect.Bool:
		f.SetBool(!f.Bool())
	default:
		return nil, "", false
	}
	name, _, _ = strings.Cut(v.Type().Field(field).Tag.Get("json"), ",")
	return v.Interface().(messages.Event), ev.EventType() + "." + name, true
}

// instead returns the stream with another event in a frame.
func (s told) instead(frame, event int, ev messages.Event) told {
	f := *s.frames[frame]
	f.Events = slices.Clone(f.Events)
	f.Events[event] = ev
	s.frames = slices.Clone(s.frames)
	s.frames[frame] = &f
	return s
}

// given are the fields that hold what the agent was given, by type of event: changed, they may be
// found later, by what follows from them, or not at all. All other fields are decisions, and are found
// at their event.
var given = map[string]string{
	// by a new owner
	"agent.activated": "epoch host node previous",
	// by the stream of a fork, which alone names the agent that its first events are of
	"agent.created": "agent",
	// by a command, or by the log: a reader of a prefix compares its digest
	"agent.cleared": "reason", "agent.forked": "digest parent reason", "agent.imported": "digest dry file reason source",
	"fork.requested": "at fork reason", "tools.enabled": "reason", "fork.detached": "digest last reason", "agent.deleted": "reason", "approval.denied": "reason remember text", "approval.forgotten": "reason",
	"approval.granted": "reason remember", "child.decided": "reason remember", "command.noop": "command reason",
	"input.accepted": "input policy reply", "input.cancelled": "reason", "input.dropped": "reason", "input.recalled": "input reason",
	"state.patched": "reason", "turn.aborted": "reason", "turn.resumed": "reason",
	// by another agent
	"child.completed": "n", "child.failed": "message n reason", "child.resumed": "n", "child.settled": "message n refused",
	"child.stopped": "how n", "child.waiting": "busy more n", "fork.settled": "message n refused",
	// by a model, a tool or a hook
	"compaction.failed": "kind", "history.compacted": "text", "hook.decided": "arguments decision hook note point reason",
	"model.completed": "finish model", "model.failed": "kind message shown status",
	"tool.completed": "output", "tool.failed": "kind message", "tool.skipped": "reason",
	// by the clock
	"timer.cancelled": "ran_ms reason", "timer.fired": "ran_ms", "timer.set": "timer",
	// by the definition: what it holds is compared, and not its name
	"agent.configured": "definition",
}

// Every decision of every story is found at its event when one of its fields is changed.
func TestChangedFieldsAreFound(t *testing.T) { // A82
	needed, tried := make(map[string]bool), 0
	for _, file := range turntest.Files(t, "../turn/testdata") {
		s := tell(t, file.Text)
		done := make(map[string]bool)
		for i, f := range s.frames {
			for j, ev := range f.Events {
				for k := range reflect.TypeOf(ev).NumField() {
					other, name, ok := changed(ev, k)
					if !ok || done[name] {
						continue
					}
					done[name] = true
					tried++
					if n := f.First + messages.EventNumber(j); !s.instead(i, j, other).foundAt(n) {
						needed[name] = true
						if !isGiven(name) {
							t.Errorf("%s: %s of event %d was changed, and that is not found there", file.Name, name, n)
						}
					}
				}
			}
		}
	}
	for eventType, names := range given {
		for name := range strings.FieldsSeq(names) {
			if !needed[eventType+"."+name] {
				t.Errorf("%s.%s is found wherever it is changed: take it out of the table", eventType, name)
			}
		}
	}
	t.Logf("%d fields were changed", tried)
}

// foundAt reports whether the stream differs, at event n or before.
func (s told) foundAt(n messages.EventNumber) bool {
	_, r := s.compared()
	return r.Result == Unreadable || r.Difference != nil && r.Difference.N <= n
}

func isGiven(name string) bool {
	i := strings.LastIndex(name, ".")
	return slices.Contains(strings.Fields(given[name[:i]]), name[i+1:])
}
