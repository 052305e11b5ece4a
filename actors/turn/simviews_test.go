package turn_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The list of all calls and the running turn name the same calls as waiting for approval,
// after every frame of many lives.
func TestEffectsAgreeWithApprovals(t *testing.T) { // A43
	waited := 0
	for seed := range uint64(100) {
		s, err := life{seed: seed}.play()
		if err != nil {
			continue // TestSimulation reports it
		}
		var work projections.Work
		var effects projections.Effects
		for _, f := range s.log {
			projections.Fold(f, 0, &work, &effects)
			var want []messages.Approval
			for _, c := range effects.List(s.env.Agent) {
				if w, waits := c.AsApproval(); waits {
					want = append(want, w)
				}
			}
			slices.SortFunc(want, func(a, b messages.Approval) int { return int(a.N) - int(b.N) })
			got := slices.DeleteFunc(work.Approvals(s.env.Agent), func(w messages.Approval) bool { return w.Agent != s.env.Agent })
			if !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
				t.Fatalf("seed %d, event %d\nturn    %+v\neffects %+v", seed, f.Last(), got, want)
			}
			waited += len(want)
		}
	}
	if waited == 0 {
		t.Error("nothing ever waited")
	}
}
