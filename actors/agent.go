package actors

import (
	"context"
	"errors"
	"math/rand/v2"
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

	after  *afterlife
	self   *actor.PID
	parent *actor.PID
	root   *actor.RootContext

	// tip is what the first reading begins with; nil: what it finds.
	tip *eventlog.Tip

	state   turn.State
	tail    eventlog.Tail
	newest  uint64 // sequence of the newest frame; the tail's may be a foreign message's
	owing   owing
	unsaved unsaved

	outcomes outcomes
	// broken is why the agent cannot act: its log is damaged, or its owner has
	// been replaced. Every command is answered with it.
	broken *messages.Error
	// damaged says that broken is because what is stored cannot be read, and that a
	// delete may end the agent all the same.
	damaged bool
	// leaving says that the partition is about to go to another owner; hushed that it
	// has been told that nothing runs here that must not be cut off.
	leaving, hushed bool
	// left says that the partition was asked to let the agent go.
	left bool
	// asking is the sender of the command at hand, for a panic in its handling.
	asking *actor.PID

	running   map[turn.Effect]func() // cancels what was begun
	succeeded succession
	// recovered says that the next model call is one that an earlier activation
	// may have begun, or what follows from that.
	recovered bool
	// rewritten is the request that hooks have made for the next model call; nil
	// if they left it as it was.
	rewritten *providers.Request
	// missing is why the next model call cannot be made, as it was found before
	// hooks were asked about it.
	missing error
}

// What an agent is sent beside commands.
type (
	// outcomesWait reports that there are outcomes to take.
	outcomesWait struct{}
	// reload asks an agent that could not be loaded to end, so that it is activated again.
	reload struct{}
	// stay says that the partition stays with this owner after all.
	stay struct{}
)

// Receive handles one message.
func (a *agent) Receive(ctx actor.Context) {
	defer a.survive()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.self, a.parent, a.root = ctx.Self(), ctx.Parent(), ctx.ActorSystem().Root
		a.rt.active.Add(1)
		a.load()
	case *actor.Stopping:
		a.rest(a.rt.saveAtEnd, snapshotShare*snapshotShareAtEnd)
		a.stop()
	case *actor.Stopped:
		a.rt.active.Add(-1)
		a.after.stopped(ctx.ActorSystem().Root)
	case *Deliver:
		a.asking = ctx.Sender()
		a.deliver(m, ctx.Sender())
		a.asking = nil
	case outcomesWait:
		a.settle(a.outcomes.take(a.rt.maxResult()))
		if a.outcomes.more() {
			a.root.Send(a.self, outcomesWait{})
		}
	case *Wake:
		a.wake(ctx.Sender())
	case savedAs:
		a.saved(m)
	case reload:
		a.leave(true)
	case leave:
		a.leaving, a.hushed = true, false
	case stay:
		a.leaving, a.hushed = false, false
		a.stay()
	case sleep:
		a.sleep(ctx)
	}
	a.hush()
}

// wake answers once the agent has gone on. Only an agent with events is fenced
// against its former owner: one without may have been given some by it since it
// was loaded, so it looks again first.
func (a *agent) wake(sender *actor.PID) {
	if a.tail.Frame == "" && a.broken == nil {
		a.load()
	}
	for e := range a.running { // clocks jump; those that count from a start do not notice
		if e.Do == turn.Wait && !time.Now().Before(e.Until) {
			a.report(e, e.Due())
		}
	}
	a.answer(sender, messages.Answer{N: a.state.Last, Err: a.broken})
}

// env is what a decision depends on. Between two turns the definition is the newest; a turn
// keeps the one that it began with.
func (a *agent) env() turn.Env {
	a.next = a.kind.now.Load()
	if a.state.Turn == nil {
		a.def = a.next
	}
	return turn.Env{Agent: a.id, Definition: a.def.turn, Next: &a.next.turn, Now: time.Now(), Jitter: rand.Float64(), Leaving: a.leaving}
}

// judge gives the machine a command or an outcome. A turn that begins with it, behind
// another one, has the next definition.
func (a *agent) judge(env turn.Env, what any) ([]messages.Event, error) {
	before := a.state.Turn
	events, err := a.state.Decide(env, what)
	if t := a.state.Turn; before != nil && t != nil && t.ID != before.ID {
		a.def = a.next
	}
	return events, err
}

