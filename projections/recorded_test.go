package projections

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// Calls have whole results, however large, in the order in which they were asked for.
func TestRecordedCalls(t *testing.T) {
	blob := &messages.Blob{SHA256: "00", Size: 1 << 20}
	var r RecordedCalls
	for i, ev := range []messages.Event{
		messages.ToolCompleted{Turn: "t1", Call: "before", Output: "left out"},
		messages.ToolRequested{Turn: "t1", Call: "a", Tool: "pay", Arguments: `{"n":1}`},
		messages.ToolRequested{Turn: "t1", Call: "b", Tool: "pay", Arguments: `{"n":2}`},
		messages.ToolRequested{Turn: "t1", Call: "c", Tool: "pay", Arguments: `{"n":3}`},
		messages.ToolRequested{Turn: "t1", Call: "d", Tool: "none", Arguments: `{}`},
		messages.ToolStarted{Turn: "t1", Call: "a", Tool: "pay", Attempt: 1},
		messages.ToolStarted{Turn: "t1", Call: "b", Tool: "pay", Attempt: 1, Arguments: `{"n":20}`},
		messages.ToolStarted{Turn: "t1", Call: "c", Tool: "pay", Attempt: 1},
		messages.ToolCompleted{Turn: "t1", Call: "b", Blob: blob},
		messages.ToolFailed{Turn: "t1", Call: "a", Kind: messages.ToolFailureError, Message: "no"},
		messages.ToolUnknown{Turn: "t1", Call: "c"},
		messages.ToolFailed{Turn: "t1", Call: "d", Kind: messages.ToolFailureUnknownTool, Message: "there is none"},
		messages.ToolRequested{Turn: "t2", Call: "a", Tool: "pay", Arguments: `{"n":4}`},
	} {
		r.Apply(messages.EventNumber(i+1), ev)
	}
	if len(r.List) != 5 || r.Of("t1", "before") != nil || r.Of("t1", "") != nil {
		t.Fatalf("got %+v", r.List)
	}
	for call, want := range map[messages.CallID]bool{"a": true, "b": true, "c": false, "d": false} {
		if got := r.Of("t1", call).HasResult(); got != want {
			t.Errorf("call %s has a result: got %t, want %t", call, got, want)
		}
	}
	a, b := r.Of("t1", "a"), r.Of("t1", "b")
	if a.Output != "no" || a.Kind != messages.ToolFailureError || b.Blob != blob || b.Arguments != `{"n":20}` || r.Of("t2", "a").Arguments != `{"n":4}` {
		t.Errorf("got %+v and %+v", a, b)
	}
	c := ToolCall{Tool: "pay", Arguments: `{ "n": 3 }`}
	if got := r.Results()[c.Asks()]; got != nil {
		t.Errorf("a call without a result: got %+v", got)
	}
	c.Arguments = `{ "n": 20 }`
	if got := r.Results()[c.Asks()]; len(got) != 1 || got[0].ID != "b" {
		t.Errorf("got %+v, want call b, and no other", got)
	}
}
