package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

func TestCrashDuringModelCall(t *testing.T) { // A20
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("from the dead")), scripted.Say("hello to you"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "hello"))
	<-gate.Reached()
	node.Crash()
	gate.Release()
	if a := s.Start(config(model)).Activate(ada); a.Err != nil {
		t.Fatal(a.Err)
	}
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	if model.Calls() != 2 || count(all, "model.restarted") != 1 || count(all, "model.completed") != 1 || count(all, "agent.activated") != 1 {
		t.Errorf("got %d model calls and events %v, want 2 calls, the first restarted", model.Calls(), s.Types(ada))
	}
	if out := actorstest.Of[messages.TurnCompleted](all)[0].Output; out != "hello to you" {
		t.Errorf("got output %q, want %q", out, "hello to you")
	}
}

// crashed is a tool that blocks until its process crashes. When it runs a second time, it
// returns "ran again".
type crashed struct {
	mu      sync.Mutex
	keys    []string
	started chan struct{}
}

func (c *crashed) run(ctx context.Context) (string, error) {
	c.mu.Lock()
	c.keys = append(c.keys, tool.Key(ctx))
	first := len(c.keys) == 1
	c.mu.Unlock()
	if !first {
		return "ran again", nil
	}
	close(c.started)
	<-ctx.Done()
	return "", ctx.Err()
}

// runs returns the keys that the tool ran under.
func (c *crashed) runs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.keys)
}

// TestCrashWhileToolRuns crashes the node during a tool call, for each OnUnknown. It checks
// the outcome that the model is given and how often the tool ran.
func TestCrashWhileToolRuns(t *testing.T) { // A21, A22, A23
	for _, c := range []struct {
		name      string
		onUnknown tool.OnUnknown
		found     tool.Found
		result    string
		runs      int
		pauses    bool
	}{
		{"read_only", tool.ReadOnly, 0, "ran again", 2, false},
		{"rerun", tool.Rerun, 0, "ran again", 2, false},
		{"reconcile-done", tool.Reconcile, tool.Done, "found it", 1, false},
		{"reconcile-not-done", tool.Reconcile, tool.NotDone, "ran again", 2, false},
		{"reconcile-unsure", tool.Reconcile, tool.Unsure, "a person knows", 1, true},
		{"pause", tool.Pause, 0, "a person knows", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fn := crashed{started: make(chan struct{})}
			lost := toolOf("lost", c.onUnknown, fn.run)
			if c.onUnknown == tool.Reconcile {
				lost = lost.ReconcileWith(func(_ context.Context, key string) (string, tool.Found, error) {
					if want := fn.runs()[0]; key != want {
						t.Errorf("got key %q to reconcile, want %q", key, want)
					}
					return "found it", c.found, nil
				})
			}
			quickRuns := make(chan struct{}, 9)
			quick := toolOf("quick", tool.Pause, func(context.Context) (string, error) {
				quickRuns <- struct{}{}
				return "quick", nil
			})
			model := scripted.New(scripted.Ask(call("c1", "lost"), call("c2", "quick")), scripted.Say("done"))
			s := actorstest.New(t, nil)
			node := s.Start(config(model, lost, quick))
			node.Must(ada, say("u1", "go"))
			<-fn.started
			s.Until(ada, "tool.completed") // of the quick tool
			node.Crash()
			node = s.Start(config(model, lost, quick))
			if a := node.Activate(ada); a.Err != nil {
				t.Fatal(a.Err)
			}
			if c.pauses {
				s.Until(ada, "turn.paused")
				node.Must(ada, messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeCompleted, Result: c.result})
			}
			ends(t, s.Until(ada, "turn.completed"))
			wantItems(t, model.Requests()[1], "user go", "call c1", "call c2", "result c1 "+c.result, "result c2 quick")
			keys := fn.runs()
			if len(keys) != c.runs || len(slices.Compact(keys)) != 1 || keys[0] == "" {
				t.Errorf("got runs under keys %q, want %d under the same key", keys, c.runs)
			}
			if len(quickRuns) != 1 {
				t.Errorf("the tool that had completed ran %d times, want 1", len(quickRuns))
			}
		})
	}
}

