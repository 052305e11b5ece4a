package actors

import (
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
	rt    *Runtime
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
	ids     index
	owing   owing
	unsaved unsaved

	// busy says that a load, an append or the storing of a large input is under
	// way; what arrives meanwhile waits in order.
	busy    bool
	waiting []arrival
	flight  flight
	// broken is why the agent cannot act: its log is damaged, or its owner has
	// been replaced. Every command is answered with it.
	broken *messages.Error
	// damaged says that broken is because what is stored cannot be read, and that a
	// delete may end the agent all the same.
	damaged bool
	// looked says that a wake had an agent without events loaded again.
	looked bool
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
	cancel  func() // of what busy tells of
}

// arrival is a command or an outcome with its sender.
type arrival struct {
	message any
	sender  *actor.PID
}

// flight is the append under way.
type flight struct {
	frame   *messages.Frame
	size    int // of the frame, in bytes
	replies []Reply
	sender  *actor.PID
}

// What the goroutines of an agent report.
type (
	loaded struct {
		*loading
		err error
	}
	appended struct {
		tail eventlog.Tail
		err  error
	}
	// stalled says that an append is still being tried, and why.
	stalled struct {
		frame messages.FrameID
		err   error
	}
	// stay says that the partition stays with this owner after all.
	stay struct{}
	// outcome wraps what came of an effect.
	outcome struct {
		of     turn.Effect
		result any
	}
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
		a.turnAway()
	case *actor.Stopped:
		a.rt.active.Add(-1)
		a.after.stopped(ctx.ActorSystem().Root)
	case loaded:
		a.loaded(m)
	case appended:
		a.appended(m)
	case stalled:
		a.stalled(m)
	case shelved:
		a.shelved(m)
	case buried:
		a.buried(m)
	case savedAs:
		a.saved(m)
	case lookedUp:
		a.lookedUp(m)
	case *Deliver, *Wake, outcome:
		a.arrive(arrival{m, ctx.Sender()})
	case leave:
		a.leaving, a.hushed = true, false
	case stay:
		a.leaving, a.hushed = false, false
		a.arrive(arrival{message: m})
	case sleep:
		a.sleep(ctx)
	}
	a.hush()
}

// arrive handles what may change the agent, or keeps it until it can be.
func (a *agent) arrive(arr arrival) {
	if a.busy {
		a.waiting = append(a.waiting, arr)
		return
	}
	a.handle(arr)
}

// drain handles what has waited, until an append is under way again.
func (a *agent) drain() {
	for len(a.waiting) > 0 && !a.busy {
		if batch := a.outcomes(); len(batch) > 1 {
			a.settle(batch)
			continue
		}
		arr := a.waiting[0]
		a.waiting = a.waiting[1:]
		a.handle(arr)
	}
	if len(a.waiting) == 0 {
		a.waiting = nil
	}
}

func (a *agent) handle(arr arrival) {
	a.asking = arr.sender
	switch m := arr.message.(type) {
	case *Deliver:
		a.deliver(m, arr.sender)
	case outcome:
		a.settle([]outcome{m})
	case *Wake:
		a.wake(arr)
	case stay:
		a.stay()
	}
	a.asking = nil
}

// wake answers once the agent has gone on. Only an agent with events is fenced
// against its former owner: one without may have been given some by it since it
// was loaded, so it looks again first.
func (a *agent) wake(arr arrival) {
	if a.tail.Frame == "" && a.broken == nil && !a.looked {
		a.looked = true
		a.waiting = append([]arrival{arr}, a.waiting...)
		a.load()
		return
	}
	a.looked = false
	for e := range a.running { // clocks jump; those that count from a start do not notice
		if e.Do == turn.Wait && !time.Now().Before(e.Until) {
			a.report(e, e.Due())
		}
	}
	a.answer(arr.sender, messages.Answer{N: a.state.Last, Err: a.broken})
}

// outcomes takes the outcomes at the head of what waits: results of parallel
// tools that came during one append go into one frame.
func (a *agent) outcomes() []outcome {
	var batch []outcome
	size, limit := 0, a.rt.maxResult()
	for _, arr := range a.waiting {
		o, ok := arr.message.(outcome)
		if size += resultSize(o.result); !ok || size > limit {
			break
		}
		batch = append(batch, o)
	}
	if len(batch) > 1 {
		a.waiting = a.waiting[len(batch):]
		return batch
	}
	return nil
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
	id := d.Command.CommandID()
	switch at, found, unread := a.ids.find(hashID(id)); {
	case len(unread) > 0:
		a.lookUp(d, sender, id, unread)
	case found:
		a.again(sender, d.Command, at)
	default:
		a.apply(d, sender)
	}
}

// again gives the first answer to a command whose id was spent at a place.
func (a *agent) again(sender *actor.PID, c messages.Command, at place) {
	a.answerAgain(sender, c, at)
	a.tellAgain(c, at.n)
}

// apply takes a command whose id was not spent long ago.
func (a *agent) apply(d *Deliver, sender *actor.PID) {
	if in, ok := d.Command.(messages.Input); ok && a.rt.spills(in) && a.state.Refuses(a.env(), in) == nil {
		a.store(d, in, sender)
		return
	}
	if r, ok := d.Command.(messages.Report); ok && r.Blob != nil && a.state.Awaits(r) && !a.def.turn.Unknown {
		a.fetch(d, r, sender)
		return
	}
	if r, ok := d.Command.(messages.Recall); ok {
		a.recall(d, r, sender)
		return
	}
	a.decide(d, sender, "")
}

// recall takes a task back. Whether it came is known of any, however long ago that
// was.
func (a *agent) recall(d *Deliver, r messages.Recall, sender *actor.PID) {
	old := ""
	if _, known := a.state.Spent(r.Input); !known {
		_, found, unread := a.ids.find(hashID(r.Input))
		if len(unread) > 0 {
			a.lookUp(d, sender, r.Input, unread)
			return
		}
		if found {
			old = r.Input
		}
	}
	a.decide(d, sender, old)
}

// decide gives a command to the machine and appends what follows. old is the id of
// an input that the command is about and that only the index knows.
func (a *agent) decide(d *Deliver, sender *actor.PID, old string) {
	env := a.env()
	env.Old, env.Known, env.Person = old, d.Known, d.Cause.Person()
	events, err := a.judge(env, a.succeeded.bind(d))
	var spent *turn.SpentError
	var overtaken *turn.OvertakenError
	switch {
	case errors.As(err, &overtaken):
		a.answer(sender, messages.Answer{N: overtaken.N, Err: messages.Refuse(messages.Conflict, "%v", err)})
	case errors.As(err, &spent):
		a.again(sender, d.Command, a.ids.recent(spent.N))
	case err != nil:
		a.answer(sender, messages.Answer{Err: messages.AsError(err)})
	default:
		a.commit(d.cause(), events, sender)
		if _, ok := d.Command.(messages.Recall); ok {
			a.tellAgain(d.Command, 0)
		}
	}
}

// settle feeds outcomes to the machine and appends what follows.
func (a *agent) settle(batch []outcome) {
	if a.broken != nil {
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
	if !a.busy && !a.left && a.broken == nil {
		a.save(events, share, false)
	}
}

// sleep stops the agent if it has nothing to do, or cannot do anything.
func (a *agent) sleep(ctx actor.Context) {
	if a.left {
		ctx.Stop(a.self)
		return
	}
	if a.busy || len(a.waiting) > 0 || a.state.Open() && (len(a.running) > 0 || !a.def.turn.Unknown) {
		ctx.Send(a.parent, awake{a.id})
		return
	}
	ctx.Stop(a.self)
}
