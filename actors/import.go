package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

// importLog makes an agent without events one that begins with the events in a blob of its own.
func (a *agent) importLog(d *Deliver, c messages.Import, sender *actor.PID) {
	if err := a.state.RefuseImport(a.id, c.ID); err != nil {
		a.refuse(d, sender, err)
		return
	}
	l, err := a.rt.loadFrames(a.ctx, a.id, c)
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	def, err := a.kind.with(a.ctx, l.state.Forks.Set().Override(c.Set))
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	a.beginBehind(d, l, turn.ForkedFrame{Time: l.tail.Time}, def, sender)
}

// loadFrames folds the events that an agent is to begin with.
func (rt *Runtime) loadFrames(ctx context.Context, id messages.AgentID, c messages.Import) (*loading, error) {
	l := &loading{}
	p := messages.Prefix{Frames: c.Frames, Last: c.Last, Digest: c.Digest}
	err := l.apply(id, 0, prefix.Frames(ctx, rt.store, id, p, 0))
	switch damage := new(eventlog.DamageError); {
	case errors.As(err, &damage):
		return nil, messages.Refuse(messages.Damaged, "agent %s cannot be imported: %v", id, err)
	case err == nil && l.state.Life.Deleted != nil:
		return nil, messages.Refuse(messages.Conflict, "agent %s cannot be imported: by its events %s was deleted when it was exported", id, c.Source)
	case err != nil:
		return nil, messages.Refuse(messages.Unavailable, "the events that agent %s is to begin with cannot be read now: %v", id, err)
	}
	return l, nil
}
