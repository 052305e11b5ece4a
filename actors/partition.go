package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// partition hosts the agents of one partition under one epoch. It spawns an
// agent when its first message arrives, puts idle ones to sleep, and keeps
// messages for one that is stopping.
type partition struct {
	rt *Runtime
	// ctx bounds all that its agents do.
	ctx    context.Context
	number messages.Partition
	epoch  messages.Epoch
	agents map[messages.AgentID]*child
	byPID  map[string]messages.AgentID
	// failed counts how often in a row agents have failed that are gone now and
	// will be activated again.
	failed map[messages.AgentID]failing
	ticker *time.Timer
	// handover is the drain under way; nil: there is none.
	handover *handover
	// stopping says that agents that end now do so because the partition does.
	stopping bool
	after    *afterlife
}

// child is an agent in memory.
type child struct {
	pid           *actor.PID
	spawned, used time.Time
	// leaving says that the agent was asked to sleep; held keeps what arrives
	// until it has answered or is gone.
	leaving bool
	held    []*actor.MessageEnvelope
	// again says that the agent is to be activated again once it is gone.
	again bool
	failing
}

// failing is how often in a row an agent failed without living long in between, and since
// when.
type failing struct {
	failures int
	since    time.Time
}

func (f failing) more() failing {
	if f.failures++; f.failures == 1 {
		f.since = time.Now()
	}
	return f
}

// pause is how long the agent rests: as long as it has been failing, so that pauses that
// are kept double, and those that others cut short by asking for the agent do not add up
// to more than what it fails of has lasted.
func (f failing) pause() time.Duration {
	return min(reviveAfter+time.Since(f.since), reviveMost)
}

// Partition returns the props of the actor that hosts partition p under epoch. The caller
// ends ctx before it stops the actor, and as soon as this node may not act as the
// partition's owner any more: appends, models and tools of its agents are cut off then.
func (r *Runtime) Partition(ctx context.Context, p messages.Partition, epoch messages.Epoch) *actor.Props {
	after := &afterlife{refusal: changingHands(p)}
	return actor.PropsFromProducer(func() actor.Actor {
		return &partition{
			rt: r, ctx: ctx, number: p, epoch: epoch, after: after,
			agents: make(map[messages.AgentID]*child), byPID: make(map[string]messages.AgentID), failed: make(map[messages.AgentID]failing),
		}
	}, actor.WithSupervisor(stopOnPanic), actor.WithDispatcher(r.crew), after.mailbox())
}

// stopOnPanic stops an agent whose panic it could not handle itself: its next
// activation replays the log, which a restart in place would not.
var stopOnPanic = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// What a partition and its agents tell one another.
type (
	sweep   struct{}                         // time to look for idle agents
	sleep   struct{}                         // to an agent: stop if you have nothing to do
	awake   struct{ agent messages.AgentID } // from an agent: not now
	leave   struct{}                         // to an agent: begin nothing that must not be cut off
	hushed  struct{ agent messages.AgentID } // from an agent: nothing of the kind runs here now
	leaving struct {                         // from an agent: stop me, I cannot go on
		agent messages.AgentID
		again bool
	}
	revive struct { // activate an agent that failed
		agent    messages.AgentID
		failures int
	}
)

// Receive handles one message.
func (p *partition) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		p.schedule(ctx)
	case *actor.Stopping:
		p.stop(ctx)
	case *actor.Stopped:
		p.after.stopped(ctx.ActorSystem().Root)
	case *Deliver:
		p.forward(ctx, m.Agent, m)
	case *Wake:
		p.forward(ctx, m.Agent, m)
	case Drain:
		p.drain(ctx)
	case Stay:
		p.stay(ctx)
	case hushed:
		p.hushed(ctx, m.agent)
	case awake:
		p.release(ctx, m.agent)
	case leaving:
		p.leaving(ctx, m)
	case sweep:
		p.sweep(ctx)
	case revive:
		if p.failed[m.agent].failures == m.failures && !p.stopping { // else it was asked for meanwhile
			p.spawn(ctx, m.agent)
		}
	case *actor.Terminated:
		p.gone(ctx, m)
	}
}

func (p *partition) refuse(a messages.AgentID, m any) error {
	if p.stopping {
		return changingHands(p.number)
	}
	if a.Partition() != p.number {
		return messages.Refuse(messages.Internal, "agent %s belongs to partition %s, not %s", a, a.Partition(), p.number)
	}
	return p.rt.takes(a, m)
}

func changingHands(p messages.Partition) *messages.Error {
	return messages.Refuse(messages.Unavailable, "partition %s is changing hands: try again with the same id", p)
}