func (a *agent) deliver(d *Deliver, sender *actor.PID) {
	if a.broken != nil {
		if deletesAnyhow(d.Command) && a.damaged && !a.left {
			a.bury(d.cause(), d.Command.(messages.Delete), sender)
			return
		}
		a.answer(sender, messages.Answer{Err: a.broken})
		return
	}
	if err := a.rt.fits(d.Command); err != nil {
		a.answer(sender, messages.Answer{Err: err})
		return
	}
	d, err := a.offloaded(d)
	if err != nil {
		a.answer(sender, messages.Answer{Err: messages.AsError(err)})
		return
	}
	a.decide(d, sender)
}

// offloaded is d with what is too large for a frame stored beside the log. A command that is
// refused, or not awaited, is left as it is.
func (a *agent) offloaded(d *Deliver) (*Deliver, error) {
	switch c := d.Command.(type) {
	case messages.Input:
		if a.rt.spills(c) && a.state.Refuses(a.env(), c) == nil {
			return a.offloadInput(d, c)
		}
	case messages.Report:
		if c.Blob != nil && a.state.Awaits(c) && !a.def.turn.Unknown {
			return a.copyAnswer(d, c)
		}
	}
	return d, nil
}

// decide gives a command to the machine and appends what follows.
func (a *agent) decide(d *Deliver, sender *actor.PID) {
	env := a.env()
	env.Known, env.Person = d.Known, d.Cause.Person()
	events, err := a.judge(env, a.succeeded.bind(d))
	var processed *turn.ProcessedError
	var overtaken *turn.OvertakenError
	switch {
	case errors.As(err, &overtaken):
		a.answer(sender, messages.Answer{N: overtaken.N, Err: messages.Refuse(messages.Conflict, "%v", err)})
	case errors.As(err, &processed):
		a.answerAgain(sender, d, processed)
		a.tellAgain(d.Command, processed.N)
	case err != nil:
		a.answer(sender, messages.Answer{Err: messages.AsError(err)})
	default:
		a.commit(d.cause(), events, sender)
		if _, ok := d.Command.(messages.Recall); ok && a.broken == nil {
			a.tellAgain(d.Command, 0)
		}
	}
}

// settle feeds outcomes to the machine and appends what follows.
func (a *agent) settle(batch []outcome) {
	if a.broken != nil || len(batch) == 0 {
		return
	}
	var events []messages.Event
	cause, closed := messages.Cause{Type: "effect"}, a.state.Buries()
	for _, o := range batch {
		if _, listed := a.running[o.of]; !listed {
			continue
		}
		a.done(o.of)
		more, err := a.judge(a.env(), a.told(o.result))
		if err != nil {
			a.rt.logger.Error("an outcome was refused", a.id.LogAttr(a.epoch), "error", err)
			continue
		}
		events = append(events, more...)
		cause.ID = string(o.of.Call)
		if len(batch) > 1 {
			a.cease(a.state.Effects()) // the rest of it may have come of what nobody awaits any more
		}
	}
	if len(events) > 0 {
		if closed != nil {
			cause = closed.Cause()
		}
		a.commit(cause, events, nil)
		return
	}
	a.act() // hooks may be asked now, which takes no event
}

// told is what the machine is told of a result; a request that hooks have made
// stays here.
func (a *agent) told(result any) any {
	if done, ok := result.(hooksDone); ok {
		a.rewritten, a.missing = done.request, done.missing
		return done.HooksAsked
	}
	return result
}

func (a *agent) answer(sender *actor.PID, ans messages.Answer) {
	if sender != nil {
		a.root.Send(sender, &ans)
	}
}

// rest leaves a snapshot, if it is worth it, of an agent that writes nothing now.
func (a *agent) rest(events, share int) {
	if !a.left && a.broken == nil {
		a.save(events, share, false)
	}
}

// sleep stops the agent if it has nothing to do, or cannot do anything.
func (a *agent) sleep(ctx actor.Context) {
	if a.left {
		ctx.Stop(a.self)
		return
	}
	if a.outcomes.more() || a.state.Open() && (len(a.running) > 0 || !a.def.turn.Unknown) {
		ctx.Send(a.parent, awake{a.id})
		return
	}
	ctx.Stop(a.self)
}
