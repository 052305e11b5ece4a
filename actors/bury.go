package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// bury deletes an agent whose log cannot be read. What it did cannot be ended in
// order: its children and its parent hear nothing. It is given a tombstone, and
// what lies before that is removed; loaded again it is as any deleted agent.
func (a *agent) bury(cause messages.Cause, c messages.Delete, sender *actor.PID) {
	n, err := a.rt.bury(a.ctx, a.id, a.epoch, cause, messages.AgentDeleted{Reason: c.Reason})
	ans := messages.Answer{N: n}
	if err != nil {
		ans = messages.Answer{Err: messages.Refuse(messages.Unavailable, "agent %s is damaged and could not be deleted now: %v; try again", a.id, err)}
	} else {
		a.rt.logger.Warn("a damaged agent was deleted", a.id.LogAttr(a.epoch), "event", n)
	}
	a.answer(sender, ans)
	a.broken = messages.Refuse(messages.Unavailable, "agent %s is being deleted: try again with the same id when it is gone", a.id)
	a.leave(true)
}

// bury appends a tombstone behind the agent's newest frame, whatever that holds,
// and gives its number.
func (rt *Runtime) bury(ctx context.Context, id messages.AgentID, epoch messages.Epoch, cause messages.Cause, tombstone messages.AgentDeleted) (messages.EventNumber, error) {
	tail, err := rt.log.TailByHead(ctx, id)
	if err != nil {
		return 0, err
	}
	f := nextFrame(tail, epoch, cause, []messages.Event{tombstone})
	b, err := messages.EncodeFrame(id, f)
	if err != nil {
		return 0, err
	}
	state := turn.State{Last: tail.Last}
	state.Apply(f)
	if _, err := eventlog.Commit(ctx, rt.log, eventlog.Entry{Agent: id, Expect: tail, Frame: f, Bytes: b, Summary: Summarize(&state)}); err != nil {
		return 0, err
	}
	rt.uncover(ctx, id)
	return f.First, nil
}

// uncover removes what lies before a tombstone that is the agent's newest frame, or
// before the one that says what went with it, and says whether there is one: damage
// before that is of no concern any more. What
// it cannot remove now the next load does.
func (rt *Runtime) uncover(ctx context.Context, id messages.AgentID) bool {
	tail, err := rt.log.TailByHead(ctx, id)
	if err != nil {
		return false
	}
	rec, err := rt.log.FrameAt(ctx, id, tail.Seq)
	return err == nil && eventlog.Ends(rec.Frame) && rt.log.Purge(ctx, id, tail.Seq) == nil
}