func (p *partition) forward(ctx actor.Context, a messages.AgentID, m any) {
	if err := p.refuse(a, m); err != nil {
		if ctx.Sender() != nil {
			ctx.Respond(&messages.Answer{Err: messages.AsError(err)})
		}
		return
	}
	c := p.agents[a]
	if c == nil {
		c = p.spawnAt(ctx, a, tipOf(m))
	}
	c.used = time.Now()
	if c.leaving {
		c.held = append(c.held, &actor.MessageEnvelope{Message: m, Sender: ctx.Sender()})
		return
	}
	ctx.RequestWithCustomSender(c.pid, m, ctx.Sender())
}

// tipOf is what has been read ahead for the agent that a message is for.
func tipOf(m any) *eventlog.Tip {
	if w, ok := m.(*Wake); ok {
		return w.Tip
	}
	return nil
}

func (p *partition) spawn(ctx actor.Context, id messages.AgentID) *child {
	return p.spawnAt(ctx, id, nil)
}

func (p *partition) spawnAt(ctx actor.Context, id messages.AgentID, tip *eventlog.Tip) *child {
	kind := p.rt.kinds[id.Kind]
	if kind == nil {
		kind = undefined
	}
	after := &afterlife{refusal: p.after.refusal}
	leaving := p.handover != nil
	pid := ctx.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &agent{rt: p.rt, ctx: p.ctx, id: id, epoch: p.epoch, kind: kind, def: kind.now.Load(), after: after, leaving: leaving, tip: tip}
	}, actor.WithDispatcher(p.rt.crew), after.mailbox()))
	now := time.Now()
	c := &child{pid: pid, spawned: now, used: now, failing: p.failed[id]}
	delete(p.failed, id)
	p.agents[id] = c
	p.byPID[pid.Id] = id
	ctx.Watch(pid)
	return c
}

// leaving lets an agent go that cannot go on. One that was asked to sleep
// stops by itself when it comes to that.
func (p *partition) leaving(ctx actor.Context, m leaving) {
	c := p.agents[m.agent]
	if c == nil {
		return
	}
	c.again = m.again
	if !c.leaving {
		c.leaving = true
		ctx.Poison(c.pid)
	}
}

// release gives an agent that stays awake what was held for it.
func (p *partition) release(ctx actor.Context, a messages.AgentID) {
	c := p.agents[a]
	if c == nil || !c.leaving {
		return
	}
	held := c.held
	c.leaving, c.held = false, nil
	for _, e := range held {
		ctx.RequestWithCustomSender(c.pid, e.Message, e.Sender)
	}
}

// gone forgets an agent that has stopped. If messages wait for it, if it
// failed, or if it stopped without being asked to, it is activated again.
func (p *partition) gone(ctx actor.Context, m *actor.Terminated) {
	id, ok := p.byPID[m.Who.Id]
	if !ok || p.stopping {
		return
	}
	c := p.agents[id]
	delete(p.byPID, m.Who.Id)
	delete(p.agents, id)
	p.hushed(ctx, id)
	if time.Since(c.spawned) > reviveMost {
		c.failing = failing{}
	}
	switch {
	case len(c.held) > 0:
		next := p.spawn(ctx, id)
		if c.again {
			next.failing = c.more()
		}
		for _, e := range c.held {
			ctx.RequestWithCustomSender(next.pid, e.Message, e.Sender)
		}
	case c.again || !c.leaving:
		p.reviveLater(ctx, id, c.more())
	}
}

// The pauses before an agent that failed is activated again: they double.
const (
	reviveAfter = 100 * time.Millisecond
	reviveMost  = 30 * time.Second
)

func (p *partition) reviveLater(ctx actor.Context, id messages.AgentID, f failing) {
	p.failed[id] = f
	pause := f.pause()
	p.rt.logger.Warn("an agent that failed is activated again from its log",
		id.LogAttr(p.epoch), slog.Int("times", f.failures), slog.Duration("after", pause))
	self, root := ctx.Self(), ctx.ActorSystem().Root
	time.AfterFunc(pause, func() { root.Send(self, revive{id, f.failures}) })
}

func (p *partition) schedule(ctx actor.Context) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	p.ticker = time.AfterFunc(p.rt.idleAfter/4, func() { root.Send(self, sweep{}) })
}

func (p *partition) sweep(ctx actor.Context) {
	if p.stopping {
		return
	}
	before := time.Now().Add(-p.rt.idleAfter)
	for _, c := range p.agents {
		if !c.leaving && c.used.Before(before) {
			c.leaving = true
			ctx.Send(c.pid, sleep{})
		}
	}
	p.schedule(ctx)
}

// stop ends the partition. Its agents stop with it and answer those who wait
// there; what is held here is answered here.
func (p *partition) stop(ctx actor.Context) {
	p.ticker.Stop()
	p.stopping = true
	for _, c := range p.agents {
		for _, e := range c.held {
			if e.Sender != nil {
				ctx.Send(e.Sender, &messages.Answer{Err: changingHands(p.number)})
			}
		}
		c.held = nil
	}
}
