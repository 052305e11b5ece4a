package actors_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// counting is a log that counts the reads of single agents.
type counting struct {
	eventlog.Log
	reads atomic.Int64
}

func (l *counting) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	l.reads.Add(1)
	return l.Log.Read(ctx, a, r)
}

// A repeated command for which no caller waits is answered without a read of the log, so that
// the backlog of a lost consumer is cheap. A repetition with other content is refused all the
// same. The log of a new agent, which has no tail, is not read either.
func TestUnaskedRepetition(t *testing.T) { // A8
	log := &counting{Log: memlog.New()}
	s := actorstest.New(t, &eventlog.Store{Log: log})
	node := s.Start(config(echo()))
	first := node.Must(ada, say("u1", "one"))
	if n := log.reads.Load(); n != 0 {
		t.Errorf("got %d reads of the log of a new agent, want none", n)
	}
	s.Until(ada, "turn.completed")
	deliver := func(in messages.Input) messages.Answer {
		return node.Deliver(&actors.Deliver{Agent: ada, Command: in, Cause: messages.Cause{Endpoint: "in"}, Unasked: true})
	}
	before := log.reads.Load()
	if a := deliver(say("u1", "one")); !a.Duplicate || a.N != first.N || a.Err != nil {
		t.Errorf("got answer %+v, want a duplicate", a)
	}
	if n := log.reads.Load() - before; n != 0 {
		t.Errorf("got %d reads of the log, want none", n)
	}
	wantCode(t, deliver(say("u1", "two")), messages.Conflict)
	end(node)
}
