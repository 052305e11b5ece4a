package actors_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// TestFramesOfATurn holds the number of appends of a turn: four frames with one tool, at most
// two more with three tools that end one after another, and none for guards that change
// nothing.
func TestFramesOfATurn(t *testing.T) {
	free := func(json.RawMessage) (bool, error) { return false, nil }
	watches := actors.Hook{
		Name: "watches",
		AfterModel: func(context.Context, actors.HookInfo, providers.Response) (actors.Verdict, error) {
			return actors.Verdict{}, nil
		},
		BeforeTool: func(context.Context, actors.HookInfo, actors.HookedCall) (actors.Verdict, error) {
			return actors.Verdict{}, nil
		},
		AfterTool: func(context.Context, actors.HookInfo, actors.HookedCall, actors.HookedResult) (actors.Verdict, error) {
			return actors.Verdict{}, nil
		},
	}
	for _, c := range []struct {
		name   string
		calls  []scripted.Call
		change func(*actors.Definition)
		frames int
	}{
		{"one tool", []scripted.Call{call("c1", "pay")}, func(*actors.Definition) {}, 4},
		{"one guarded tool", []scripted.Call{call("c1", "pay")}, func(d *actors.Definition) {
			d.Hooks = []actors.Hook{watches}
			d.TurnLimits.MaxTokens, d.TurnLimits.MaxDuration = 1<<30, 1<<40
			d.Tools = []tool.Tool{gatedTool{Tool: d.Tools[0], approval: tool.Asked, want: free}}
		}, 4},
		{"three tools", []scripted.Call{call("c1", "pay"), call("c2", "pay"), call("c3", "pay")}, func(*actors.Definition) {}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := make(chan struct{}, 1) // each tool ends once the result before it is in the log
			pay := toolOf("pay", tool.ReadOnly, func(ctx context.Context) (string, error) {
				select {
				case <-turn:
				case <-ctx.Done():
				}
				return "paid", nil
			})
			s := actorstest.New(t, nil)
			s.Start(with(config(scripted.New(scripted.Ask(c.calls...), scripted.Say("done")), pay), c.change)).Must(ada, say("u1", "go"))
			for n := range c.calls {
				turn <- struct{}{}
				s.Until(ada, "tool.completed", n+1)
			}
			s.Until(ada, "turn.completed")
			if n := len(s.Frames(ada)); n != c.frames {
				t.Errorf("got %d frames, want %d: %v", n, c.frames, s.Types(ada))
			}
		})
	}
}
