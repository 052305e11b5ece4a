package turn_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// BenchmarkTurn is an ordinary turn with one tool call: bare, and with each of
// the guards that an agent may have. What bare allocates is what an agent
// without guards pays; the others are here to be compared with it.
func BenchmarkTurn(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*turn.Definition)
	}{
		{"bare", func(*turn.Definition) {}},
		{"pause on unknown", func(d *turn.Definition) { d.Tools = map[string]turn.Tool{"add": {OnUnknown: messages.Pause}} }},
		{"gated, free", func(d *turn.Definition) {
			d.Tools = map[string]turn.Tool{"add": {OnUnknown: messages.ReadOnly, Approval: turn.ApproveAsked}}
		}},
		{"limits", func(d *turn.Definition) { d.TurnLimits = messages.Limits{MaxTokens: 1 << 30, MaxDuration: 1 << 40} }},
		{"hooks", func(d *turn.Definition) { d.Hooks = []turn.Point{turn.BeforeModel, turn.TurnEnd} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			env := turn.Env{
				Agent: messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"},
				Definition: turn.Definition{Digest: "d1", Model: "scripted/m", MaxSteps: 20, MaxQueue: 10, MaxAttempts: 3, Parallel: 8,
					Tools: map[string]turn.Tool{"add": {OnUnknown: messages.ReadOnly}}},
				Now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
			}
			c.change(&env.Definition)
			b.ReportAllocs()
			var s turn.State
			n := 0
			do := func(cmd any) {
				if _, err := s.Decide(env, cmd); err != nil {
					b.Fatal(err)
				}
				if len(env.Definition.Hooks) == 0 {
					return
				}
				if e := s.Effects(); len(e) > 0 && e[0].Do == turn.AskHooks {
					if _, err := s.Decide(env, turn.HooksAsked{Point: e[0].Point}); err != nil {
						b.Fatal(err)
					}
				}
			}
			for b.Loop() {
				if n++; n%100 == 0 {
					s = turn.State{} // a history of ordinary length
				}
				do(messages.Input{ID: strconv.Itoa(n), Content: messages.TextContent("go")})
				answer := turn.ModelAnswered{Call: s.Turn.Model.ID, Items: []messages.Item{{Type: messages.ItemCall, CallID: "c1", Name: "add", Arguments: "{}"}}}
				if c.name == "gated, free" {
					answer.Reviewed = map[messages.CallID]turn.Review{"c1": {Free: true}}
				}
				do(answer)
				do(turn.ToolReturned{Call: "c1", Attempt: 1, Output: "3"})
				do(turn.ModelAnswered{Call: s.Turn.Model.ID, Items: []messages.Item{messages.Text(messages.RoleAssistant, "3")}})
			}
		})
	}
}
