package actors_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// readings is a log that records which agents are read.
type readings struct {
	eventlog.Log
	mu   sync.Mutex
	keys []string
}

// Tail is the first call of an activation.
func (l *readings) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	l.mu.Lock()
	l.keys = append(l.keys, a.Key)
	l.mu.Unlock()
	return l.Log.Head(ctx, a)
}

// take returns the keys of the agents read since the previous call.
func (l *readings) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.keys
	l.keys = nil
	return keys
}

func keyed(key string) messages.AgentID { return actorstest.Agent("test", key) }

// TestLeastRecentlyUsedLeave checks that beyond the number of agents in memory, or their
// size, the least recently used one is passivated. It is read again when a command arrives
// for it.
func TestLeastRecentlyUsedLeave(t *testing.T) {
	for name, byBytes := range map[string]bool{"by number": false, "by bytes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &readings{Log: memlog.New()}
				cfg := config(echo())
				cfg.IdleAfter, cfg.SnapshotEvery = 1000*time.Hour, -1
				cfg.MaxAgents = 3
				if byBytes {
					cfg.MaxAgents, cfg.AgentMemory = 100, 350_000 // agents of a little more than 100 KB each
				}
				node := actorstest.New(t, &eventlog.Store{Log: log}).Start(cfg)
				defer end(node)
				use := func(key, id string, want ...string) {
					t.Helper()
					text := "again"
					if id == "u1" {
						text = many("x")[:50_000]
					}
					node.Must(keyed(key), say(id, text))
					synctest.Wait()
					if got := log.take(); !slices.Equal(got, want) {
						t.Errorf("%s: got reads of %v, want %v", key, got, want)
					}
				}
				for _, key := range []string{"a", "b", "c"} {
					use(key, "u1", key)
				}
				use("a", "u2")
				use("d", "u1", "d")
				if n := node.Runtime().InMemory(); n != 3 {
					t.Errorf("got %d agents in memory, want 3", n)
				}
				use("a", "u3")
				use("c", "u2")
				use("b", "u2", "b")
			})
		})
	}
}

// TestAgentsAtWorkStay checks that an agent with a turn stays in memory, however many others
// are activated.
func TestAgentsAtWorkStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := scripted.NewGate()
		model := scripted.New(scripted.Held(gate, scripted.Say("done")))
		log := &readings{Log: memlog.New()}
		cfg := config(model)
		cfg.MaxAgents = 1
		s := actorstest.New(t, &eventlog.Store{Log: log})
		node := s.Start(cfg)
		defer end(node)
		node.Must(ada, say("u1", "work"))
		<-gate.Reached()
		for i := range 20 {
			node.Must(keyed(fmt.Sprint("other", i)), messages.SetState{ID: "s", Patch: []byte(`{"a":1}`)})
			synctest.Wait()
			if n := node.Runtime().InMemory(); n != 1 {
				t.Fatalf("got %d agents in memory, want 1", n)
			}
		}
		log.take()
		node.Must(ada, messages.SetState{ID: "s", Patch: []byte(`{"a":1}`)})
		if read := log.take(); len(read) != 0 {
			t.Errorf("got reads of %v, want none", read)
		}
		gate.Release()
		s.Until(ada, "turn.completed")
		node.Must(bob, messages.SetState{ID: "s", Patch: []byte(`{"a":1}`)})
		synctest.Wait()
		if n := node.Runtime().InMemory(); n != 1 {
			t.Errorf("got %d agents in memory after the turn, want 1", n)
		}
	})
}

// TestAgentsThatLeaveLoseNothing sends commands concurrently to more agents than stay in
// memory. Every input ends.
func TestAgentsThatLeaveLoseNothing(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.MaxAgents = 2
	node := s.Start(cfg)
	var senders sync.WaitGroup
	for i := range 60 {
		senders.Go(func() {
			for n := range 10 {
				if a := node.Do(keyed(fmt.Sprint(i%20)), say(fmt.Sprint(i, "-", n), "go")); a.Err != nil {
					t.Error(a.Err)
				}
			}
		})
	}
	senders.Wait()
	for i := range 20 {
		ends(t, s.Until(keyed(fmt.Sprint(i)), "turn.completed", 30))
	}
}
