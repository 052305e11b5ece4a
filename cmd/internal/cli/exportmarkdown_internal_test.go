package cli

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// The section of a turn has its input, also one that waited while other turns ran.
func TestMarkdownOfAnInputThatWaited(t *testing.T) {
	var page strings.Builder
	x := newMarkdown(&page, export.Head{Agent: "default/support/a"})
	n := messages.EventNumber(1)
	for _, events := range [][]messages.Event{
		{messages.InputAccepted{Input: "u1", Disposition: messages.Started, Turn: "t2", Content: messages.TextContent("first")}, messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}}},
		{messages.InputAccepted{Input: "u2", Disposition: messages.Queued, Content: messages.TextContent("second")}},
		{messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}, Output: "done"}},
		{messages.TurnStarted{Turn: "t5", Inputs: []string{"u2"}}},
		{messages.TurnCompleted{Turn: "t5", Inputs: []string{"u2"}, Output: "done, too"}},
	} {
		if err := x.Frame(&messages.Frame{First: n, Events: events}); err != nil {
			t.Fatal(err)
		}
		n += messages.EventNumber(len(events))
	}
	if _, err := x.Close(nil, nil); err != nil {
		t.Fatal(err)
	}
	_, second, _ := strings.Cut(page.String(), "## Turn `t5`")
	if !strings.Contains(second, "### Input `u2`\n\n```\nsecond\n```") || strings.Contains(second, "first") || !strings.Contains(second, "done, too") {
		t.Errorf("got\n%s", page.String())
	}
}
