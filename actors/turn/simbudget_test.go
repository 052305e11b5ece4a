package turn_test

import (
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// What views tell of budgets is what the machine counts, after every frame of
// many lives.
func TestBudgetsAreToldAsCounted(t *testing.T) { // A17, A52
	for seed := range uint64(400) {
		s, err := life{seed: seed}.play()
		if err != nil {
			continue // TestSimulation tells of it
		}
		var live turn.State
		var told projections.Budget
		for _, f := range s.log {
			live.Apply(f)
			for i, ev := range f.Events {
				told.Apply(f.First+messages.EventNumber(i), ev)
			}
			a := told.Accounts()
			used := func(steps int, u turn.Used) projections.Use {
				return projections.Use{Steps: steps, Tokens: u.Tokens, Cost: u.Cost, Duration: u.Ran}
			}
			if a.Agent.Used != used(live.Used.Steps, live.Used) || a.Agent.Limits != live.Raised || (a.Turn == nil) != (live.Turn == nil) {
				t.Fatalf("seed %d, event %d: told %+v, counted %+v", seed, f.Last(), a.Agent, live.Used)
			}
			if l := live.Turn; l != nil && (a.Turn.Used != used(l.Steps, l.Used) || a.Turn.Limits != l.Limits) {
				t.Fatalf("seed %d, event %d: told %+v, counted %+v of %+v", seed, f.Last(), a.Turn, l.Used, l.Limits)
			}
		}
	}
}
