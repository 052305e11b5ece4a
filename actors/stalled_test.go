package actors_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// full is a log whose disk can be made full.
type full struct {
	eventlog.Log
	is    atomic.Bool
	tries atomic.Int64
}

var errFull = errors.New("no space left on device")

func (l *full) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	l.tries.Add(1)
	if l.is.Load() {
		return eventlog.Position{}, errFull
	}
	return l.Log.Append(ctx, e)
}

// While the log rejects appends, the sender of a command receives the reason after a few
// seconds. Once the log accepts appends again, each command has been applied once.
func TestFullDisk(t *testing.T) { // A30
	synctest.Test(t, func(t *testing.T) {
		log := &full{Log: memlog.New()}
		s := actorstest.New(t, &eventlog.Store{Log: log})
		model := echo()
		node := s.Start(config(model))
		log.is.Store(true)
		begun := time.Now()
		first, second := node.Ask(ada, say("u1", "one")), node.Ask(ada, say("u2", "two"))
		a := first()
		wantCode(t, a, messages.Unavailable)
		if a.Err == nil || !strings.Contains(a.Err.Message, errFull.Error()) || !strings.Contains(a.Err.Message, "same id") {
			t.Errorf("got refusal %v, want the reason and the advice to use the same id", a.Err)
		}
		if after := time.Since(begun); after > 10*time.Second {
			t.Errorf("got the answer after %v, want at most 10 s of the fake clock", after)
		}
		if model.Calls() != 0 {
			t.Error("a model was called before its intent was stored")
		}
		log.is.Store(false)
		s.Until(ada, "turn.completed")
		if a := node.Do(ada, say("u1", "one")); !a.Duplicate {
			t.Errorf("the same id again: got answer %+v, want a duplicate", a)
		}
		if a := second(); a.Err != nil || a.Duplicate {
			t.Errorf("the second input: got answer %+v, want it accepted", a)
		}
		s.Until(ada, "turn.completed", 2)
		if all := s.Events(ada); count(all, "input.accepted") != 2 || model.Calls() != 2 {
			t.Errorf("got %d inputs, %d model calls, want 2 of each", count(all, "input.accepted"), model.Calls())
		}
		end(node)
	})
}
