package actors

import (
	"context"
	"errors"
	"iter"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A fork is made in three frames, each of which is written again after a crash until the next one is:
//
//	[fork.requested]  of the parent, which sends messages.BeginFork from then on
//	[agent.forked …]  of the fork, which begins with the state of its parent
//	[fork.settled]    of the parent, which the fork's owner reports to it
//
// Package eventlog/prefix reads the parent's events in front of the fork's own.

// fork has a fork of the agent requested, unless an agent of that name exists.
func (a *agent) fork(d *Deliver, c messages.Fork, sender *actor.PID) {
	_, again := a.state.Processed(c.ID)
	if id, _ := messages.ParseAgentID(c.Fork); !again && id.Tenant == a.id.Tenant { // an agent of another tenant is refused unseen
		err := a.rt.free(a.ctx, c.Fork, a.state.Forks.Set().Override(c.Set))
		if err == nil {
			err = a.refuseCopied(c.At)
		}
		if err != nil {
			a.refuse(d, sender, err)
			return
		}
	}
	a.execute(d, sender)
}

// refuseCopied refuses a fork at an event that the agent, a fork, has copied, while its parent has it, too:
// as long as it has, the event is read there, and the copy has another digest than the new fork would name.
func (a *agent) refuseCopied(at messages.EventNumber) error {
	o := a.state.Forks.Origin
	if o == nil || !o.Detached || at == 0 || at > o.At {
		return nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, waitLimit)
	defer cancel()
	first, err := eventlog.First(a.rt.store.Read(ctx, o.Parent, eventlog.From(at)))
	switch damage := new(eventlog.DamageError); {
	case errors.As(err, &damage):
		return messages.Refuse(messages.Damaged, "event %d of agent %s is one of its parent %s, where it is damaged: %v; fork %s at one of its own events, from %d on, or %s before the damage", at, a.id, o.Parent, err, a.id, o.At+1, o.Parent)
	case err != nil:
		return messages.Refuse(messages.Unavailable, "whether agent %s still has event %d cannot be read now: %v; try again with the same id", o.Parent, at, err)
	case first.Frame != nil && first.Frame.First <= at:
		return turn.RefuseBorrowed(a.id, o.Parent, at)
	}
	return nil
}

// free refuses a name for a fork that is no agent's of a kind that is defined here, or that an agent
// has or had, and changes that the kind cannot have. The fork's owner checks that again.
func (rt *Runtime) free(ctx context.Context, fork string, set messages.ForkChanges) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	id, err := messages.ParseAgentID(fork)
	if err == nil {
		err = rt.Serves(id.Kind)
	}
	if err == nil {
		_, err = rt.kinds[id.Kind].with(ctx, set)
	}
	if err != nil {
		return err
	}
	switch tail, err := rt.store.Head(ctx, id); {
	case err != nil:
		return messages.Refuse(messages.Unavailable, "whether agent %s exists cannot be read now: %v; try again with the same id", id, err)
	case tail.Last != 0:
		return messages.Refuse(messages.Conflict, "agent %s exists, or did, with %d events: choose another name for the fork", id, tail.Last)
	}
	return nil
}

// beginFork makes an agent without events a fork.
func (a *agent) beginFork(d *Deliver, c messages.BeginFork, sender *actor.PID) {
	if err := a.state.RefuseFork(a.id, c); err != nil {
		a.refuse(d, sender, err)
		return
	}
	def, err := a.kind.with(a.ctx, c.Set)
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	l, in, err := a.rt.loadPrefix(a.ctx, a.epoch, c)
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	a.beginBehind(d, l, in, def, sender)
}

// beginBehind makes an agent without events one that begins behind the events that were loaded, by the
// command for that.
func (a *agent) beginBehind(d *Deliver, l *loading, in turn.ForkedFrame, def *definition, sender *actor.PID) {
	before, env := a.replayed, a.env()
	// The place in another log says nothing of this one, and callers there are not this agent's.
	a.replayed = replayed{state: l.state, tail: eventlog.Position{Seq: before.tail.Seq, Last: l.tail.Last, Time: l.tail.Time}}
	a.unsaved.events, a.size = int(l.tail.Last), 0
	env.Definition, env.Next, env.Forked = def.turn, &def.turn, in
	events, err := a.decide(env, d.Command)
	if err != nil {
		a.replayed = before
		a.refuse(d, sender, err)
		return
	}
	a.def, a.changed = def, changed{def: def}
	a.commitFrame(a.frameOf(d, events), sender)
}

