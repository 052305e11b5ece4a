package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// partition hosts the agents of one partition under one epoch. It activates an agent when a
// command for it arrives, as far as there are tokens for that, and admits commands to active
// agents. What cannot be sent yet it holds. It never waits for an agent.
type partition struct {
	rt *Runtime
	// ctx bounds all that its agents do.
	ctx    context.Context
	number messages.Partition
	epoch  messages.Epoch
	agents map[messages.AgentID]*child
	byPID  map[string]messages.AgentID
	// queue are the agents that wait for a token, oldest first.
	queue  []messages.AgentID
	tokens tokens
	// awaiting reports that a token is waited for beside the mailbox.
	awaiting bool
	// held and heldBytes count what all children hold.
	held, heldBytes int
	// handover is the drain under way; nil: there is none.
	handover *handover
	// stopping reports that agents that end now do so because the partition does.
	stopping bool
	letters  *deadLetters
}

// child is an agent that is active, or to be activated.
type child struct {
	pid     *actor.PID // nil: it is not active
	queued  bool       // it waits for a token
	spawned time.Time
	backlog *backlog // of the activation, or of the next one
	// held are the commands that came while the agent was not active, or was ending.
	held []held
	// tip was read ahead for the next activation. Nil: it reads it itself.
	tip *eventlog.Tip
	failing
}

// held is a command that is not sent yet.
type held struct {
	message any
	sender  *actor.PID
	size    int
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
	letters := &deadLetters{refusal: func() *messages.Error { return changingHands(p) }}
	return actor.PropsFromProducer(func() actor.Actor {
		return &partition{
			rt: r, ctx: ctx, number: p, epoch: epoch, letters: letters, tokens: newTokens(r.activations),
			agents: make(map[messages.AgentID]*child), byPID: make(map[string]messages.AgentID),
		}
	}, actor.WithSupervisor(stopOnPanic), actor.WithDispatcher(r.dispatcher), letters.mailbox())
}

// stopOnPanic stops an agent whose panic it could not handle itself: its next
// activation replays the log, which a restart in place would not.
var stopOnPanic = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// What a partition is sent beside commands.
type (
	token  struct{ release func() } // for the next activation
	revive struct {                 // activates an agent that failed
		agent    messages.AgentID
		failures int
	}
)

// Receive handles one message.
func (p *partition) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Stopping:
		p.stop(ctx)
	case *actor.Stopped:
		p.letters.stopped(ctx.ActorSystem().Root)
	case *Deliver:
		p.forward(ctx, m.Agent, m)
	case *Wake:
		p.forward(ctx, m.Agent, m)
	case Drain:
		p.drain(ctx)
	case Stay:
		p.stay(ctx)
	case drained:
		p.agentDrained(ctx, m.agent)
	case token:
		p.awaiting = false
		p.activateWith(ctx, m.release)
		p.activate(ctx)
	case revive:
		if c := p.agents[m.agent]; c != nil && c.failures == m.failures && !p.stopping { // else it was asked for meanwhile
			p.enqueue(ctx, m.agent, c)
		}
	case *actor.Terminated:
		p.gone(ctx, m)
	}
}

