package actors_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// slow is a log whose appends wait, each for a message in next.
type slow struct {
	eventlog.Log
	next chan struct{}
}

func (l *slow) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	<-l.next
	return l.Log.Append(ctx, e)
}

// Outcomes that come during an append share the frame behind it.
func TestOutcomesShareAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slow{Log: memlog.New(), next: make(chan struct{})}
		s := actorstest.New(t, log)
		finish := make(chan struct{})
		work := toolOf("work", tool.ReadOnly, func(context.Context) (string, error) { <-finish; return "done", nil })
		model := scripted.New(scripted.Ask(call("c1", "work"), call("c2", "work"), call("c3", "work")), scripted.Say("done"))
		node := s.Start(config(model, work))
		wait := node.Ask(ada, say("u1", "go"))
		log.next <- struct{}{} // the input
		log.next <- struct{}{} // the calls
		synctest.Wait()
		set := node.Ask(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)})
		synctest.Wait() // its append is under way
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
				t.Errorf("a frame has %d of the 3 outcomes", n)
			}
		}
		end(node)
	})
}

// A partition that stops cuts off the append that is being tried: its sender and those who
// wait behind it are refused, and what became of it is read by the next activation.
func TestAppendIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &full{Log: memlog.New()}
		s := actorstest.New(t, log)
		model := echo()
		node := s.Start(config(model))
		log.is.Store(true)
		first, second := node.Ask(ada, say("u1", "one")), node.Ask(ada, say("u2", "two"))
		synctest.Wait()
		node.Stop()
		for _, a := range []messages.Answer{first(), second()} {
			if wantCode(t, a, messages.Unavailable); a.Err != nil && !strings.Contains(a.Err.Message, "try again with the same id") {
				t.Errorf("refused with %q", a.Err.Message)
			}
		}
		log.is.Store(false)
		next := s.Start(config(model))
		next.Must(ada, say("u1", "one"))
		next.Must(ada, say("u2", "two"))
		all := s.Until(ada, "turn.completed", 2)
		if n := count(all, "input.accepted"); n != 2 || model.Calls() != 2 {
			t.Errorf("%d inputs, %d model calls", n, model.Calls())
		}
		end(next)
	})
}

// What an effect makes of the end of its partition is no outcome: the call is lost, and its
// OnUnknown decides what becomes of it.
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
			t.Fatalf("the log ends with %v", types)
		}
	}
}

// A partition that stops cancels the effects of an agent whose append is under way.
func TestEffectsAreCancelledDuringAnAppend(t *testing.T) {
	log := &slow{Log: memlog.New(), next: make(chan struct{})}
	s := actorstest.New(t, log)
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
	node.Ask(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)}) // its append waits
	stopped := make(chan struct{})
	go func() {
		node.Stop()
		close(stopped)
	}()
	<-cancelled
	close(log.next)
	<-stopped
}
