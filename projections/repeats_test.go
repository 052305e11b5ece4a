package projections

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// anyCalls returns a turn whose calls ask for much the same, and end in any way.
func anyCalls(r *rand.Rand) []*messages.Frame {
	parts := []any{inputBy("u1", "bob"), accepted("u1", "Refund")}
	parts = append(parts, oneTurn("t2", "m3", "u1")...)
	for i := range 6 {
		call := messages.CallID(fmt.Sprint("c", i))
		tool, order := []string{"refund", "look"}[r.IntN(2)], []string{"7", " 7.0", "8"}[r.IntN(3)]
		started := refundStarted("t2", call, 1)
		if started.Tool = tool; tool == "look" {
			started.OnUnknown = messages.ReadOnly
		}
		asked := refundCall("t2", call, order)
		asked.Tool = tool
		parts = append(parts, asked)
		if r.IntN(4) == 0 {
			parts = append(parts, messages.ToolSkipped{Turn: "t2", Call: call, Reason: "steered"})
			continue
		}
		parts = append(parts, started)
		failed := messages.ToolFailed{Turn: "t2", Call: call, Kind: messages.ToolFailureError}
		switch r.IntN(6) {
		case 0:
			parts = append(parts, messages.ToolCompleted{Turn: "t2", Call: call})
		case 1:
			parts = append(parts, failed)
		case 2:
			started.Attempt = 2
			parts = append(parts, started, failed)
		case 3:
			failed.By = messages.ByDecision
			parts = append(parts, messages.ToolUnknown{Turn: "t2", Call: call}, failed)
		case 4:
			failed.Kind = messages.ToolFailureTimeout
			parts = append(parts, failed)
		}
	}
	return storyOf(parts...)
}

// A call is found to repeat another one by why where effects marks it, and nowhere else.
func TestRepeatsAgree(t *testing.T) {
	stories := make(map[string][]*messages.Frame)
	for _, s := range whyStories {
		stories[s.name] = s.frames
	}
	for seed := range uint64(100) {
		stories[fmt.Sprint("seed ", seed)] = anyCalls(rand.New(rand.NewPCG(seed, 1)))
	}
	marked := 0
	for name, frames := range stories {
		var e Effects
		for _, f := range frames {
			Fold(f, 0, &e)
		}
		calls := e.List(testAgent)
		MarkRepeats(calls)
		for _, c := range calls {
			first, second := repeatsFound(frames, c.N)
			if first != c.Repeats {
				t.Errorf("%s: event %d repeats event %d by effects, and event %d by why", name, c.N, c.Repeats, first)
			}
			repeated := slices.ContainsFunc(calls, func(o Effect) bool { return o.Repeats == c.N })
			if repeated != (second != 0) || repeated && !slices.ContainsFunc(calls, func(o Effect) bool { return o.N == second && o.Repeats == c.N }) {
				t.Errorf("%s: event %d is repeated by event %d by why; by effects that is %v", name, c.N, second, repeated)
			}
			if c.Repeats != 0 {
				marked++
			}
		}
	}
	if marked < 50 {
		t.Errorf("only %d calls repeat another one", marked)
	}
}

// repeatsFound returns the call that the one of event n repeats, and one that repeats it, as findings of
// why name them; 0: none.
func repeatsFound(frames []*messages.Frame, n messages.EventNumber) (first, second messages.EventNumber) {
	c := &Causes{N: n}
	for _, f := range frames {
		Fold(f, 0, c)
	}
	for _, f := range c.Of(testAgent).Findings {
		switch {
		case f.Kind == "rerun":
		case f.Events[0].N == n:
			second = f.Events[1].N
		case f.Events[1].N == n:
			first = f.Events[0].N
		}
	}
	return first, second
}
