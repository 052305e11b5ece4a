package projections_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// outboxOf applies events, numbered from 1, and returns the outbox messages, as kind, address and
// event number.
func outboxOf(w *projections.Work, events ...messages.Event) (list []string) {
	for i, ev := range events {
		w.Apply(messages.EventNumber(i+1), ev)
	}
	for _, m := range w.Outbox.Messages {
		list = append(list, fmt.Sprint(m.Kind, " ", m.To, " ", m.N))
	}
	return list
}

// Events add messages for other agents to the outbox and remove them.
func TestOutbox(t *testing.T) {
	started := messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}}
	requested := messages.ToolRequested{Turn: "t1", Call: "c1", Tool: "helper"}
	toolStarted := messages.ToolStarted{Turn: "t1", Call: "c1", Tool: "helper", Attempt: 1}
	spawned := messages.ChildSpawned{Turn: "t1", Call: "c1", Child: "default/helper/a", Input: "task:1"}
	aborted := messages.ChildAborted{Turn: "t1", Call: "c1", Child: "default/helper/a", Input: "task:1", Reason: "enough"}
	failed := messages.ToolFailed{Turn: "t1", Call: "c1", Kind: "interrupted"}
	decided := messages.ChildDecided{Turn: "t1", Call: "c1", Agent: "default/low/b", Of: "t2", Waits: "w1", Command: "approve", ID: "for:1"}
	work := []messages.Event{started, requested, toolStarted, spawned}
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
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// The outbox holds only the newest report for a parent. The end of a task stays in it until the
// parent has stored it.
func TestReportsSupersede(t *testing.T) {
	parent := messages.Parent{Caller: messages.Caller{Agent: "default/boss/b", Turn: "t9", Call: "c1"}}
	waiting := []messages.Event{
		messages.InputAccepted{Input: "task:1", Disposition: messages.Started, Turn: "t2", Parent: &parent},
		messages.TurnStarted{Turn: "t2", Inputs: []string{"task:1"}},
		messages.ToolRequested{Turn: "t2", Call: "c1", Tool: "pay"},
		messages.ApprovalRequested{Turn: "t2", Call: "c1"},
	}
	granted := append(waiting[:4:4], messages.ApprovalGranted{Turn: "t2", Call: "c1"})
	ended := append(granted[:5:5], messages.TurnCompleted{Turn: "t2", Inputs: []string{"task:1"}, Output: "paid"})
	for name, c := range map[string]struct {
		events []messages.Event
		want   []string
	}{
		"waits":                   {waiting, []string{"report default/boss/b 4"}},
		"waits, stored":           {append(waiting[:4:4], messages.ChildReported{Input: "task:1", Upto: 4}), nil},
		"granted":                 {granted, []string{"report default/boss/b 5"}},
		"granted, old one stored": {append(granted[:5:5], messages.ChildReported{Input: "task:1", Upto: 4}), []string{"report default/boss/b 5"}},
		"ends":                    {ended, []string{"report default/boss/b 6"}},
		"ends, another's stored":  {append(ended[:6:6], messages.ChildReported{Input: "task:2", Upto: 9}), []string{"report default/boss/b 6"}},
		"ends, stored":            {append(ended[:6:6], messages.ChildReported{Input: "task:1", Upto: 6}), nil},
	} {
		w := new(projections.Work)
		if got := outboxOf(w, c.events...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if end := w.Outbox.Task("task:1").End; (end != nil) != (len(c.events) > 5 && name[:4] == "ends") {
			t.Errorf("%s: end of the task: got %+v", name, end)
		}
	}
}

// The number of tasks is bounded: the oldest are removed, except open ones and those whose end is
// not reported yet.
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
		t.Errorf("tasks: got %d, want 64", got)
	}
	for id, want := range map[string]bool{"open": true, "unreported": true, "task:100": false, "task:199": true} {
		if got := w.Outbox.Task(id) != nil; got != want {
			t.Errorf("task %s kept: got %t, want %t", id, got, want)
		}
	}
}
