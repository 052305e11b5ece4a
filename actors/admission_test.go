package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// gated is a log whose reads and writes block for agents that match shut, until open is closed
// or the context ends. It counts the blocked operations.
type gated struct {
	eventlog.Log
	shut func(messages.AgentID) bool
	open chan struct{}

	mu            sync.Mutex
	waiting, most int
	of            map[messages.Partition]int
	mostOf        int
}

func newGated(log eventlog.Log, shut func(messages.AgentID) bool) *gated {
	return &gated{Log: log, shut: shut, open: make(chan struct{}), of: make(map[messages.Partition]int)}
}

func (l *gated) wait(ctx context.Context, a messages.AgentID) error {
	if !l.shut(a) {
		return nil
	}
	l.count(a, 1)
	defer l.count(a, -1)
	select {
	case <-l.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *gated) count(a messages.AgentID, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting += n
	l.of[a.Partition()] += n
	l.most, l.mostOf = max(l.most, l.waiting), max(l.mostOf, l.of[a.Partition()])
}

// waits returns the number of operations that are blocked now.
func (l *gated) waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// Head blocks like every operation of gated; an activation reads it first.
func (l *gated) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	if err := l.wait(ctx, a); err != nil {
		return eventlog.Position{}, err
	}
	return l.Log.Head(ctx, a)
}

// gatedAppends is a gated log that blocks appends only.
type gatedAppends struct{ *gated }

func (l gatedAppends) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if err := l.wait(ctx, e.Agent); err != nil {
		return eventlog.Position{}, err
	}
	return l.Log.Append(ctx, e)
}

func (l gatedAppends) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	return l.Log.Head(ctx, a)
}

// TestBacklogIsBounded holds that the backlog of an agent whose append is slow is bounded in
// commands and in bytes. Commands beyond it are refused at once; commands for other agents of
// the partition are not.
func TestBacklogIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		admitted int
	}{"by number": {"x", 1000}, "by bytes": {strings.Repeat("x", 1<<20-100), 4}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := actorstest.New(t, nil)
				log := gatedAppends{newGated(s.Store(), func(a messages.AgentID) bool { return a == ada })}
				cfg := config(echo())
				cfg.Store.Log = log
				node := s.Start(cfg)
				defer end(node)
				var answers []func() messages.Answer
				for i := range c.admitted {
					answers = append(answers, node.Ask(ada, say(fmt.Sprint("u", i), c.text)))
				}
				refused := node.Do(ada, say("more", c.text))
				wantCode(t, refused, messages.Unavailable)
				if want := fmt.Sprintf("at most 1000 of %d bytes", 4<<20); refused.Err == nil || !strings.Contains(refused.Err.Message, want) || !strings.Contains(refused.Err.Message, "same id") {
					t.Errorf("got refusal %v, want one that contains %q", refused.Err, want)
				}
				node.Must(bob, say("u1", "hello"))
				close(log.open)
				for i, answer := range answers {
					if a := answer(); a.Err != nil && a.Err.Code != messages.QueueFull {
						t.Fatalf("command %d: got %v, want QueueFull or no error", i, a.Err)
					}
				}
				node.Must(ada, messages.Clear{ID: "c"})
			})
		})
	}
}

// TestStalledAgentRefusesAtOnce holds that commands for an agent whose log accepts no appends
// are refused at once, with the reason, and accepted again once it does.
func TestStalledAgentRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &full{Log: memlog.New()}
		s := actorstest.New(t, &eventlog.Store{Log: log})
		node := s.Start(config(echo()))
		defer end(node)
		log.is.Store(true)
		wantCode(t, node.Do(ada, say("u1", "one")), messages.Unavailable)
		now := time.Now()
		for i := range 2000 { // more than the backlog of an agent holds
			a := node.Do(ada, say(fmt.Sprint("again", i), "two"))
			if wantCode(t, a, messages.Unavailable); a.Err == nil || !strings.Contains(a.Err.Message, errFull.Error()) {
				t.Fatalf("got refusal %v, want one that contains %q", a.Err, errFull)
			}
		}
		if took := time.Since(now); took != 0 {
			t.Errorf("the refusals took %v of the fake clock, want 0", took)
		}
		log.is.Store(false)
		s.Until(ada, "turn.completed")
		node.Must(ada, say("u2", "two"))
	})
}

