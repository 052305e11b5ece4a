package actors_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// slow is a log in which each append waits for a value from next.
type slow struct {
	eventlog.Log
	next chan struct{}
}

func (l *slow) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	<-l.next
	return l.Log.Append(ctx, e)
}

// Outcomes that arrive during an append share the next frame.
func TestOutcomesShareAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slow{Log: memlog.New(), next: make(chan struct{})}
		s := actorstest.New(t, &eventlog.Store{Log: log})
		finish := make(chan struct{})
		work := toolOf("work", tool.ReadOnly, func(context.Context) (string, error) { <-finish; return "done", nil })
		model := scripted.New(scripted.Ask(call("c1", "work"), call("c2", "work"), call("c3", "work")), scripted.Say("done"))
		node := s.Start(config(model, work))
		wait := node.Ask(ada, say("u1", "go"))
		log.next <- struct{}{} // the input
		log.next <- struct{}{} // the calls
		synctest.Wait()
		set := node.Ask(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)})
		synctest.Wait() // its append has started
		close(finish)
		synctest.Wait()
		close(log.next)
		if a := set(); a.Err != nil {
			t.Error(a.Err)
		}
		wait()
		s.Until(ada, "turn.completed")
		for _, f := range s.Frames(ada) {
			if n := count(f.Events, "tool.completed"); n != 0 && n != 3 {
				t.Errorf("a frame has %d outcomes, want all 3 or none", n)
			}
		}
		end(node)
	})
}

// A model is sent the history of the event that requests its call: a summary that arrives with
// what begins the turn is in the next frame, and in the next request.
func TestSummaryBehindARequest(t *testing.T) { // A80
	synctest.Test(t, func(t *testing.T) {
		log := &slow{Log: memlog.New(), next: make(chan struct{}, 100)}
		s := actorstest.New(t, &eventlog.Store{Log: log})
		gate := scripted.NewGate()
		model := summarizes(func(providers.Request) scripted.Step {
			return scripted.Held(gate, scripted.Say("they said one"))
		})
		node := s.Start(config(model))
		for range 100 {
			log.next <- struct{}{}
		}
		for i, text := range []string{"one", "two"} {
			node.Must(ada, say(text, text))
			s.Until(ada, "turn.completed", i+1)
		}
		node.Must(ada, later("u3", "three", after(time.Minute)))
		node.Must(ada, messages.Compact{ID: "k1", Keep: 1, How: messages.CompactSummary})
		<-gate.Reached()
		for len(log.next) > 0 {
			<-log.next
		}
		set := node.Ask(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)})
		synctest.Wait() // its append has started
		<-time.After(time.Minute)
		synctest.Wait() // the input is due
		gate.Release()
		synctest.Wait() // the summary is made
		close(log.next)
		if a := set(); a.Err != nil {
			t.Error(a.Err)
		}
		all := s.Until(ada, "turn.completed", 3)
		if types := s.Types(ada); !slices.Contains(types, "history.compacted") {
			t.Errorf("got the events %v, want a summary among them", types)
		}
		ends(t, all)
		requests := model.Requests()
		wantItems(t, requests[len(requests)-1], "user one", "assistant heard one", "user two", "assistant heard two", "user three")
		end(node)
	})
}

// A partition that stops cancels the append in flight. Its sender and the commands queued
// behind it are refused; the next activation reads from the log whether the frame was stored.
func TestAppendIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &full{Log: memlog.New()}
		s := actorstest.New(t, &eventlog.Store{Log: log})
		model := echo()
		node := s.Start(config(model))
		log.is.Store(true)
		first, second := node.Ask(ada, say("u1", "one")), node.Ask(ada, say("u2", "two"))
		synctest.Wait()
		node.Stop()
		for _, a := range []messages.Answer{first(), second()} {
			if wantCode(t, a, messages.Unavailable); a.Err != nil && !strings.Contains(a.Err.Message, "try again with the same id") {
				t.Errorf("got refusal %q, want one that asks for the same id", a.Err.Message)
			}
		}
		log.is.Store(false)
		next := s.Start(config(model))
		next.Must(ada, say("u1", "one"))
		next.Must(ada, say("u2", "two"))
		all := s.Until(ada, "turn.completed", 2)
		if n := count(all, "input.accepted"); n != 2 || model.Calls() != 2 {
			t.Errorf("got %d inputs and %d model calls, want 2 of each", n, model.Calls())
		}
		end(next)
	})
}

// An error that a tool returns because its partition stops is not an outcome. The call is
// treated as lost, and its OnUnknown decides how it continues.
func TestCutOffIsNoOutcome(t *testing.T) { // A21
	for range 20 {
		s := actorstest.New(t, nil)
		began := make(chan struct{}, 1)
		work := toolOf("work", tool.Pause, func(ctx context.Context) (string, error) {
			began <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		})
		node := s.Start(config(scripted.New(scripted.Ask(call("c1", "work"))), work))
		node.Must(ada, say("u1", "go"))
		<-began
		node.Stop()
		if types := s.Types(ada); types[len(types)-1] != "tool.started" {
			t.Fatalf("got the events %v, want tool.started as the last one", types)
		}
	}
}

// A partition that stops cancels the effects of an agent whose append is in flight.
func TestEffectsAreCancelledDuringAnAppend(t *testing.T) {
	log := &slow{Log: memlog.New(), next: make(chan struct{})}
	s := actorstest.New(t, &eventlog.Store{Log: log})
	began, cancelled := make(chan struct{}), make(chan struct{})
	work := toolOf("work", tool.ReadOnly, func(ctx context.Context) (string, error) {
		close(began)
		<-ctx.Done()
		close(cancelled)
		return "", ctx.Err()
	})
	node := s.Start(config(scripted.New(scripted.Ask(call("c1", "work"))), work))
	node.Ask(ada, say("u1", "go"))
	log.next <- struct{}{} // the input
	log.next <- struct{}{} // the call
	<-began
	node.Ask(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)}) // its append blocks
	stopped := make(chan struct{})
	go func() {
		node.Stop()
		close(stopped)
	}()
	<-cancelled
	close(log.next)
	<-stopped
}
