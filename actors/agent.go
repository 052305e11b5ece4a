package actors

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// agent is one activation of an agent. Only its mailbox touches its fields.
type agent struct {
	rt *Runtime
	// ctx is the partition's. It ends when the partition stops or this node's trust does:
	// an append that it cuts off has an unknown outcome, and the next activation reads it.
	ctx   context.Context
	id    messages.AgentID
	epoch messages.Epoch
	kind  *kind
	// def is the definition of the turn at hand, or of the last one; next is that of a turn
	// that begins.
	def, next *definition
	changed   changed

	letters *deadLetters
	self    *actor.PID
	parent  *actor.PID
	root    *actor.RootContext

	// backlog is what its partition admitted and it has not handled.
	backlog *backlog
	// token releases that of its activation. Nil: it was released.
	token    func()
	resident resident
	size     int // of the state when it was last estimated, in bytes
	grown    int // bytes that were appended since

	// ahead is what the first reading begins with; nil: what it finds.
	ahead *eventlog.Newest

	replayed

	outcomes outcomes
	// broken is why the agent cannot act. Every command is refused with it. Nil: it can.
	broken *messages.Error
	phase  phase
	drain  drain

	// late removes what was stored late of a deleted agent. Nil: nothing is to be.
	late *time.Timer

	running    []begun
	succession succession
	// recovered reports that the next model call is one that an earlier activation
	// may have begun, or what follows from that.
	recovered bool
	// rewritten is the request that hooks have made for the next model call; nil
	// if they left it as it was.
	rewritten *providers.Request
	// missing is why the next model call cannot be made, as it was found before
	// hooks were asked about it.
	missing error
}

// phase is what an activation can do.
type phase uint8

const (
	active  phase = iota
	newer         // what is stored is of a newer version; the agent is left untouched
	damaged       // what is stored cannot be read; a delete ends the agent all the same
	ending        // gives way to the next activation
)

// What an agent is sent beside commands.
type (
	// outcomesWait reports that there are outcomes to take.
	outcomesWait struct{}
	// passivate asks the agent to leave memory if nothing has come since.
	passivate struct{}
	// removeLate reports that the lease time after a deletion has passed.
	removeLate struct{}
)

// log returns a logger that names the agent.
func (a *agent) log() *slog.Logger { return a.rt.logger.With(a.id.LogAttr(a.epoch)) }

// warn logs a warning that names the agent.
func (a *agent) warn(message string, args ...any) { a.log().Warn(message, args...) }

// Receive handles one message. The command whose handling panics is refused.
func (a *agent) Receive(ctx actor.Context) {
	defer a.handled(ctx)
	if _, err := protect(a.log, func() (any, error) { a.receive(ctx); return nil, nil }); err != nil {
		a.panicked(err, ctx.Sender())
	}
}

func (a *agent) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.start(ctx)
	case *actor.Stopping:
		a.save(a.rt.saveAtEnd, snapshotShare*snapshotShareAtEnd)
		a.stop()
		a.phase = ending
	case *actor.Stopped:
		a.rt.residents.exit(&a.resident)
		a.letters.stopped(ctx.ActorSystem().Root)
	case *Deliver:
		defer a.backlog.release(commandSize(m.Command))
		a.deliver(m, ctx.Sender())
	case *Activate:
		defer a.backlog.release(0)
		a.activate(m, ctx.Sender())
	case outcomesWait:
		a.apply(a.outcomes.take(a.rt.maxResult))
		if a.outcomes.more() {
			a.root.Send(a.self, outcomesWait{})
		}
	case savedAs:
		a.saved(m)
	case removeLate:
		a.removeLate()
	case Drain:
		a.drain = draining
	case CancelDrain:
		a.cancelDrain()
	case passivate:
		if a.rt.residents.asks(&a.resident) && a.backlog.closeEmpty() {
			a.phase = ending
			ctx.Stop(a.self)
		}
	}
	a.reportDrained()
}

func (a *agent) start(ctx actor.Context) {
	a.self, a.parent, a.root = ctx.Self(), ctx.Parent(), ctx.ActorSystem().Root
	self, root := a.self, a.root
	a.resident.leave = func() { root.Send(self, passivate{}) }
	a.rt.residents.enter()
	a.load()
}

// handled notes that a message was handled.
func (a *agent) handled(ctx actor.Context) {
	if _, started := ctx.Message().(*actor.Started); !started || a.phase != active || a.backlog.empty() {
		a.releaseToken()
	}
	if a.phase != ending {
		a.rt.residents.note(&a.resident, a.memory(), a.idle())
	}
}

