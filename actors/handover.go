package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// Drain asks a partition that is about to go to another owner to begin no calls that
// must not be cut off, those of tools with OnUnknown Pause and Reconcile. Everything else goes
// on. It is answered by Drained when none of them runs.
type Drain struct{}

// Drained answers Drain: stopped now, the partition leaves nothing behind that its
// next owner cannot go on with by itself.
type Drained struct{}

// Stay tells a partition that was asked to drain that it stays where it is. It is not
// answered.
type Stay struct{}

// handover is a drain: who asked for it, and which agents have calls that must end.
type handover struct {
	asked *actor.PID
	loud  map[messages.AgentID]struct{}
}

func (p *partition) drain(ctx actor.Context) {
	p.handover = &handover{asked: ctx.Sender(), loud: make(map[messages.AgentID]struct{}, len(p.agents))}
	for id, c := range p.agents {
		p.handover.loud[id] = struct{}{}
		ctx.Send(c.pid, leave{})
	}
	p.drained(ctx)
}

func (p *partition) hushed(ctx actor.Context, a messages.AgentID) {
	if p.handover != nil {
		delete(p.handover.loud, a)
		p.drained(ctx)
	}
}

// drained tells who asked once no agent has a call that must end.
func (p *partition) drained(ctx actor.Context) {
	if h := p.handover; h != nil && len(h.loud) == 0 && h.asked != nil {
		ctx.Send(h.asked, Drained{})
		h.asked = nil
	}
}

func (p *partition) stay(ctx actor.Context) {
	p.handover = nil
	for _, c := range p.agents {
		ctx.Send(c.pid, stay{})
	}
}

// hush tells the partition, once, that no call runs here that must not be cut off, as
// far as the log has been told of it.
func (a *agent) hush() {
	if a.leaving && !a.hushed && (a.broken != nil || !a.state.MustEnd()) {
		a.hushed = true
		a.root.Send(a.parent, hushed{a.id})
	}
}

// stay begins what was left to the agent's next owner.
func (a *agent) stay() {
	if a.broken != nil || a.def.turn.Unknown {
		return
	}
	events, err := a.judge(a.env(), turn.Stay{})
	if err == nil && len(events) > 0 {
		a.commit(messages.Cause{Type: "effect"}, events, nil)
	}
}
