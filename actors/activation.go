package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sync/semaphore"

	"github.com/reprise-dev/reprise/messages"
)

// How many agents are activated at the same time: on a node, and of them in one partition, so
// that a stream of the log that does not answer leaves tokens for the partitions of others.
const (
	activationsAtOnce = 64
	activationsOfOne  = 8
)

// tokens are those of one partition for activations. An agent is spawned with one and
// releases it when it is loaded and has handled its first command: many new addresses at once
// wait in their partitions, and not in the log's connection or the run queue. Safe for
// concurrent use.
type tokens struct{ node, partition *semaphore.Weighted }

// newTokens returns those of a partition, which are also counted for the node.
func newTokens(node *semaphore.Weighted) tokens {
	return tokens{node, semaphore.NewWeighted(activationsOfOne)}
}

// try takes a token if one is free, and returns what releases it.
func (t tokens) try(ctx context.Context) (release func(), ok bool) {
	if !t.partition.TryAcquire(1) {
		return nil, false
	}
	if !t.node.TryAcquire(1) {
		t.partition.Release(1)
		return nil, false
	}
	return t.taken(ctx), true
}

// take waits for a token, in turn with the other partitions, until ctx ends.
func (t tokens) take(ctx context.Context) (release func(), err error) {
	if err := t.partition.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := t.node.Acquire(ctx, 1); err != nil {
		t.partition.Release(1)
		return nil, err
	}
	return t.taken(ctx), nil
}

// taken returns what releases a token once, however often it is called. The end of ctx
// releases it, too.
func (t tokens) taken(ctx context.Context) (release func()) {
	free := func() {
		t.node.Release(1)
		t.partition.Release(1)
	}
	stop := context.AfterFunc(ctx, free)
	return func() {
		if stop() { // else it was released
			free()
		}
	}
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
	for len(p.queue) > 0 && !p.awaiting && p.ctx.Err() == nil {
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
	if len(p.queue) == 0 || p.ctx.Err() != nil {
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
		letters: letters, ahead: c.ahead, backlog: c.backlog, token: release,
	}
	if p.handover != nil {
		a.drain = draining
	}
	c.pid = ctx.Spawn(letters.props(p.rt.dispatcher, func() actor.Actor { return a })) // its Terminated comes without a watch
	c.queued, c.ahead, c.spawned = false, nil, time.Now()
	p.byPID[c.pid.Id] = id
	for _, h := range p.release(c) {
		ctx.RequestWithCustomSender(c.pid, h.message, h.sender)
	}
}

// gone removes an agent that has stopped. If commands are held for it, if it failed, or if it
// stopped without a reason, it is activated again.
func (p *partition) gone(ctx actor.Context, m *actor.Terminated) {
	id, ok := p.byPID[m.Who.Id]
	if !ok || p.ctx.Err() != nil {
		return
	}
	c := p.agents[id]
	delete(p.byPID, m.Who.Id)
	p.agentDrained(ctx, id)
	gone := c.backlog.ended() == left
	if gone && len(c.held) == 0 {
		delete(p.agents, id)
		return
	}
	if gone || time.Since(c.spawned) > mostPause {
		c.failing = failing{}
	}
	if !gone {
		c.failing = c.more()
	}
	c.pid, c.backlog = nil, &backlog{}
	for _, h := range c.held {
		_, _ = c.backlog.admit(id, h.size) // it was admitted
	}
	if len(c.held) > 0 {
		p.enqueue(ctx, id, c)
		return
	}
	p.reviveLater(ctx, id, c)
}

func (f failing) more() failing {
	if f.failures++; f.failures == 1 {
		f.since = time.Now()
	}
	return f
}

// pause is how long an agent waits before it is activated again: as long as it has been failing,
// so that pauses that are kept double, and those that are cut short by commands do not add up to
// more than what it fails of has lasted.
func (f failing) pause() time.Duration { return min(firstPause+time.Since(f.since), mostPause) }

// reviveLater activates an agent that failed after a pause.
func (p *partition) reviveLater(ctx actor.Context, id messages.AgentID, c *child) {
	pause := c.pause()
	p.rt.logger.Warn("an agent that failed is activated again from its log",
		id.LogAttr(p.epoch), slog.Int("times", c.failures), slog.Duration("after", pause))
	again := revive{id, c.failures}
	self, root := ctx.Self(), ctx.ActorSystem().Root
	time.AfterFunc(pause, func() { root.Send(self, again) })
}
