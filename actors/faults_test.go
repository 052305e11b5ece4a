package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Appends that are lost before or after they are stored, delayed or doubled lose nothing and
// repeat nothing.
func TestAppendsUnderFaults(t *testing.T) { // A6
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			work := toolOf("work", tool.Pause, func(context.Context) (string, error) { runs.Add(1); return "ok", nil })
			s := actorstest.New(t, nil)
			cfg := config(scripted.TwoStep("work", "{}"), work)
			cfg.Store.Log = logtest.NewFaulty(s.Store(), logtest.Plan(seed, 60)...)
			node := s.Start(cfg)
			for i := range 10 {
				id := fmt.Sprint("u", i)
				node.Must(ada, say(id, "go"))
				if a := node.Must(ada, say(id, "go")); !a.Duplicate {
					t.Errorf("the second %s: got %+v, want a duplicate", id, a)
				}
			}
			if order := ends(t, s.Until(ada, "turn.completed", 10)); len(order) != 10 || runs.Load() != 10 {
				t.Errorf("got %d turns and %d tool runs, want 10 of each", len(order), runs.Load())
			}
			node.Crash()
			s.Start(cfg).Must(ada, messages.Resume{ID: "r1"}) // the log can be read
		})
	}
}

// refusing is a log whose appends fail with the error that ask returns.
type refusing struct {
	eventlog.Log
	ask func(e eventlog.Entry) error
}

func (r *refusing) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if err := r.ask(e); err != nil {
		return eventlog.Position{}, err
	}
	return r.Log.Append(ctx, e)
}

// With a log that accepts small frames only, a large result is stored as a blob. No append is
// tried that the log would refuse.
func TestSmallLog(t *testing.T) { // A36, A102
	const limit = 40 << 10
	var runs atomic.Int32
	large := toolOf("large", tool.Rerun, func(context.Context) (string, error) {
		runs.Add(1)
		return strings.Repeat("x", 100<<10), nil
	})
	model := scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done"), scripted.Say("done"))
	s := actorstest.New(t, nil)
	cfg := config(model, large)
	cfg.MaxFrame = limit
	cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
		if len(e.Bytes) > limit {
			t.Errorf("got an append of %d bytes, want at most %d", len(e.Bytes), limit)
		}
		return nil
	}}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	if done := actorstest.Of[messages.ToolCompleted](all); len(done) != 1 || done[0].Output != "" || done[0].Blob == nil || done[0].Blob.Size != 100<<10 {
		t.Errorf("got no result of 100 KiB in a blob: %v", s.Types(ada))
	}
	node.Must(ada, say("u2", strings.Repeat("x", 90<<10)))
	s.Until(ada, "turn.completed", 2)
	// A field that cannot be stored as a blob is refused.
	wantCode(t, node.Do(ada, messages.Input{ID: "u3", Content: messages.TextContent("go"), Metadata: json.RawMessage(`"` + strings.Repeat("x", 90<<10) + `"`)}), messages.TooLarge)
}

// Commands behind one that is too large to store are not refused for its size.
func TestBehindTooLarge(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{})
	s := actorstest.New(t, nil)
	cfg := config(echo())
	var once sync.Once
	cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
		if len(e.Bytes) < 10<<10 {
			return nil
		}
		once.Do(func() { close(held) })
		<-hold
		return eventlog.ErrTooLarge
	}}
	node := s.Start(cfg)
	large := node.Ask(ada, say("u0", strings.Repeat("x", 20<<10)))
	<-held
	behind := node.Ask(ada, say("u1", "small"))
	close(hold)
	wantCode(t, large(), messages.TooLarge)
	if a := behind(); a.Err != nil {
		wantCode(t, a, messages.Unavailable)
		insist(t, node, ada, say("u1", "small"))
	}
}

// An agent with unfinished work continues without a command once its log accepts appends
// again.
func TestContinuesAfterFailure(t *testing.T) { // A30
	var failures atomic.Int32
	failures.Store(2)
	gate := scripted.NewGate()
	s := actorstest.New(t, nil)
	cfg := config(scripted.New(scripted.Held(gate, scripted.Say("lost")), scripted.Say("lost too"), scripted.Say("hello"), scripted.Say("hello")))
	cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
		if e.Frame.Cause.Type == "effect" && failures.Add(-1) >= 0 {
			return &eventlog.DamageError{Agent: e.Agent, Err: errors.New("for the test")}
		}
		return nil
	}}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	gate.Release()
	ends(t, s.Until(ada, "turn.completed")) // no further command was sent
}

