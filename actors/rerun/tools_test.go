package rerun_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// A call that did not finish in time, on record and now, has the same result, also one that is still
// running. The clock is fake: it advances when every goroutine waits.
func TestToolsThatTakeTooLong(t *testing.T) {
	var free chan struct{}
	for _, wait := range []func(context.Context) (string, error){
		func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
		func(context.Context) (string, error) { <-free; return "late", nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			free = make(chan struct{})
			cfg := new(bench).config(scripted.New(ask("c1", "wait", `{"order":1}`), scripted.Say("Late.")))
			cfg.Definitions[0].Tools = []tool.Tool{tool.New("wait", "Waits", tool.ReadOnly, func(ctx context.Context, _ refund) (string, error) {
				return wait(ctx)
			}).Timeout(10 * time.Second)}
			var node *actorstest.Node
			rec := live(t, cfg, func(s *actorstest.Stage, n *actorstest.Node) { node = n; s.Until(ann, "turn.completed") }, "Hi")
			again(t, cfg, rec, rerun.Options{Tools: rerun.ReadOnly}, rerun.Same, "1 with the recorded result, 0 with another")
			close(free)
			node.Stop()
			<-time.After(2 * time.Second) // protoactor's throttle of logs ends
		})
	}
}

// A call that is interrupted ends, though its tool does not.
func TestInterrupted(t *testing.T) {
	b := new(bench)
	rec := live(t, b.config(scripted.New(ask("c1", "look", `{"order":7}`), scripted.Say("Found."))), nil, "Hi")
	ctx, cancel := context.WithCancel(t.Context())
	free := make(chan struct{})
	defer close(free)
	cfg := b.config(scripted.New())
	cfg.Definitions[0].Tools = []tool.Tool{tool.New("look", "Looks", tool.ReadOnly, func(context.Context, refund) (string, error) {
		cancel()
		<-free
		return "", nil
	})}
	if _, err := rerun.Run(ctx, cfg, rec, rerun.Options{Tools: rerun.ReadOnly}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Results are compared as a node records them: without what is not UTF-8, failures with their beginning, and what
// is too large as a failure.
func TestRecordedForms(t *testing.T) {
	for name, call := range map[string]func() (string, error){
		"not UTF-8":    func() (string, error) { return "caf\xe9", nil },
		"long failure": func() (string, error) { return "", errors.New(strings.Repeat("long ", 100_000)) },
		"too large":    func() (string, error) { return strings.Repeat("x", 2000), nil },
		"panic":        func() (string, error) { panic("oh") },
		"goroutine":    func() (string, error) { runtime.Goexit(); return "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := new(bench).config(scripted.New(ask("c1", "give", `{"order":1}`), scripted.Say("Given.")))
			cfg.MaxPayload = 1000
			cfg.Definitions[0].Tools = []tool.Tool{tool.New("give", "Gives", tool.ReadOnly, func(context.Context, refund) (string, error) { return call() })}
			rec := live(t, cfg, nil, "Hi")
			again(t, cfg, rec, rerun.Options{Tools: rerun.ReadOnly}, rerun.Same, "1 with the recorded result, 0 with another")
		})
	}
}
