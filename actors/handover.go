package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// Drain asks a partition that is about to go to another owner, and its agents, to begin no
// calls that must not be cut off, those of tools with OnUnknown Pause and Reconcile. Everything
// else continues. It is answered by Drained when none of them runs.
type Drain struct{}

// Drained answers Drain: stopped now, the partition leaves nothing behind that its
// next owner cannot continue by itself.
type Drained struct{}

// CancelDrain ends a drain: the partition keeps its owner. It is not answered.
type CancelDrain struct{}

// handover is a drain: who asked for it, and which agents are not drained.
type handover struct {
	sender *actor.PID
	busy   map[messages.AgentID]struct{}
}

// drain is how far an agent is with a drain.
type drain uint8

const (
	serving       drain = iota
	draining            // begins no calls that must not be cut off
	drainReported       // and has reported that none runs
)

// drained reports to a partition that no call of an agent runs that must not be cut off.
type drained struct{ agent messages.AgentID }

func (p *partition) drain(ctx actor.Context) {
	p.handover = &handover{sender: ctx.Sender(), busy: make(map[messages.AgentID]struct{}, len(p.byPID))}
	for _, id := range p.byPID {
		p.handover.busy[id] = struct{}{}
		ctx.Send(p.agents[id].pid, Drain{})
	}
	p.reportDrained(ctx)
}

func (p *partition) agentDrained(ctx actor.Context, a messages.AgentID) {
	if p.handover != nil {
		delete(p.handover.busy, a)
		p.reportDrained(ctx)
	}
}

// reportDrained answers the drain, once, when every agent is drained.
func (p *partition) reportDrained(ctx actor.Context) {
	if h := p.handover; h != nil && len(h.busy) == 0 && h.sender != nil {
		ctx.Send(h.sender, Drained{})
		h.sender = nil
	}
}

func (p *partition) cancelDrain(ctx actor.Context) {
	p.handover = nil
	for _, id := range p.byPID {
		ctx.Send(p.agents[id].pid, CancelDrain{})
	}
}

// reportDrained reports to the partition, once, that no call runs here that must not be cut
// off, as far as the log has it.
func (a *agent) reportDrained() {
	if a.drain == draining && (a.broken != nil || !a.state.MustEnd()) {
		a.drain = drainReported
		a.root.Send(a.parent, drained{a.id})
	}
}

// cancelDrain begins what was left to the agent's next owner.
func (a *agent) cancelDrain() {
	a.drain = serving
	if a.broken != nil || a.def.turn.Unknown() {
		return
	}
	events, err := a.decide(a.env(), turn.Continue{})
	if err == nil && len(events) > 0 {
		a.commit(messages.Cause{Type: messages.CauseEffect}, events, nil)
	}
}
