package actors_test

import (
	"context"
	"errors"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// picky is a log that never takes what follows from one command.
type picky struct {
	eventlog.Log
	command string
}

func (p picky) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	if e.Frame.Cause.ID == p.command {
		return eventlog.Tail{}, &eventlog.DamageError{Agent: e.Agent, Event: e.Frame.First, Err: errors.New("this is no frame")}
	}
	return p.Log.Append(ctx, e)
}

// A command that cannot be recorded is the agent's own failure, each time: whoever
// keeps such commands can tell it from one that only has to wait.
func TestWhatCannotBeRecorded(t *testing.T) { // A102
	s := actorstest.New(t, picky{memlog.New(), "bad"})
	node := s.Start(config(scripted.New(scripted.Say("hello"))))
	for range 2 {
		wantCode(t, node.Do(ada, say("bad", "hello")), messages.Internal)
	}
	node.Must(ada, say("good", "hello"))
	s.Until(ada, "turn.completed")
}