func TestTwoOwners(t *testing.T) { // A26, A107
	running, canceled := make(chan struct{}), make(chan struct{})
	slow := toolOf("slow", tool.ReadOnly, func(ctx context.Context) (string, error) {
		select {
		case <-running: // on the second owner
			return "second", nil
		default:
		}
		close(running)
		<-ctx.Done()
		close(canceled)
		return "", ctx.Err()
	})
	model := scripted.New(scripted.Ask(call("c1", "slow")), scripted.Say("done"), scripted.Say("more"))
	old := newObserver()
	s := actorstest.New(t, nil)
	cfg, logs := config(model, slow), new(embeddedtest.Words)
	cfg.Observer, cfg.Logger = old, logs.Logger()
	logged := func(refused, notActivated int) {
		t.Helper()
		if n, m := strings.Count(logs.String(), "a write was refused"), strings.Count(logs.String(), "an agent was not activated"); n != refused || m != notActivated {
			t.Errorf("the first owner logged %d refused writes and %d failed activations, want %d and %d:\n%s", n, m, refused, notActivated, logs)
		}
	}
	first := s.Start(cfg)
	first.Must(ada, say("u1", "go"))
	<-running
	second := s.Start(config(model, slow))
	if a := second.Activate(ada); a.Err != nil {
		t.Fatal(a.Err)
	}
	s.Until(ada, "turn.completed")
	wantCode(t, first.Do(ada, say("u2", "lost")), messages.Unavailable)
	<-canceled
	<-old.fenced
	logged(1, 0)
	wantCode(t, first.Do(ada, say("u3", "lost")), messages.Unavailable)
	<-old.fenced // loaded again, and fenced again
	logged(1, 1)
	second.Must(ada, say("u4", "more"))
	all := s.Until(ada, "turn.completed", 2)
	ends(t, all)
	if count(all, "input.accepted") != 2 {
		t.Errorf("got events %v, want two inputs accepted", s.Types(ada))
	}
	epoch := messages.Epoch(0)
	for _, f := range s.Frames(ada) {
		if f.Epoch < epoch {
			t.Errorf("got a frame of epoch %d after one of %d, want epochs in order", f.Epoch, epoch)
		}
		epoch = f.Epoch
	}
}

// Owners that activate an agent at the same moment leave one history.
func TestOwnersRace(t *testing.T) { // A26
	for range 20 {
		s := actorstest.New(t, nil)
		nodes := []*actorstest.Node{s.Start(config(echo())), s.Start(config(echo())), s.Start(config(echo()))}
		var wait sync.WaitGroup
		for i, n := range nodes {
			wait.Go(func() { n.Do(ada, say(fmt.Sprint("u", i), "hello")) })
		}
		wait.Wait()
		insist(t, nodes[2], ada, say("last", "hello"))
		s.Await(ada, func(all []messages.Event) bool {
			return count(all, "turn.completed") == count(all, "input.accepted")
		})
		ends(t, s.Events(ada))
		for _, n := range nodes {
			n.Stop()
		}
	}
}

func TestFreshNode(t *testing.T) { // A27, state set before and between
	s := actorstest.New(t, nil)
	model := echo()
	node := s.Start(config(model))
	node.Must(ada, messages.SetState{ID: "s1", Patch: []byte(`{"plan":"free"}`)})
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	node.Crash()
	node = s.Start(config(model))
	node.Must(ada, say("u2", "two"))
	s.Until(ada, "turn.completed", 2)
	wantItems(t, model.Requests()[1], "user one", "assistant heard one", "user two")
	if types := s.Types(ada); types[0] != "agent.created" || types[2] != "state.patched" || count(s.Events(ada), "agent.configured") != 1 {
		t.Errorf("got events %v, want one agent.configured", types)
	}
}

