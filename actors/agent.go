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

	letters *deadLetters
	self    *actor.PID
	parent  *actor.PID
	root    *actor.RootContext

	// backlog is what its partition admitted and it has not handled.
	backlog *backlog
	// activated releases the token for its activation. It may be called again.
	activated func()
	resident  resident
	size      int // of the state when it was last estimated, in bytes
	grown     int // bytes that were appended since

	// tip is what the first reading begins with; nil: what it finds.
	tip *eventlog.Tip

	state   turn.State
	tail    eventlog.Tail
	newest  uint64 // sequence of the newest frame; the tail's may be a foreign message's
	owing   owing
	unsaved unsaved

	outcomes outcomes
	// broken is why the agent cannot act. Every command is refused with it. Nil: it can.
	broken *messages.Error
	phase  phase
	drain  drain
	// asking is the sender of the command at hand, for a panic in its handling.
	asking *actor.PID

	// late removes what was stored late of a deleted agent. Nil: nothing is to be.
	late *time.Timer

	running   map[turn.Effect]func() // cancels what was begun
	succeeded succession
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

// Receive handles one message.
func (a *agent) Receive(ctx actor.Context) {
	defer a.handled(ctx)
	defer a.survive()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.start(ctx)
	case *actor.Stopping:
		a.rest(a.rt.saveAtEnd, snapshotShare*snapshotShareAtEnd)
		a.stop()
		a.phase = ending
	case *actor.Stopped:
		a.rt.residents.exit(&a.resident)
		a.letters.stopped(ctx.ActorSystem().Root)
	case *Deliver:
		defer a.backlog.release(commandSize(m.Command))
		a.asking = ctx.Sender()
		a.deliver(m, ctx.Sender())
		a.asking = nil
	case *Wake:
		defer a.backlog.release(0)
		a.wake(ctx.Sender())
	case outcomesWait:
		a.settle(a.outcomes.take(a.rt.maxResult()))
		if a.outcomes.more() {
			a.root.Send(a.self, outcomesWait{})
		}
	case savedAs:
		a.saved(m)
	case removeLate:
		a.removeLate()
	case drainAgent:
		a.drain = draining
	case stayAgent:
		a.stay()
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
		a.activated()
	}
	if a.phase != ending {
		a.rt.residents.note(&a.resident, a.memory(), a.idle())
	}
}

// idle reports whether the agent has nothing to do, or cannot do anything.
func (a *agent) idle() bool {
	return a.late == nil && !a.outcomes.more() && (!a.state.Open() || len(a.running) == 0 && a.def.turn.Unknown)
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
	return turn.Env{Agent: a.id, Definition: a.def.turn, Next: &a.next.turn, Now: time.Now(), Jitter: rand.Float64(), Leaving: a.drain != serving}
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
	if a.ctx.Err() != nil { // what is not begun must not be applied
		a.answer(sender, messages.Answer{Err: changingHands(a.id.Partition())})
		return
	}
	if !d.Deadline.IsZero() && !time.Now().Before(d.Deadline) {
		a.answer(sender, messages.Answer{Err: messages.Refuse(messages.Unavailable, "the time for this %s was over (%s) when agent %s came to it: ask again with the same id", d.Command.CommandType(), d.Deadline.UTC().Format(time.RFC3339), a.id)})
		return
	}
	if gone := a.state.DeletedAt; !d.Sent.IsZero() && d.Sent.Before(gone) {
		a.answer(sender, messages.Answer{N: a.state.Last, Err: messages.Refuse(messages.Unavailable, "agent %s was deleted (%s), and this %s may have been sent before that: ask again with the same id if it is still wanted", a.id, gone.UTC().Format(time.RFC3339Nano), d.Command.CommandType())})
		return
	}
	if a.broken != nil {
		if deletesAnyhow(d.Command) && a.phase == damaged {
			a.deleteDamaged(d, sender)
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
	if _, ok := d.Command.(messages.Delete); ok {
		a.delete(d, sender)
		return
	}
	env := a.env()
	env.Person = d.Cause.Person()
	events, err := a.judge(env, a.succeeded.bind(d))
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	a.commit(d.cause(), events, sender)
	if _, ok := d.Command.(messages.Recall); ok && a.broken == nil {
		a.reportAgain(d.Command)
	}
}

// refuse answers a command with the machine's error: one that was processed before as it was
// answered then.
func (a *agent) refuse(d *Deliver, sender *actor.PID, err error) {
	var processed *turn.ProcessedError
	if errors.As(err, &processed) {
		a.answerAgain(sender, d, processed)
		a.reportAgain(d.Command)
		return
	}
	a.answer(sender, messages.Answer{Err: messages.AsError(err)})
}

// settle feeds outcomes to the machine and appends what follows.
func (a *agent) settle(batch []outcome) {
	if a.broken != nil || len(batch) == 0 {
		return
	}
	var events []messages.Event
	cause := messages.Cause{Type: "effect"}
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
	if a.broken == nil {
		a.save(events, share)
	}
}
