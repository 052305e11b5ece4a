package logtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/messages"
)

func TestCheckNamesThePlace(t *testing.T) {
	a := logtest.Agent("ada")
	first := logtest.Entry(t, a, eventlog.Position{})
	tail := first.Position(7)
	for says, spoil := range map[string]func(*messages.Frame){
		"":                     func(*messages.Frame) {},
		"events are missing":   func(f *messages.Frame) { f.First = 3 },
		"the chain is broken":  func(f *messages.Frame) { f.Prev = "another" },
		"after one of epoch 1": func(f *messages.Frame) { f.Epoch = 0 },
	} {
		next := logtest.Entry(t, a, tail)
		spoil(next.Frame)
		err := eventlog.Check(tail, eventlog.Recorded{Agent: a, Seq: 9, Frame: next.Frame})
		var damage *eventlog.DamageError
		switch {
		case says == "" && err != nil:
			t.Errorf("a good frame: %v", err)
		case says != "" && (!errors.As(err, &damage) || damage.Event != 2 || damage.Seq != 9 || !strings.Contains(err.Error(), says)):
			t.Errorf("%v does not say %q at event 2, sequence 9", err, says)
		}
	}
}

// A tombstone may be the first frame that is left; nothing else may be, and a
// tombstone with a tail before it must follow that tail.
func TestCheckTombstones(t *testing.T) { // A108
	a := logtest.Agent("ada")
	tail := logtest.Entry(t, a, eventlog.Position{}).Position(7)
	noop := messages.CommandNoop{Command: "abort"}
	for _, c := range []struct {
		what   string
		behind eventlog.Position
		spoil  func(*messages.Frame)
		good   bool
	}{
		{"first in the log", eventlog.Position{}, func(*messages.Frame) {}, true},
		{"behind a foreign message", eventlog.Position{Seq: 3}, func(*messages.Frame) {}, true},
		{"behind what it follows", tail, func(*messages.Frame) {}, true},
		{"first, with another event", eventlog.Position{}, func(f *messages.Frame) { f.Events = append(f.Events, noop) }, false},
		{"first, another event alone", eventlog.Position{}, func(f *messages.Frame) { f.Events[0] = noop }, false},
		{"behind a gap", tail, func(f *messages.Frame) { f.First++ }, false},
		{"behind another frame", tail, func(f *messages.Frame) { f.Prev = "another" }, false},
	} {
		f := *logtest.Entry(t, a, tail).Frame
		f.Events = []messages.Event{messages.AgentDeleted{}}
		c.spoil(&f)
		err := eventlog.Check(c.behind, eventlog.Recorded{Agent: a, Seq: 9, Frame: &f})
		if (err == nil) != c.good {
			t.Errorf("%s: %v", c.what, err)
		}
		if c.behind == (eventlog.Position{}) {
			entry := eventlog.Entry{Agent: a, Frame: &f, Bytes: []byte("x"), Summary: eventlog.Summary{Phase: messages.PhaseIdle}}
			if entry.Validate() == nil {
				t.Errorf("%s: may be appended to an agent that has no frame", c.what)
			}
		}
	}
}

// answers is a log that returns the next error each time, and then succeeds.
type answers struct {
	errs []error
	ids  []messages.FrameID
}

func (l *answers) Append(_ context.Context, e eventlog.Entry) (eventlog.Position, error) {
	l.ids = append(l.ids, e.Frame.ID)
	if len(l.errs) == 0 {
		return e.Position(1), nil
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return eventlog.Position{}, err
}

func TestCommitTriesTheSameAgainUntilItIsResolved(t *testing.T) {
	e := logtest.Entry(t, logtest.Agent("ada"), eventlog.Position{})
	timeout, conflict := errors.New("timeout"), &eventlog.ConflictError{}
	for want, c := range map[string]struct {
		errs  []error
		final error
		tries int
	}{
		"success after two unknown": {[]error{timeout, timeout}, nil, 3},
		"a conflict is final":       {[]error{timeout, conflict}, conflict, 2},
		"too large is final":        {[]error{fmt.Errorf("no: %w", eventlog.ErrTooLarge)}, eventlog.ErrTooLarge, 1},
		"invalid is final":          {[]error{timeout, fmt.Errorf("no: %w", eventlog.ErrInvalid)}, eventlog.ErrInvalid, 2},
		"damage is final":           {[]error{&eventlog.DamageError{Err: timeout}}, timeout, 1},
	} {
		log := &answers{errs: c.errs}
		_, err := eventlog.Commit(context.Background(), log, e)
		if !errors.Is(err, c.final) || len(log.ids) != c.tries {
			t.Errorf("%s: %v after %d tries, want %v after %d", want, err, len(log.ids), c.final, c.tries)
		}
		for _, id := range log.ids {
			if id != e.Frame.ID {
				t.Errorf("%s: tried frame %s", want, id)
			}
		}
	}
}
