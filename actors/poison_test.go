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

// rejects is a log that rejects the frames of one command.
type rejects struct {
	eventlog.Log
	command string
}

func (p rejects) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if e.Frame.Cause.ID == p.command {
		return eventlog.Position{}, &eventlog.DamageError{Agent: e.Agent, Event: e.Frame.First, Err: errors.New("this is no frame")}
	}
	return p.Log.Append(ctx, e)
}

// A command whose frame the log rejects fails with Internal, each time, and not with the code
// of a command that only has to wait.
func TestRejectedFrame(t *testing.T) { // A102
	s := actorstest.New(t, &eventlog.Store{Log: rejects{memlog.New(), "bad"}})
	node := s.Start(config(scripted.New(scripted.Say("hello"))))
	for range 2 {
		wantCode(t, node.Do(ada, say("bad", "hello")), messages.Internal)
	}
	node.Must(ada, say("good", "hello"))
	s.Until(ada, "turn.completed")
}
