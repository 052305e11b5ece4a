package actors

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Evidence is what is known of agents' logs from other sources than the logs: a log
// that lost its end looks like one that never was longer. Its methods are called
// from many goroutines and must not block.
type Evidence interface {
	// Whole returns why the log that holds the agent cannot be relied on now; nil: it
	// can. The agent's newest frame is at a sequence; 0: it has none.
	Whole(a messages.AgentID, newest uint64) error
	// Seen returns the newest event of the agent that was seen in the log, and when
	// its frame was written. Zero: none was.
	Seen(a messages.AgentID) (messages.EventNumber, time.Time)
	// Counts reports whether a frame of the agent that was seen at a sequence, written at
	// a time, must still be there: not if a person has accepted since that the stream
	// lost messages, nor if the servers may have lost it with their power.
	Counts(a messages.AgentID, seq uint64, at time.Time) bool
}

// seen is an event that an agent had, by its source.
type seen struct {
	source string
	n      messages.EventNumber
	seq    uint64 // of its frame; 0 if that is not known
	at     time.Time
}

// errShortened is wrapped by the error of a log that ends before what was seen of it.
var errShortened = errors.New("events that were stored are not there any more")

// newestSeen returns what is known of the agent before its log is read.
func (rt *Runtime) newestSeen(id messages.AgentID) seen {
	if rt.evidence == nil {
		return seen{}
	}
	n, at := rt.evidence.Seen(id)
	return seen{source: "this node has seen", n: n, at: at}
}

// whole returns an error if the agent's log cannot be relied on, or ends with tail
// though more was seen of it later.
func (rt *Runtime) whole(id messages.AgentID, tail eventlog.Position, all ...seen) error {
	if rt.evidence != nil {
		if err := rt.evidence.Whole(id, tail.Seq); err != nil {
			return err
		}
	}
	for _, s := range all {
		if s.n > tail.Last && !s.at.Before(tail.Time) && (rt.evidence == nil || rt.evidence.Counts(id, s.seq, s.at)) {
			return &eventlog.DamageError{Agent: id, Event: tail.Last + 1, Err: fmt.Errorf("%w: %s event %d, and the log ends with %d", errShortened, s.source, s.n, tail.Last)}
		}
	}
	return nil
}
