package actors

import (
	"context"
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
	// ctx bounds all that its agents do. Agents that end once it has ended are not activated
	// again.
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
	letters  *deadLetters
	// damaged is why no agent can be activated here; nil: they can.
	damaged *messages.Error
}

// child is an agent that is active, or to be activated.
type child struct {
	pid     *actor.PID // nil: it is not active
	queued  bool       // it waits for a token
	spawned time.Time
	backlog *backlog // of the activation, or of the next one
	// held are the commands that came while the agent was not active, or was ending.
	held []held
	// ahead was read ahead for the next activation. Nil: it reads it itself.
	ahead *eventlog.Newest
	failing
}

// failing is how often in a row an agent failed without living long in between, and since
// when.
type failing struct {
	failures int
	since    time.Time
}

// held is a command that is not sent yet.
type held struct {
	message any
	sender  *actor.PID
	size    int
}

// Partition returns the props of the actor that hosts partition p under epoch. The caller
// ends ctx before it stops the actor, and as soon as this node may not act as the
// partition's owner any more: appends, models and tools of its agents are cut off then.
func (r *Runtime) Partition(ctx context.Context, p messages.Partition, epoch messages.Epoch) *actor.Props {
	letters := &deadLetters{refusal: func() *messages.Error { return changingHands(p) }}
	return letters.props(r.dispatcher, func() actor.Actor {
		return &partition{
			rt: r, ctx: ctx, number: p, epoch: epoch, letters: letters, tokens: newTokens(r.activations),
			agents: make(map[messages.AgentID]*child), byPID: make(map[string]messages.AgentID),
		}
	})
}

// DamagedPartition returns the props of an actor for a partition whose log has lost messages: it
// refuses every command with why. It reads and writes nothing.
func DamagedPartition(why *messages.Error) *actor.Props {
	letters := &deadLetters{refusal: func() *messages.Error { return why }}
	return letters.props(newDispatcher(), func() actor.Actor { return &partition{ctx: context.Background(), letters: letters, damaged: why} })
}

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
	case *Activate:
		p.forward(ctx, m.Agent, m)
	case Drain:
		p.drain(ctx)
	case CancelDrain:
		p.cancelDrain(ctx)
	case drained:
		p.agentDrained(ctx, m.agent)
	case token:
		p.awaiting = false
		p.activateWith(ctx, m.release)
		p.activate(ctx)
	case revive:
		if c := p.agents[m.agent]; c != nil && c.failures == m.failures { // else it was asked for meanwhile
			p.enqueue(ctx, m.agent, c)
		}
	case *actor.Terminated:
		p.gone(ctx, m)
	}
}

func (p *partition) refuse(a messages.AgentID, m any) error {
	if p.damaged != nil {
		return p.damaged
	}
	if p.ctx.Err() != nil {
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
	size, ahead := measure(m)
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
		if ahead != nil {
			c.ahead = ahead
		}
		p.enqueue(ctx, a, c)
	}
	return nil
}

// measure returns how many bytes a command is counted as, and what was read ahead for its
// agent.
func measure(m any) (size int, ahead *eventlog.Newest) {
	switch m := m.(type) {
	case *Deliver:
		return commandSize(m.Command), nil
	case *Activate:
		return 0, m.Ahead
	}
	return 0, nil
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

// stop ends the partition. Its agents stop with it and answer the senders of what waits there;
// what is held here is answered here.
func (p *partition) stop(ctx actor.Context) {
	for _, c := range p.agents {
		for _, h := range p.release(c) {
			if h.sender != nil {
				ctx.Send(h.sender, &messages.Answer{Err: changingHands(p.number)})
			}
		}
	}
}
