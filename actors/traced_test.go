package actors_test

import (
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
