package projections

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

var update = flag.Bool("update", false, "rewrite the stories in testdata")

var story1 = []messages.Event{
	messages.AgentCreated{Agent: "default/assistant/a1", By: "prompt"},
	messages.InputAccepted{Input: "u1", Disposition: messages.Started, Turn: "t3", Content: messages.TextContent("What is 17 times 3?"), Deadline: &testTime},
	messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, Definition: "d", MaxSteps: 20},
	messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Model: "demo", Inputs: []string{"u1"}},
	messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m4", Usage: messages.Usage{Input: 57, Output: 18}, Items: []messages.Item{
		{Type: messages.ItemCall, CallID: "c1", Name: "calculator", Arguments: `{"expression":"17*3"}`},
		{Type: messages.ItemCall, CallID: "c2", Name: "refund", Arguments: `{}`}}},
	messages.InputAccepted{Input: "u6", Disposition: messages.Queued, Content: messages.Content{{Type: "text", Text: "see"}, {Type: "image_url", ImageURL: "https://x.test/a.png"}}},
	messages.ToolRequested{Turn: "t3", Step: 1, Call: "c2", Tool: "refund", Arguments: `{}`},
	messages.ToolCompleted{Turn: "t3", Call: "c1", Output: "51"},
	messages.ToolUnknown{Turn: "t3", Call: "c2", Reason: "the process ended while it ran"},
	messages.TurnPaused{Turn: "t3", Reason: "unknown outcome", Calls: []messages.CallID{"c2"}},
	messages.StatePatched{Patch: []byte(`{"a":1,"b":{"c":true}}`), Reason: "set by hand"},
	messages.StatePatched{Patch: []byte(`{"a":2,"b":{"c":null,"d":"\u001b[2J"}}`)},
	messages.ToolFailed{Turn: "t3", Call: "c2", Kind: "error", Message: "\x1b[31mno\x1b[0m\nrefund", By: "alice"},
	messages.TurnResumed{Turn: "t3"},
	messages.ModelCompleted{Turn: "t3", Step: 2, Items: []messages.Item{messages.Text("assistant", strings.Repeat("long ", 200))}},
	messages.TurnAborted{Turn: "t3", Inputs: []string{"u1"}, By: "interrupt", Reason: "enough", Note: "The user stopped you.", Steps: 2},
	messages.TurnStarted{Turn: "t17", Inputs: []string{"u6"}},
	messages.TurnFailed{Turn: "t17", Reason: "model", Message: "no such model"},
	messages.TurnStarted{Turn: "t19", Continues: "t17", Steps: 1},
	messages.StatePatched{Patch: []byte(`[1]`)},
	messages.ModelCompleted{Turn: "t19", Step: 2, Items: []messages.Item{{Type: messages.ItemCall, CallID: "c3", Name: "refund", Arguments: `{}`}}},
	messages.ToolCompleted{Turn: "t19", Call: "c3", Output: "paid"},
	messages.TurnFailed{Turn: "t19", Reason: "model", Kind: "bad_request", Message: "no pictures", Withheld: 20, Note: "[A turn failed here]"},
	messages.TurnStarted{Turn: "t24", Continues: "t19", Steps: 2},
}