func TestDamage(t *testing.T) { // A29
	log := memlog.New()
	s := actorstest.New(t, &eventlog.Store{Log: log})
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "hello"))
	s.Until(ada, "turn.completed")
	node.Crash()
	bad := &messages.Frame{ID: "bad", Epoch: 1, First: 99, Time: time.Now(), Events: []messages.Event{messages.StatePatched{}}}
	b, err := messages.EncodeFrame(ada, bad)
	if err != nil {
		t.Fatal(err)
	}
	log.Inject(eventlog.Entry{Agent: ada, Frame: bad, Bytes: b}, false)
	before := len(s.Frames(ada))
	node = s.Start(config(echo()))
	for i := range 3 {
		wantCode(t, node.Do(ada, say(fmt.Sprint("v", i), "hello")), messages.Damaged)
	}
	node.Must(bob, say("u1", "hello"))
	s.Until(bob, "turn.completed")
	if len(s.Frames(ada)) != before {
		t.Error("a frame was appended to the log of a damaged agent")
	}
}

// An agent whose events contradict one another still accepts an input and runs a turn.
func TestContradictoryEvents(t *testing.T) {
	s := actorstest.New(t, nil)
	s.Given(ada, messages.AgentCreated{Agent: ada.Full()}, messages.TurnStarted{Turn: "t2", MaxSteps: 5},
		messages.ModelFailed{Turn: "t2"}, messages.ModelRestarted{Turn: "t2"}, messages.ToolStarted{Turn: "t2", Call: "c1"},
		messages.ToolCompleted{Turn: "t9", Call: "c9"}, messages.TurnFailed{Turn: "t7"}, messages.ModelFailed{Turn: "t2"})
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "hello"))
	s.Until(ada, "turn.completed")
}

func TestDeadlineOfRetrySurvives(t *testing.T) { // A50: the time of the retry is recorded
	model := scripted.New(scripted.Fail(&providers.Error{Kind: providers.RateLimit, Temporary: true, RetryAfter: time.Hour}), scripted.Say("hello"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "hi"))
	at := actorstest.Of[messages.ModelFailed](s.Until(ada, "model.failed"))[0].RetryAt
	if at == nil || time.Until(*at) < 4*time.Minute || time.Until(*at) > 5*time.Minute {
		t.Fatalf("got a retry at %v, want it in five minutes, the maximum", at)
	}
	node.Crash()
	node = s.Start(config(model))
	if a := node.Activate(ada); a.Err != nil {
		t.Fatal(a.Err)
	}
	// The turn still waits, and can be aborted.
	node.Must(ada, messages.Abort{ID: "a1"})
	if all := s.Until(ada, "turn.aborted"); count(all, "model.requested") != 1 || model.Calls() != 1 {
		t.Errorf("got %d model calls and events %v, want one call", model.Calls(), s.Types(ada))
	}
}

// A retry that came due while the agent had no owner is made at once.
func TestOverdueRetry(t *testing.T) { // A50
	past := time.Now().Add(-time.Hour)
	s := actorstest.New(t, nil)
	s.Given(ada, messages.AgentCreated{Agent: ada.Full()}, messages.InputAccepted{Input: "u1", Content: messages.TextContent("hi"), Disposition: messages.Started, Turn: "t3"},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, MaxSteps: 5}, messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4"},
		messages.ModelFailed{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Kind: "network", RetryAt: &past},
		messages.TimerSet{Turn: "t3", Timer: "retry:m4", For: "retry", Call: "m4", Set: past, At: past})
	if a := s.Start(config(echo())).Activate(ada); a.Err != nil {
		t.Fatal(a.Err)
	}
	all := s.Until(ada, "turn.completed")
	if ends(t, all); actorstest.Of[messages.ModelRequested](all)[1].Attempt != 2 {
		t.Errorf("got events %v, want a second attempt", s.Types(ada))
	}
}

// A previous owner appends an agent's first frame after this owner found the log empty. The
// next activation reads the log again.
func TestFirstFrameComesLate(t *testing.T) { // A107
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	for range 2 {
		if a := node.Activate(ada); a.Err != nil || a.N != 0 {
			t.Fatalf("got answer %+v, want none of an event", a)
		}
	}
	s.Given(ada, messages.AgentCreated{Agent: ada.Full()},
		messages.InputAccepted{Input: "u1", Content: messages.TextContent("hello"), Disposition: messages.Started, Turn: "t3"},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, MaxSteps: 5}, messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4"})
	if a := node.Activate(ada); a.Err != nil {
		t.Fatal(a.Err)
	}
	s.Until(ada, "turn.completed")
}