func (p *partition) refuse(a messages.AgentID, m any) error {
	if p.stopping || p.ctx.Err() != nil {
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

// forward sends a command to its agent, or holds it until the agent is active. It answers
// with the refusal of one that is not admitted.
func (p *partition) forward(ctx actor.Context, a messages.AgentID, m any) {
	err := p.refuse(a, m)
	if err == nil {
		err = p.admit(ctx, a, m)
	}
	if err != nil && ctx.Sender() != nil {
		ctx.Respond(&messages.Answer{Err: messages.AsError(err)})
	}
}

func (p *partition) admit(ctx actor.Context, a messages.AgentID, m any) error {
	c := p.agents[a]
	if c == nil {
		c = &child{backlog: &backlog{}}
	}
	size, tip := measure(m)
	open, refusal := c.backlog.admit(a, size)
	if refusal != nil {
		return refusal
	}
	if c.pid != nil && open {
		ctx.RequestWithCustomSender(c.pid, m, ctx.Sender())
		return nil
	}
	if p.held > 0 && (p.held >= heldCommands || p.heldBytes+size > heldBytes) {
		c.backlog.release(size)
		return messages.Refuse(messages.Unavailable, "%d commands of %d bytes wait in partition %s for agents that are being activated, and at most %d of %d bytes may: try again with the same id",
			p.held, p.heldBytes, p.number, heldCommands, heldBytes)
	}
	c.held = append(c.held, held{m, ctx.Sender(), size})
	p.held, p.heldBytes = p.held+1, p.heldBytes+size
	if c.pid == nil {
		p.agents[a] = c
		if tip != nil {
			c.tip = tip
		}
		p.enqueue(ctx, a, c)
	}
	return nil
}

// measure returns how many bytes a command is counted as, and what was read ahead for its
// agent.
func measure(m any) (size int, tip *eventlog.Tip) {
	switch m := m.(type) {
	case *Deliver:
		return commandSize(m.Command), nil
	case *Wake:
		return 0, m.Tip
	}
	return 0, nil
}

// enqueue has an agent activated as soon as there is a token, unless it is active.
func (p *partition) enqueue(ctx actor.Context, a messages.AgentID, c *child) {
	if c.pid == nil && !c.queued {
		c.queued = true
		p.queue = append(p.queue, a)
	}
	p.activate(ctx)
}

// activate activates agents that wait, for as long as there are tokens, and has the next
// token waited for if there are not.
func (p *partition) activate(ctx actor.Context) {
	for len(p.queue) > 0 && !p.awaiting && !p.stopping {
		release, ok := p.tokens.try(p.ctx)
		if !ok {
			p.awaitToken(ctx)
			return
		}
		p.activateWith(ctx, release)
	}
}

// activateWith activates the agent that has waited longest, or releases the token.
func (p *partition) activateWith(ctx actor.Context, release func()) {
	if len(p.queue) == 0 || p.stopping {
		release()
		return
	}
	a := p.queue[0]
	p.queue = p.queue[1:]
	p.spawn(ctx, a, release)
}

func (p *partition) awaitToken(ctx actor.Context) {
	p.awaiting = true
	self, root := ctx.Self(), ctx.ActorSystem().Root
	p.rt.dispatcher.run(func() {
		if release, err := p.tokens.take(p.ctx); err == nil {
			root.Send(self, token{release}) // should the partition have stopped, the end of ctx releases it
		}
	})
}

// spawn activates an agent and sends it what was held for it.
func (p *partition) spawn(ctx actor.Context, id messages.AgentID, release func()) {
	c := p.agents[id]
	kind := p.rt.kinds[id.Kind]
	if kind == nil {
		kind = undefined
	}
	letters := &deadLetters{refusal: func() *messages.Error { return stoppedHere(id) }}
	a := &agent{
		rt: p.rt, ctx: p.ctx, id: id, epoch: p.epoch, kind: kind, def: kind.now.Load(),
		letters: letters, tip: c.tip, backlog: c.backlog, activated: release,
	}
	if p.handover != nil {
		a.drain = draining
	}
	c.pid = ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithDispatcher(p.rt.dispatcher), letters.mailbox()))
	c.queued, c.tip, c.spawned = false, nil, time.Now()
	p.byPID[c.pid.Id] = id
	ctx.Watch(c.pid)
	for _, h := range p.release(c) {
		ctx.RequestWithCustomSender(c.pid, h.message, h.sender)
	}
}

// stoppedHere refuses a command that came to an activation that has ended.
func stoppedHere(a messages.AgentID) *messages.Error {
	return messages.Refuse(messages.Unavailable, "agent %s has stopped here: try again with the same id", a)
}

// release returns what a child holds, and counts it no longer.
func (p *partition) release(c *child) []held {
	list := c.held
	c.held = nil
	for _, h := range list {
		p.held, p.heldBytes = p.held-1, p.heldBytes-h.size
	}
	return list
}

// gone forgets an agent that has stopped. If commands are held for it, if it failed, or if it
// stopped without a reason, it is activated again.
func (p *partition) gone(ctx actor.Context, m *actor.Terminated) {
	id, ok := p.byPID[m.Who.Id]
	if !ok || p.stopping {
		return
	}
	c := p.agents[id]
	delete(p.byPID, m.Who.Id)
	p.agentDrained(ctx, id)
	if time.Since(c.spawned) > reviveMost {
		c.failing = failing{}
	}
	closed, failed := c.backlog.ended()
	failed = failed || !closed
	if !failed && len(c.held) == 0 {
		delete(p.agents, id)
		return
	}
	c.pid, c.backlog = nil, &backlog{}
	for _, h := range c.held {
		_, _ = c.backlog.admit(id, h.size) // it was admitted
	}
	if failed {
		c.failing = c.more()
	} else {
		c.failing = failing{}
	}
	if len(c.held) > 0 {
		p.enqueue(ctx, id, c)
		return
	}
	p.reviveLater(ctx, id, c.failing)
}

// The pauses before an agent that failed is activated again: they double.
const (
	reviveAfter = 100 * time.Millisecond
	reviveMost  = 30 * time.Second
)

func (p *partition) reviveLater(ctx actor.Context, id messages.AgentID, f failing) {
	pause := f.pause()
	p.rt.logger.Warn("an agent that failed is activated again from its log",
		id.LogAttr(p.epoch), slog.Int("times", f.failures), slog.Duration("after", pause))
	self, root := ctx.Self(), ctx.ActorSystem().Root
	time.AfterFunc(pause, func() { root.Send(self, revive{id, f.failures}) })
}

// stop ends the partition. Its agents stop with it and answer those who wait
// there; what is held here is answered here.
func (p *partition) stop(ctx actor.Context) {
	p.stopping = true
	for _, c := range p.agents {
		for _, h := range p.release(c) {
			if h.sender != nil {
				ctx.Send(h.sender, &messages.Answer{Err: changingHands(p.number)})
			}
		}
	}
}
