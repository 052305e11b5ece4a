package actors_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// TestInterruptStorm interrupts and aborts 500 agents while their tools block and panic.
// Afterwards every input has ended once and no goroutine is left.
func TestInterruptStorm(t *testing.T) { // A6, A14, A31
	base := runtime.NumGoroutine()
	blocks := toolOf("blocks", tool.ReadOnly, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	panics := toolOf("panics", tool.Pause, func(context.Context) (string, error) { panic("boom") })
	model := scripted.Func(func(r providers.Request) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Content.Text() == "the end" {
			return scripted.Say("done")
		}
		return scripted.Ask(scripted.Call{Name: "panics", Arguments: "{}"}, scripted.Call{Name: "blocks", Arguments: "{}"})
	})
	s := actorstest.New(t, nil)
	node := s.Start(config(model, blocks, panics))
	var storm sync.WaitGroup
	agents := make([]messages.AgentID, 500)
	for i := range agents {
		a := actorstest.Agent("test", fmt.Sprint("a", i))
		agents[i] = a
		storm.Go(func() {
			for n := range 3 {
				node.Must(a, say(fmt.Sprint("u", n), "go"))
				if n == 1 {
					s.Until(a, "tool.failed")
				}
				node.Must(a, messages.Interrupt{ID: fmt.Sprint("i", n)})
				node.Must(a, messages.Abort{ID: fmt.Sprint("a", n)})
			}
			node.Must(a, say("end", "the end"))
		})
	}
	storm.Wait()
	for _, a := range agents {
		ends(t, s.Until(a, "turn.completed"))
	}
	node.Stop()
	for runtime.NumGoroutine() > base {
		if stuck := goroutines("/actors."); stuck == "" {
			break // the rest are protoactor's, or another test's
		}
		runtime.Gosched()
	}
}

// goroutines returns the stacks that contain the text.
func goroutines(text string) string {
	buf := make([]byte, 1<<22)
	buf = buf[:runtime.Stack(buf, true)]
	return stacksWith(string(buf), text)
}

func stacksWith(all, text string) string {
	var found []string
	for i, stack := range strings.Split(all, "\n\n") {
		if i > 0 && strings.Contains(stack, text) { // the first is the caller's own
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