var story2 = []messages.Event{
	messages.InputAccepted{Input: "u1", Disposition: messages.Started, Turn: "t2", Content: messages.TextContent("Refund orders 7 and 8")},
	messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}, MaxSteps: 20, Limits: messages.Limits{MaxTokens: 100, MaxCost: messages.CostOf(0.25), MaxDuration: 90_000}},
	messages.TimerSet{Turn: "t2", Timer: "d3", For: "duration", Set: testTime, At: testTime.Add(90 * time.Second)},
	messages.BudgetReserved{Turn: "t2", Step: 1, Tokens: 40, Cost: messages.CostOf(0.01)},
	messages.ModelRequested{Turn: "t2", Step: 1, Attempt: 1, Call: "m5", Model: "a/big", Inputs: []string{"u1"}},
	messages.ModelFailed{Turn: "t2", Step: 1, Attempt: 1, Call: "m5", Kind: "refused", Message: "no"},
	messages.ModelSwitched{Turn: "t2", Step: 1, From: "a/big", To: "b/small", Reason: "it failed for good"},
	messages.ModelCompleted{Turn: "t2", Step: 1, Call: "m7", Usage: messages.Usage{Input: 30, Output: 9}, Cost: messages.CostOf(0.02), Items: []messages.Item{
		{Type: messages.ItemCall, CallID: "c1", Name: "refund", Arguments: `{"order":7}`},
		{Type: messages.ItemCall, CallID: "c2", Name: "refund", Arguments: `{"order":8}`}}},
	messages.BudgetSettled{Turn: "t2", Step: 1, Call: "m7", Tokens: 39, Cost: messages.CostOf(0.02)},
	messages.ToolRequested{Turn: "t2", Step: 1, Call: "c1", Tool: "refund", Arguments: `{"order":7}`},
	messages.ToolFlagged{Turn: "t2", Call: "c1", Tool: "refund", Of: "c0", Reason: "the same arguments"},
	messages.ApprovalRequested{Turn: "t2", Call: "c1", Tool: "refund", Arguments: `{"order":7}`, ArgsHash: "h7", ExpiresAt: &testTime},
	messages.ToolRequested{Turn: "t2", Step: 1, Call: "c2", Tool: "refund", Arguments: `{"order":8}`},
	messages.ApprovalRequested{Turn: "t2", Call: "c2", Tool: "refund", Arguments: `{"order":8}`, ArgsHash: "h8"},
	messages.TimerCancelled{Turn: "t2", Timer: "d3", Ran: 1200},
	messages.TurnPaused{Turn: "t2", Reason: "approval", Calls: []messages.CallID{"c1", "c2"}, Message: "approve or deny"},
	messages.InputAccepted{Input: "u17", Disposition: messages.Steered, Turn: "t2", Policy: messages.PolicySteer, Content: messages.TextContent("and order 9")},
	messages.InputAccepted{Input: "u18", Disposition: messages.Queued, Content: messages.TextContent("later")},
	messages.InputCancelled{Input: "u18", Reason: "never mind"},
	messages.TurnResumed{Turn: "t2"},
	messages.ApprovalGranted{Turn: "t2", Call: "c1", Tool: "refund", By: "decision", Remember: true},
	messages.ApprovalDenied{Turn: "t2", Call: "c2", Tool: "refund", By: "timeout", Text: "nobody decided"},
	messages.ToolDenied{Turn: "t2", Call: "c2", Message: "nobody decided"},
	messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"},
	messages.HookDecided{Turn: "t2", Hook: "guard", Point: "before_model", Decision: "finish", Reason: "enough", Answer: "Order 7 is paid.", Note: "Nothing else today."},
	messages.BudgetExhausted{Turn: "t2", Scope: "turn", Limit: "max_tokens", Message: "100 tokens are used"},
	messages.BudgetRaised{Turn: "t2", Scope: "turn", Limits: messages.Limits{MaxTokens: 500}},
	messages.BudgetRaised{Scope: "agent", Limits: messages.Limits{MaxCost: messages.CostOf(2)}},
	messages.InputRequeued{Input: "u17", Turn: "t2", Reason: "its turn ended before a model had seen it"},
	messages.TurnAborted{Turn: "t2", Inputs: []string{"u1"}, By: "clear", Steps: 1},
	messages.InputDropped{Input: "u17", By: "clear"},
	messages.AgentCleared{Reason: "afresh"},
	messages.StatePatched{Patch: []byte(`{"a":1}`)},
	messages.ApprovalForgotten{Tool: "refund"},
}

// The text of a replay is that of the files in testdata and has no control characters.
func TestReplayTellsTheStory(t *testing.T) {
	for path, events := range map[string][]messages.Event{"testdata/replay.txt": story1, "testdata/steered.txt": story2} {
		var r Replay
		var b strings.Builder
		for i, ev := range events {
			n := messages.EventNumber(i + 1)
			if err := r.Step(n, testTime.Add(time.Duration(i)*250*time.Millisecond), uint64(i), ev).WriteText(&b); err != nil {
				t.Fatal(err)
			}
		}
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || b.String() != string(want) {
			t.Errorf("%s: error %v, or a difference (run with -update and review it)\ngot\n%swant\n%s", path, err, b.String(), want)
		}
		for _, line := range splitLines(b.String()) {
			if line != Printable(line, 0) {
				t.Errorf("line: got %q, want only printable text", line)
			}
		}
	}
}