// loadPrefix folds the events of a parent up to the one at which it is forked: those behind its
// newest snapshot if that is older, else all of them. It returns the frame that holds the last one.
func (rt *Runtime) loadPrefix(ctx context.Context, epoch messages.Epoch, c messages.BeginFork) (*loading, turn.ForkedFrame, error) {
	parent, err := messages.ParseAgentID(c.Parent)
	if err != nil {
		return nil, turn.ForkedFrame{}, err
	}
	var in turn.ForkedFrame
	l := rt.restore(ctx, parent, epoch)
	if l.tail.Last > c.At {
		l = &loading{}
	}
	err = l.apply(parent, 0, upto(rt.store.Read(ctx, parent, eventlog.Behind(l.tail)), c.At, &in))
	if err != nil && l.first == 0 { // the snapshot does not fit the log
		l = &loading{}
		err = l.apply(parent, 0, upto(rt.store.Read(ctx, parent, eventlog.Range{}), c.At, &in))
	}
	switch damage := new(eventlog.DamageError); {
	case errors.As(err, &damage):
		err = messages.Refuse(messages.Damaged, "agent %s cannot be forked at event %d: %v", parent, c.At, err)
	case err != nil:
		err = messages.Refuse(messages.Unavailable, "agent %s cannot be read now: %v", parent, err)
	case l.tail.Last != c.At || l.state.Life.Deleted != nil: // or it is the tombstone
		err = messages.Refuse(messages.NotFound, "event %d of agent %s is not stored (any more)", c.At, parent)
	}
	in.Digest, in.Time = l.tail.Digest, l.tail.Time
	return l, in, err
}

// upto yields the frames up to an event, the last one without what is behind it, and sets in to
// that one.
func upto(frames iter.Seq2[eventlog.Recorded, error], last messages.EventNumber, in *turn.ForkedFrame) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for rec, err := range frames {
			if err == nil {
				if rec.Frame.First > last {
					return
				}
				in.First, in.Last = rec.Frame.First, rec.Frame.Last()
				rec = rec.Upto(last)
			}
			if !yield(rec, err) || err != nil || rec.Frame.Last() == last {
				return
			}
		}
	}
}

// refuseForks returns why the agent cannot be deleted: a fork of it is to begin, or its events are those
// of forks, too. Nil: it can be.
func (a *agent) refuseForks() error {
	for _, f := range a.state.Forks.List {
		if f.Status == projections.ForkPending {
			return messages.Refuse(messages.Unavailable, "agent %s is being forked as %s: send the delete again with the same id", a.id, f.Agent)
		}
	}
	return a.refuseForked(a.state.Forks.List)
}

// readableForks returns the forks that an agent's log has on record before its damage, or before what
// cannot be decrypted.
func (rt *Runtime) readableForks(ctx context.Context, id messages.AgentID) ([]projections.Fork, error) {
	l := &loading{}
	err := l.apply(id, 0, rt.store.Read(ctx, id, eventlog.Range{}))
	if damage := new(eventlog.DamageError); errors.As(err, &damage) || errors.Is(err, messages.ErrLocked) || errors.Is(err, errEncrypted) {
		err = nil
	}
	return l.state.Forks.List, err
}

// refuseForked returns why the agent cannot be deleted: its events are those of forks, too. Nil: they
// are not.
func (a *agent) refuseForked(forks []projections.Fork) error {
	for _, f := range forks {
		needed, err := a.neededBy(f)
		switch {
		case err != nil:
			return messages.Refuse(messages.Unavailable, "whether fork %s still begins with the events of agent %s cannot be read: %v; send the delete again with the same id", f.Agent, a.id, err)
		case needed:
			return messages.Refuse(messages.Conflict, "agent %s has forks that begin with its events, such as %s: have them copy these (--detach), or delete them, first or with it (--cascade)", a.id, f.Agent)
		}
	}
	return nil
}

// neededBy reports whether a fork begins with the agent's events and has no copy of them. One whose log
// is damaged has none.
func (a *agent) neededBy(f projections.Fork) (bool, error) {
	ctx, cancel := context.WithTimeout(a.ctx, waitLimit)
	defer cancel()
	damage := new(eventlog.DamageError)
	first, err := eventlog.First(a.rt.store.Read(ctx, f.Agent, eventlog.From(f.At+1)))
	if errors.As(err, &damage) {
		return true, nil
	}
	if p, forked := messages.PrefixOf(first.Frame); err != nil || !forked || p.Agent != a.id {
		return false, err
	}
	l, err := a.rt.load(ctx, f.Agent, a.epoch, nil)
	if errors.As(err, &damage) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	o := l.state.Forks.Origin // nil: the fork has been deleted
	return o != nil && !o.Owned(), nil
}
