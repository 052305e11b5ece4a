package actors

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/messages"
)

// partition hosts the agents of one partition under one epoch. It spawns an
// agent when its first message arrives, puts idle ones to sleep, and keeps
// messages for one that is stopping.
type partition struct {
	rt     *Runtime
	number messages.Partition
	epoch  messages.Epoch
	agents map[messages.AgentID]*child
	byPID  map[string]messages.AgentID
	ticker *time.Timer
	// stopping says that agents that end now do so because the partition does.
	stopping bool
}

// child is an agent in memory.
type child struct {
	pid  *actor.PID
	used time.Time
	// leaving says that the agent was asked to sleep; held keeps what arrives
	// until it has answered or is gone.
	leaving bool
	held    []*actor.MessageEnvelope
	crashes int
}

// Partition gives the props of the actor that hosts partition p under epoch.
func (r *Runtime) Partition(p messages.Partition, epoch messages.Epoch) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &partition{rt: r, number: p, epoch: epoch, agents: make(map[messages.AgentID]*child), byPID: make(map[string]messages.AgentID)}
	}, actor.WithSupervisor(stopOnPanic))
}

// stopOnPanic stops an agent that panics: its next activation replays the log,
// which a restart in place would not.
var stopOnPanic = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// What a partition and its agents tell one another.
type (
	sweep   struct{}                         // time to look for idle agents
	sleep   struct{}                         // to an agent: stop if you have nothing to do
	awake   struct{ agent messages.AgentID } // from an agent: not now
	leaving struct{ agent messages.AgentID } // from an agent: stop me, I cannot go on
	revive  struct {
		agent   messages.AgentID
		crashes int
	} // after a panic
)

// Receive handles one message.
func (p *partition) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		p.schedule(ctx)
	case *actor.Stopping:
		p.ticker.Stop()
		p.stopping = true
	case *Deliver:
		if err := p.refuse(m.Agent); err != nil {
			ctx.Respond(&Answer{Err: messages.AsError(err)})
			return
		}
		p.forward(ctx, m.Agent, m)
	case *Wake:
		if err := p.refuse(m.Agent); err != nil {
			p.rt.logger.Warn("an agent owes work but cannot run here", "agent", m.Agent.String(), "error", err)
			return
		}
		p.forward(ctx, m.Agent, m)
	case awake:
		p.release(ctx, m.agent)
	case leaving:
		if c := p.agents[m.agent]; c != nil && !c.leaving {
			c.leaving = true
			ctx.Poison(c.pid)
		}
	case sweep:
		p.sweep(ctx)
		p.schedule(ctx)
	case revive:
		if p.agents[m.agent] == nil {
			p.spawn(ctx, m.agent).crashes = m.crashes
		}
	case *actor.Terminated:
		p.gone(ctx, m)
	}
}

func (p *partition) refuse(a messages.AgentID) error {
	if a.Partition() != p.number {
		return messages.Refuse(messages.Internal, "agent %s belongs to partition %s, not %s", a, a.Partition(), p.number)
	}
	return p.rt.Serves(a.Kind)
}

func (p *partition) forward(ctx actor.Context, a messages.AgentID, m any) {
	c := p.agents[a]
	if c == nil {
		c = p.spawn(ctx, a)
	}
	c.used = time.Now()
	if c.leaving {
		c.held = append(c.held, &actor.MessageEnvelope{Message: m, Sender: ctx.Sender()})
		return
	}
	ctx.RequestWithCustomSender(c.pid, m, ctx.Sender())
}

func (p *partition) spawn(ctx actor.Context, id messages.AgentID) *child {
	def := p.rt.kinds[id.Kind]
	pid := ctx.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &agent{rt: p.rt, id: id, epoch: p.epoch, def: def}
	}))
	c := &child{pid: pid, used: time.Now()}
	p.agents[id] = c
	p.byPID[pid.Id] = id
	ctx.Watch(pid)
	return c
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

// gone forgets an agent that has stopped. If messages wait for it, or if it
// stopped without being asked to, it is activated again.
func (p *partition) gone(ctx actor.Context, m *actor.Terminated) {
	id, ok := p.byPID[m.Who.Id]
	if !ok || p.stopping {
		return
	}
	c := p.agents[id]
	delete(p.byPID, m.Who.Id)
	delete(p.agents, id)
	if !c.leaving {
		p.crashed(ctx, id, c.crashes+1)
		return
	}
	if len(c.held) > 0 {
		next := p.spawn(ctx, id)
		for _, e := range c.held {
			ctx.RequestWithCustomSender(next.pid, e.Message, e.Sender)
		}
	}
}

// maxCrashes is how often an agent is revived by itself after panics in a row.
const maxCrashes = 5

func (p *partition) crashed(ctx actor.Context, id messages.AgentID, crashes int) {
	p.rt.logger.Error("an agent stopped unasked and is activated again from its log",
		slog.String("agent", id.String()), slog.Int("times", crashes))
	if crashes > maxCrashes {
		return
	}
	self, root := ctx.Self(), ctx.ActorSystem().Root
	time.AfterFunc(100*time.Millisecond<<crashes, func() { root.Send(self, revive{id, crashes}) })
}

func (p *partition) schedule(ctx actor.Context) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	p.ticker = time.AfterFunc(p.rt.idleAfter/4, func() { root.Send(self, sweep{}) })
}

func (p *partition) sweep(ctx actor.Context) {
	before := time.Now().Add(-p.rt.idleAfter)
	for _, c := range p.agents {
		if !c.leaving && c.used.Before(before) {
			c.leaving = true
			ctx.Send(c.pid, sleep{})
		}
	}
}
