package projections_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// outboxOf folds events from number 1 and returns what is to be sent, as kind, address and
// the event since which.
func outboxOf(w *projections.Work, events ...messages.Event) (list []string) {
	for i, ev := range events {
		w.Apply(messages.EventNumber(i+1), ev)
	}
	for _, m := range w.Outbox.Messages {
		list = append(list, fmt.Sprint(m.Kind, " ", m.To, " ", m.N))
	}
	return list
}

// TestOutbox holds what puts a message for another agent into the outbox, and what ends it.
func TestOutbox(t *testing.T) {
	started := messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}}
	requested := messages.ToolRequested{Turn: "t1", Call: "c1", Tool: "helper"}
	begun := messages.ToolStarted{Turn: "t1", Call: "c1", Tool: "helper", Attempt: 1}
	spawned := messages.ChildSpawned{Turn: "t1", Call: "c1", Child: "default/helper/a", Input: "task:1"}
	aborted := messages.ChildAborted{Turn: "t1", Call: "c1", Child: "default/helper/a", Input: "task:1", Reason: "enough"}
	failed := messages.ToolFailed{Turn: "t1", Call: "c1", Kind: "interrupted"}
	decided := messages.ChildDecided{Turn: "t1", Call: "c1", Agent: "default/low/b", Of: "t2", Waits: "w1", Command: "approve", ID: "for:1"}
	work := []messages.Event{started, requested, begun, spawned}
	for name, c := range map[string]struct {
		events []messages.Event
		want   []string
	}{
		"task":               {nil, []string{"task default/helper/a 4"}},
		"outcome":            {[]messages.Event{failed}, nil},
		"cancelled":          {[]messages.Event{aborted, failed}, []string{"cancel default/helper/a 5"}},
		"stopped":            {[]messages.Event{decided, aborted, failed, messages.ChildStopped{Turn: "t1", Call: "c1", Child: "default/helper/a"}}, nil},
		"stopped another":    {[]messages.Event{aborted, failed, messages.ChildStopped{Turn: "t1", Call: "c2", Child: "default/helper/c"}}, []string{"cancel default/helper/a 5"}},
		"decision":           {[]messages.Event{decided}, []string{"task default/helper/a 4", "decision default/low/b 5"}},
		"effect of decision": {[]messages.Event{decided, messages.ChildSettled{ID: "for:1"}}, []string{"task default/helper/a 4"}},
		"clear":              {[]messages.Event{aborted, failed, messages.AgentCleared{}}, []string{"cancel default/helper/a 5"}},
		"delete":             {[]messages.Event{aborted, failed, messages.AgentDeleted{}}, nil},
	} {
		if got := outboxOf(new(projections.Work), append(work[:len(work):len(work)], c.events...)...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestReportsSupersede holds that a parent is owed the newest report alone, and the end of a
// task until it is stored.
func TestReportsSupersede(t *testing.T) {
	parent := messages.Parent{Caller: messages.Caller{Agent: "default/boss/b", Turn: "t9", Call: "c1"}}
	waits := []messages.Event{
		messages.InputAccepted{Input: "task:1", Disposition: messages.Started, Turn: "t2", Parent: &parent},
		messages.TurnStarted{Turn: "t2", Inputs: []string{"task:1"}},
		messages.ToolRequested{Turn: "t2", Call: "c1", Tool: "pay"},
		messages.ApprovalRequested{Turn: "t2", Call: "c1"},
	}
	goes := append(waits[:4:4], messages.ApprovalGranted{Turn: "t2", Call: "c1"})
	ends := append(goes[:5:5], messages.TurnCompleted{Turn: "t2", Inputs: []string{"task:1"}, Output: "paid"})
	for name, c := range map[string]struct {
		events []messages.Event
		want   []string
	}{
		"waits":                  {waits, []string{"report default/boss/b 4"}},
		"waits, stored":          {append(waits[:4:4], messages.ChildReported{Input: "task:1", Upto: 4}), nil},
		"goes":                   {goes, []string{"report default/boss/b 5"}},
		"goes, old one stored":   {append(goes[:5:5], messages.ChildReported{Input: "task:1", Upto: 4}), []string{"report default/boss/b 5"}},
		"ends":                   {ends, []string{"report default/boss/b 6"}},
		"ends, another's stored": {append(ends[:6:6], messages.ChildReported{Input: "task:2", Upto: 9}), []string{"report default/boss/b 6"}},
		"ends, stored":           {append(ends[:6:6], messages.ChildReported{Input: "task:1", Upto: 6}), nil},
	} {
		w := new(projections.Work)
		if got := outboxOf(w, c.events...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if end := w.Outbox.Task("task:1").End; (end != nil) != (len(c.events) > 5 && name[:4] == "ends") {
			t.Errorf("%s: its end is %+v", name, end)
		}
	}
}

// TestTasksAreBounded holds that of many tasks the oldest are forgotten, but none that has yet
// to end or whose end has yet to be reported.
func TestTasksAreBounded(t *testing.T) {
	parent := messages.Parent{Caller: messages.Caller{Agent: "default/boss/b", Turn: "t9", Call: "c1"}}
	w, n := new(projections.Work), messages.EventNumber(0)
	apply := func(events ...messages.Event) {
		for _, ev := range events {
			n++
			w.Apply(n, ev)
		}
	}
	apply(messages.InputAccepted{Input: "open", Parent: &parent})
	apply(messages.InputAccepted{Input: "unreported", Parent: &parent}, messages.InputCancelled{Input: "unreported"})
	for i := range 200 {
		id := fmt.Sprint("task:", i)
		apply(messages.InputAccepted{Input: id, Parent: &parent}, messages.InputCancelled{Input: id})
		apply(messages.ChildReported{Input: id, Upto: n})
	}
	if got := len(w.Outbox.Tasks); got != 64 {
		t.Errorf("%d tasks are kept", got)
	}
	for id, want := range map[string]bool{"open": true, "unreported": true, "task:100": false, "task:199": true} {
		if got := w.Outbox.Task(id) != nil; got != want {
			t.Errorf("task %s is kept: %t, want %t", id, got, want)
		}
	}
}
