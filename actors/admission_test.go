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

// gated is a log that neither reads nor writes for the agents that are shut, until they are
// opened or ctx ends. It counts who waits there.
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

// waits returns how many wait now.
func (l *gated) waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// Tail is what an activation asks for first.
func (l *gated) Tail(ctx context.Context, a messages.AgentID) (eventlog.Tail, error) {
	if err := l.wait(ctx, a); err != nil {
		return eventlog.Tail{}, err
	}
	return l.Log.Tail(ctx, a)
}

// gatedAppends is gated in its appends alone.
type gatedAppends struct{ *gated }

func (l gatedAppends) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	if err := l.wait(ctx, e.Agent); err != nil {
		return eventlog.Tail{}, err
	}
	return l.Log.Append(ctx, e)
}

func (l gatedAppends) Tail(ctx context.Context, a messages.AgentID) (eventlog.Tail, error) {
	return l.Log.Tail(ctx, a)
}

// TestBacklogIsBounded holds that an agent whose append takes long is sent so many commands
// and bytes, and no more; the others are refused at once, and its neighbours are not.
func TestBacklogIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		admitted int
	}{"by number": {"x", 1000}, "by bytes": {strings.Repeat("x", 1<<20-100), 4}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := actorstest.New(t, nil)
				log := gatedAppends{newGated(s.Log(), func(a messages.AgentID) bool { return a == ada })}
				cfg := config(echo())
				cfg.Log = log
				node := s.Start(cfg)
				defer end(node)
				var answers []func() messages.Answer
				for i := range c.admitted {
					answers = append(answers, node.Ask(ada, say(fmt.Sprint("u", i), c.text)))
				}
				refused := node.Do(ada, say("more", c.text))
				wantCode(t, refused, messages.Unavailable)
				if want := fmt.Sprintf("at most 1000 of %d bytes", 4<<20); refused.Err == nil || !strings.Contains(refused.Err.Message, want) || !strings.Contains(refused.Err.Message, "same id") {
					t.Errorf("the refusal is %v", refused.Err)
				}
				node.Must(bob, say("u1", "hello"))
				close(log.open)
				for i, answer := range answers {
					if a := answer(); a.Err != nil && a.Err.Code != messages.QueueFull {
						t.Fatalf("command %d: %v", i, a.Err)
					}
				}
				node.Must(ada, messages.Clear{ID: "c"})
			})
		})
	}
}

// TestStalledAgentRefusesAtOnce holds that while an agent's log takes nothing, commands for it
// are refused with the reason when they come, and admitted again afterwards.
func TestStalledAgentRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &full{Log: memlog.New()}
		s := actorstest.New(t, log)
		node := s.Start(config(echo()))
		defer end(node)
		log.is.Store(true)
		wantCode(t, node.Do(ada, say("u1", "one")), messages.Unavailable)
		now := time.Now()
		for i := range 2000 { // more than wait for an agent
			a := node.Do(ada, say(fmt.Sprint("again", i), "two"))
			if wantCode(t, a, messages.Unavailable); a.Err == nil || !strings.Contains(a.Err.Message, errFull.Error()) {
				t.Fatalf("the refusal is %v", a.Err)
			}
		}
		if took := time.Since(now); took != 0 {
			t.Errorf("the refusals took %v of the false clock", took)
		}
		log.is.Store(false)
		s.Until(ada, "turn.completed")
		node.Must(ada, say("u2", "two"))
	})
}

// ofPartition returns so many agents of the partition.
func ofPartition(p messages.Partition, n int) (list []messages.AgentID) {
	for i := 0; len(list) < n; i++ {
		if a := actorstest.Agent("test", fmt.Sprint(p, "-", i)); a.Partition() == p {
			list = append(list, a)
		}
	}
	return list
}

// TestActivationsAreBounded holds that so many agents are activated at the same time, on the
// node and in one partition, that active agents work meanwhile, and that all come to their
// turn.
func TestActivationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newGated(memlog.New(), func(a messages.AgentID) bool { return a != ada })
		s := actorstest.New(t, log)
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
			t.Errorf("%d agents of one partition are activated at once", n)
		}
		for p := range messages.Partitions {
			if messages.Partition(p) != one {
				ask(ofPartition(messages.Partition(p), 10))
			}
		}
		if n := log.waits(); n != 64 {
			t.Errorf("%d agents are activated at once", n)
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
			t.Errorf("%d agents at once, %d of one partition", log.most, log.mostOf)
		}
	})
}

// TestHeldCommandsAreBounded holds that a partition keeps so many commands for agents that
// wait to be activated, and no more, and answers all of them when it stops.
func TestHeldCommandsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newGated(memlog.New(), func(messages.AgentID) bool { return true })
		node := actorstest.New(t, log).Start(config(echo()))
		agents := ofPartition(0, 13)
		var answers []func() messages.Answer
		for _, a := range agents[:8] { // these have the tokens
			answers = append(answers, node.Ask(a, say("u1", "hello")))
		}
		for i := range 4000 {
			answers = append(answers, node.Ask(agents[8+i%4], say(fmt.Sprint("u", i), "hello")))
		}
		refused := node.Do(agents[12], say("u1", "hello"))
		wantCode(t, refused, messages.Unavailable)
		if refused.Err == nil || !strings.Contains(refused.Err.Message, "at most 4000 of") || !strings.Contains(refused.Err.Message, "same id") {
			t.Errorf("the refusal is %v", refused.Err)
		}
		end(node)
		for _, answer := range answers {
			wantCode(t, answer(), messages.Unavailable)
		}
	})
}

// TestStalledActivationsReleaseTokens holds that activations of agents whose log takes nothing
// do not keep others from being activated.
func TestStalledActivationsReleaseTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := ofPartition(ada.Partition(), 40)
		fails := make(map[messages.AgentID]bool)
		for _, a := range agents {
			fails[a] = a != ada
		}
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.Log = &refusing{s.Log(), func(e eventlog.Entry) error {
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
