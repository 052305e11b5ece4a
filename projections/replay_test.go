package projections

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

var update = flag.Bool("update", false, "write testdata/replay.txt anew")

func TestReplayTellsTheStory(t *testing.T) {
	deadline := testTime
	var r Replay
	var b strings.Builder
	for i, ev := range []messages.Event{
		messages.AgentCreated{Agent: "default/assistant/a1", By: "prompt"},
		messages.InputAccepted{Input: "u1", Disposition: messages.Started, Turn: "t3", Content: messages.TextContent("What is 17 times 3?"), Deadline: &deadline},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, Definition: "d", MaxSteps: 20},
		messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Model: "demo", Inputs: []string{"u1"}},
		messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m4", Usage: messages.Usage{Input: 57, Output: 18}, Items: []messages.Item{
			{Type: messages.ItemCall, CallID: "c1", Name: "calculator", Arguments: `{"expression":"17*3"}`},
			{Type: messages.ItemCall, CallID: "c2", Name: "refund", Arguments: `{}`}}},
		messages.InputAccepted{Input: "u6", Disposition: messages.Queued, Content: messages.Content{{Type: "text", Text: "see"}, {Type: "image_url", ImageURL: "https://x.test/a.png"}}},
		messages.ToolStarted{Turn: "t3", Call: "c2", Tool: "refund", Class: "once", Key: "k", Attempt: 1},
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
	} {
		n := messages.EventNumber(i + 1)
		if err := r.Step(n, testTime.Add(time.Duration(i)*250*time.Millisecond), uint64(i), ev).WriteText(&b); err != nil {
			t.Fatal(err)
		}
	}
	const path = "testdata/replay.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v: the story differs from %s; run with -update and read it:\n%s", err, path, b.String())
	}
	for _, line := range splitLines(b.String()) {
		if line != Printable(line, 0) {
			t.Errorf("%q would reach the terminal", line)
		}
	}
}
