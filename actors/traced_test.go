package actors_test

import (
	"context"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
)

// The frames of commands that the turn machine does not get alone have the commands' trace context, too.
func TestFramesHaveTraces(t *testing.T) {
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "one"))
	at := messages.EventNumber(len(s.Until(ada, "turn.completed")))
	yan := actorstest.Agent("test", "yan")
	const trace = messages.TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=1")
	for _, c := range []struct {
		to      messages.AgentID
		command messages.Command
	}{
		{zoe, messages.BeginFork{ID: "b1", Parent: ada.Full(), At: at}},
		{yan, importOf(t, s, yan, s.Frames(ada))},
		{yan, messages.Delete{ID: "d1"}},
	} {
		d := &actors.Deliver{Agent: c.to, Command: c.command, Trace: trace}
		if answer := node.Deliver(d); answer.Err != nil {
			t.Fatal(answer.Err)
		}
		frames := s.Frames(c.to)
		if last := frames[len(frames)-1]; last.Cause.ID != messages.IDOf(c.command) || last.Trace != trace {
			t.Errorf("%s: got a frame of %s with the trace context %q", c.command.CommandType(), last.Cause.ID, last.Trace)
		}
	}
}

// The command that a fork begins with is sent in the trace of the one that asked for the fork, also by the next
// owner of its parent.
func TestForksHaveTraces(t *testing.T) { // A81
	s := actorstest.New(t, nil)
	cfg := config(echo())
	sent := make(chan messages.TraceContext, 2)
	cfg.Send = func(ctx context.Context, _ messages.AgentID, _ messages.Command) error {
		sent <- messages.TraceIn(ctx)
		<-ctx.Done()
		return ctx.Err()
	}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	const trace = messages.TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=1")
	if answer := node.Deliver(&actors.Deliver{Agent: ada, Command: messages.Fork{ID: "f1", Fork: zoe.Full()}, Trace: trace}); answer.Err != nil {
		t.Fatal(answer.Err)
	}
	for _, owner := range []string{"first", "next"} {
		if got := <-sent; got != trace {
			t.Errorf("the %s owner sends the fork's beginning with trace %q, want %q", owner, got, trace)
		}
		node.Crash()
		node = s.Start(cfg)
		node.Activate(ada)
	}
}