// ofPartition returns n agents of the partition.
func ofPartition(p messages.Partition, n int) (list []messages.AgentID) {
	for i := 0; len(list) < n; i++ {
		if a := actorstest.Agent("test", fmt.Sprint(p, "-", i)); a.Partition() == p {
			list = append(list, a)
		}
	}
	return list
}

// TestActivationsAreBounded holds that the number of concurrent activations is bounded on the
// node and in one partition, that active agents are served meanwhile, and that every agent is
// activated in the end.
func TestActivationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newGated(memlog.New(), func(a messages.AgentID) bool { return a != ada })
		s := actorstest.New(t, &eventlog.Store{Log: log})
		node := s.Start(config(echo()))
		defer end(node)
		node.Must(ada, say("u1", "hello"))
		s.Until(ada, "turn.completed")
		var answers []func() messages.Answer
		ask := func(agents []messages.AgentID) {
			for _, a := range agents {
				answers = append(answers, node.Ask(a, say("u1", "hello")))
			}
			synctest.Wait()
		}
		one := ada.Partition()
		ask(ofPartition(one, 100))
		if n := log.waits(); n != 8 {
			t.Errorf("got %d concurrent activations in one partition, want 8", n)
		}
		for p := range messages.Partitions {
			if messages.Partition(p) != one {
				ask(ofPartition(messages.Partition(p), 10))
			}
		}
		if n := log.waits(); n != 64 {
			t.Errorf("got %d concurrent activations, want 64", n)
		}
		node.Must(ada, say("u2", "hello"))
		s.Until(ada, "turn.completed", 2)
		close(log.open)
		for _, answer := range answers {
			if a := answer(); a.Err != nil {
				t.Error(a.Err)
			}
		}
		if log.most != 64 || log.mostOf != 8 {
			t.Errorf("at most %d concurrent activations, %d in one partition; want 64 and 8", log.most, log.mostOf)
		}
	})
}

// TestHeldCommandsAreBounded holds that a partition keeps a bounded number of commands for
// agents that wait to be activated, and answers all of them when it stops.
func TestHeldCommandsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newGated(memlog.New(), func(messages.AgentID) bool { return true })
		node := actorstest.New(t, &eventlog.Store{Log: log}).Start(config(echo()))
		agents := ofPartition(0, 13)
		var answers []func() messages.Answer
		for _, a := range agents[:8] { // these hold the tokens
			answers = append(answers, node.Ask(a, say("u1", "hello")))
		}
		for i := range 4000 {
			answers = append(answers, node.Ask(agents[8+i%4], say(fmt.Sprint("u", i), "hello")))
		}
		refused := node.Do(agents[12], say("u1", "hello"))
		wantCode(t, refused, messages.Unavailable)
		if refused.Err == nil || !strings.Contains(refused.Err.Message, "at most 4000 of") || !strings.Contains(refused.Err.Message, "same id") {
			t.Errorf("got refusal %v, want one that names the limit", refused.Err)
		}
		end(node)
		for _, answer := range answers {
			wantCode(t, answer(), messages.Unavailable)
		}
	})
}

// TestStalledActivationsReleaseTokens holds that the activation of an agent whose log does not
// answer does not keep other agents from being activated.
func TestStalledActivationsReleaseTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := ofPartition(ada.Partition(), 40)
		fails := make(map[messages.AgentID]bool)
		for _, a := range agents {
			fails[a] = a != ada
		}
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
			if fails[e.Agent] {
				return errFull
			}
			return nil
		}}
		node := s.Start(cfg)
		defer end(node)
		for _, a := range agents {
			node.Ask(a, say("u1", "hello"))
		}
		node.Must(ada, say("u1", "hello"))
	})
}
