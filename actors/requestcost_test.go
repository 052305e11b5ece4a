package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// TestRequestCost logs what the log keeps of requests, so that they can be shown again:
//
//	go test -v -run RequestCost ./actors
func TestRequestCost(t *testing.T) {
	const turns = 20
	question := strings.Repeat("What is the state of order 4711 of Ada Lovelace? ", 8)
	for name, c := range map[string]struct {
		hook func(*providers.Request)
		most int // bytes that a call may cost beside what it costs without a hook
	}{
		"no hook":                {nil, 0},
		"a line of instructions": {func(r *providers.Request) { r.Instructions += " It is 2 January 2026, 03:04." }, 120},
		"a note of 1 KiB": {func(r *providers.Request) {
			r.Items = append(r.Items, messages.Text(messages.RoleDeveloper, strings.Repeat("fact ", 205)))
		}, 1400},
		"the newest items alone": {func(r *providers.Request) { r.Items = r.Items[max(len(r.Items)-5, 0):] }, 120},
		"a name out of each item": {func(r *providers.Request) {
			for i := range r.Items {
				r.Items[i].Content[0].Text = strings.ReplaceAll(r.Items[i].Content[0].Text, "Ada Lovelace", "[name]")
			}
		}, 30 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := actorstest.New(t, nil)
			model := scripted.Func(func(providers.Request) scripted.Step { return scripted.Say("It is " + question) })
			var hooks []actors.Hook
			if c.hook != nil {
				hooks = append(hooks, rewriter("h", c.hook))
			}
			node := s.Start(hooked(model, nil, hooks...))
			for n := range turns {
				node.Must(ada, say(fmt.Sprint("u", n), question))
				s.Until(ada, "turn.completed", n+1)
			}
			sent, frames, kept, beside := 0, 0, 0, 0
			for _, r := range model.Requests() {
				sent += len(asJSON(r))
			}
			for _, f := range s.Frames(ada) {
				whole := frameSize(t, f)
				frames += whole
				for i, ev := range f.Events {
					if ev, ok := ev.(messages.ModelRequested); ok {
						if b := ev.RewrittenBlob; b != nil {
							beside += int(b.Size)
						}
						ev.Rewritten, ev.RewrittenBlob = nil, nil
						f.Events[i] = ev
						kept += whole - frameSize(t, f)
					}
				}
			}
			t.Logf("%d bytes sent a call; kept of what the hook changed: %d bytes in the frames (%.1f %% of %d a turn) and %d beside them", sent/turns, kept/turns, 100*float64(kept)/float64(frames), frames/turns, beside/turns)
			if cost := (kept + beside) / turns; cost > c.most {
				t.Errorf("got %d bytes a call, want at most %d", cost, c.most)
			}
		})
	}
}

func frameSize(t *testing.T, f *messages.Frame) int {
	t.Helper()
	b, err := messages.EncodeFrame(ada, f)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}