// So does an agent whose log could not be read when it was activated.
func TestContinuesAfterFailedLoad(t *testing.T) { // A30
	gate := scripted.NewGate()
	s := actorstest.New(t, nil)
	model := scripted.New(scripted.Held(gate, scripted.Say("lost")), scripted.Say("hello"))
	node := s.Start(config(model))
	node.Must(ada, say("u1", "go"))
	<-gate.Reached()
	node.Crash()
	cfg := config(model)
	log := &unreadable{Log: s.Store().Log}
	log.failures.Store(2)
	cfg.Store.Log = log
	wantCode(t, s.Start(cfg).Activate(ada), messages.Unavailable)
	ends(t, s.Until(ada, "turn.completed"))
}

// unreadable is a log whose first tails cannot be read, and no newest frame is read ahead.
type unreadable struct {
	eventlog.Log
	failures atomic.Int32
}

func (u *unreadable) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	if u.failures.Add(-1) >= 0 {
		return eventlog.Position{}, errors.New("no connection")
	}
	return u.Log.Head(ctx, a)
}

func (u *unreadable) ReadAhead(context.Context, messages.Partition, []messages.AgentID) iter.Seq2[eventlog.Newest, error] {
	return func(yield func(eventlog.Newest, error) bool) { yield(eventlog.Newest{}, errors.New("no connection")) }
}

// Messages that arrive while agents are passivated are not lost.
func TestPassivationUnderFire(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(scripted.TwoStep("work", "{}"), toolOf("work", tool.ReadOnly, func(context.Context) (string, error) { return "ok", nil }))
	cfg.IdleAfter = 100 * time.Microsecond // passivated whenever there is nothing to do
	node := s.Start(cfg)
	var senders sync.WaitGroup
	for i := range 40 {
		agent := actorstest.Agent("test", fmt.Sprint("a", i))
		for p := range 3 {
			senders.Go(func() {
				for n := range 8 {
					if a := node.Do(agent, say(fmt.Sprintf("u%d-%d", p, n), "go")); a.Err != nil {
						t.Error(a.Err)
					}
				}
			})
		}
	}
	senders.Wait()
	for i := range 40 {
		agent := actorstest.Agent("test", fmt.Sprint("a", i))
		ends(t, s.Until(agent, "turn.completed", 24))
	}
}

func TestObserverPanics(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.Observer = &testObserver{panics: true}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "go"))
}

// wrong is a command that makes the state machine panic.
type wrong struct{ messages.Command }

// CommandType panics.
func (wrong) CommandType() string { panic("a bug") }

// A panic in an agent refuses the current command. The agent continues from its log, and no
// queued command is lost.
func TestAgentPanics(t *testing.T) {
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("lost")), scripted.Say("hello"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "go"))
	<-gate.Reached()
	wantCode(t, node.Do(ada, wrong{}), messages.Internal)
	ends(t, s.Until(ada, "turn.completed")) // without a further command
	if a := node.Must(ada, say("u1", "go")); !a.Duplicate {
		t.Errorf("the input again: got %+v, want a duplicate", a)
	}
}

// A node that stops answers the callers that wait for it.
func TestStopAnswers(t *testing.T) {
	reached := make(chan struct{})
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.Store.Log = &stuck{Log: s.Store().Log, reached: reached}
	node := s.Start(cfg)
	first := node.Ask(ada, say("u1", "go"))
	second := node.Ask(ada, say("u2", "go"))
	<-reached
	inactive := node.Ask(bob, say("u1", "go"))
	node.Stop()
	for _, wait := range []func() messages.Answer{first, second, inactive} {
		if a := wait(); a.Err == nil || a.Err.Code != messages.Unavailable || !strings.Contains(a.Err.Message, "same id") {
			t.Errorf("got %+v, want Unavailable and the advice to use the same id", a.Err)
		}
	}
}

// stuck is a log that never answers an append.
type stuck struct {
	eventlog.Log
	reached chan struct{}
	once    sync.Once
}

func (l *stuck) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if e.Agent == ada {
		l.once.Do(func() { close(l.reached) })
	}
	<-ctx.Done()
	return eventlog.Position{}, ctx.Err()
}

// No model and no tool is called before the log has acknowledged the frame that records the
// intent.
func TestIntentBeforeEffect(t *testing.T) {
	var runs atomic.Int32
	work := toolOf("work", tool.ReadOnly, func(context.Context) (string, error) { runs.Add(1); return "ok", nil })
	model := scripted.New(scripted.Ask(call("c1", "work")), scripted.Ask(call("c2", "work")), scripted.Say("done"))
	s := actorstest.New(t, nil)
	cfg := config(model, work)
	cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
		for range 1000 {
			runtime.Gosched() // a call that starts too early may start now
		}
		done := s.Events(e.Agent)
		if calls, tools := model.Calls(), int(runs.Load()); calls > count(done, "model.requested") || tools > count(done, "tool.started") {
			t.Errorf("got %d model calls and %d tool calls when the log held %v", calls, tools, s.Types(e.Agent))
		}
		return nil
	}}
	s.Start(cfg).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
}