// releaseToken lets another agent be activated.
func (a *agent) releaseToken() {
	if a.token != nil {
		a.token()
		a.token = nil
	}
}

// idle reports whether the agent has nothing to do, or cannot do anything.
func (a *agent) idle() bool {
	return a.late == nil && !a.outcomes.more() && (!a.state.Open() || len(a.running) == 0 && a.def.turn.Unknown())
}

// agentBytes is about what an agent takes in memory beside its state: the actor, its mailbox
// and what its partition keeps of it.
const agentBytes = 4 << 10

// memory estimates what the agent takes, in bytes. The state is estimated again when what was
// appended could have changed that by an eighth.
func (a *agent) memory() int64 {
	if a.size == 0 || a.grown > 4<<10+a.size/8 {
		a.size, a.grown = a.state.Size(), 0
	}
	return int64(agentBytes + a.size + a.grown)
}

// activate answers once the agent has continued its work. Only an agent with events is fenced
// against its former owner: one without may have been given some by it since it was loaded, so it
// is loaded again first.
func (a *agent) activate(m *Activate, sender *actor.PID) {
	if a.tail.Frame == "" && a.broken == nil {
		a.load()
	}
	for _, b := range a.running { // clocks jump; timers that count from a start do not notice
		if e := b.effect; e.Do == turn.Wait && !time.Now().Before(e.Until) {
			a.report(e, e.Due())
		}
	}
	ans := messages.Answer{N: a.state.Last, Err: a.broken}
	if m.Deletes && a.broken == nil {
		if err := a.refuseForks(); err != nil {
			ans.Err = messages.AsError(err)
		}
	}
	a.answer(sender, ans)
}

// env returns what a decision depends on. Between two turns the definition is the newest; a turn
// keeps the one that it began with.
func (a *agent) env() turn.Env {
	next, err := a.defined()
	if err != nil {
		a.warn("a fork keeps its definition, although that of its kind has changed", "error", err)
	}
	a.next = next
	if a.state.Turn == nil {
		a.def = a.next
	}
	return turn.Env{Agent: a.id, Definition: a.def.turn, Next: &a.next.turn, Now: time.Now(), Jitter: rand.Float64(), Leaving: a.drain != serving}
}

// decide passes a command or an outcome to the machine. A turn that begins with it, behind another
// one, has the next definition. One that an input itself begins is no succession: what comes behind
// that in order may be about it.
func (a *agent) decide(env turn.Env, what any) ([]messages.Event, error) {
	before := a.state.Turn
	events, err := a.state.Decide(env, what)
	after := a.state.Turn
	if after == nil || before != nil && before.ID == after.ID {
		return events, err
	}
	a.succession = succession{}
	if before != nil {
		a.def = a.next
		_, input := what.(messages.Input)
		if due, timer := what.(turn.TimerDue); !input && (!timer || due.Turn != "") { // without a turn: a scheduled input
			a.succession.ended = before.ID
		}
	}
	return events, err
}

// apply passes outcomes to the machine and appends what follows, as one frame unless a model is
// asked: it is sent the history of that event, which what comes behind it may change.
func (a *agent) apply(batch []outcome) {
	if a.broken != nil || len(batch) == 0 {
		return
	}
	var events []messages.Event
	cause := messages.Cause{Type: messages.CauseEffect}
	for i, o := range batch {
		if !a.awaits(o.of) {
			continue
		}
		a.cancelEffects(func(e turn.Effect) bool { return e == o.of })
		if done, ok := o.result.(hooksDone); ok { // a request that hooks have made stays here
			a.rewritten, a.missing, o.result = done.request, done.missing, done.HooksAsked
		}
		more, err := a.decide(a.env(), o.result)
		if err != nil {
			a.log().Error("an outcome was refused", "error", err)
			continue
		}
		events = append(events, more...)
		cause.ID = string(o.of.Call)
		if len(batch) == 1 {
			continue
		}
		effects := a.state.Effects()
		a.cease(effects) // the rest of it may have come of what is no longer awaited
		if len(events) > 0 && slices.ContainsFunc(effects, a.asksModel) {
			a.commit(cause, events, nil)
			a.apply(batch[i+1:])
			return
		}
	}
	if len(events) > 0 {
		a.commit(cause, events, nil)
		return
	}
	a.act() // hooks may be asked now, which takes no event
}
