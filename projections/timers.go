package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// What timers are for.
const (
	ForRetry    = "retry"    // the next attempt at a model call
	ForApproval = "approval" // the denial of a tool call
	ForDuration = "duration" // the end of the turn, which has run for as long as it may
	ForInput    = "input"    // a scheduled input of the agent
)

// DurationTimer is the id of a turn's timer for its duration.
const DurationTimer = ForDuration

// TimerID returns the id of a turn's timer for a call.
func TimerID(what string, call messages.CallID) string { return what + ":" + string(call) }

// Timers are those of an agent that were set and have neither fired nor been cancelled. The
// zero value has none.
type Timers struct {
	// Turn are those of the running turn, Scheduled those that bring an input.
	Turn      []messages.TimerSet
	Scheduled []Scheduled
}

// Scheduled is an input that comes later, or again and again. Its Input is never nil.
type Scheduled struct {
	messages.TimerSet
	// N is the event that names the next time.
	N messages.EventNumber
}

func (t *Timers) apply(e *event) {
	if ev, ok := e.Event.(messages.TimerSet); ok {
		t.set(e.n, ev)
	} else if timer := timerOver(e.Event); timer.id != "" {
		t.over(e.Turn, timer)
	} else if e.Is(messages.BeginsTurn | messages.EndsTurn) {
		t.Turn = nil
	}
}

// endedTimer is a timer that has fired or was cancelled.
type endedTimer struct {
	id    string
	ran   int64 // for how long, in milliseconds
	fired bool
	// input is the scheduled input, and reply the subject that its end is sent to, if it has
	// ended: it is cancelled, or refused when it is due.
	input, reply string
}

// timerOver returns the timer that an event ends; no id: none.
func timerOver(ev messages.Event) endedTimer {
	switch ev := ev.(type) {
	case messages.TimerFired:
		ended := endedTimer{id: ev.Timer, ran: ev.Ran, fired: true}
		if ev.Refused != "" {
			ended.input, ended.reply = ev.Input, ev.Reply
		}
		return ended
	case messages.TimerCancelled:
		return endedTimer{id: ev.Timer, ran: ev.Ran, input: ev.Input, reply: ev.Reply}
	}
	return endedTimer{}
}

// over drops a timer. One with a cron line stays when it has fired: the same frame sets it
// again or cancels it.
func (t *Timers) over(turn messages.TurnID, timer endedTimer) {
	if sc := t.Schedule(timer.id); turn != "" || sc == nil || sc.Cron == "" || !timer.fired {
		t.drop(turn, timer.id)
	}
}

func (t *Timers) set(n messages.EventNumber, ev messages.TimerSet) {
	if ev.Turn != "" {
		t.drop(ev.Turn, ev.Timer)
		t.Turn = append(t.Turn, ev)
		return
	}
	old := t.Schedule(ev.Timer)
	switch {
	case ev.Input != nil:
	case old != nil:
		ev.Input = old.Input
	default:
		ev.Input = &messages.Input{}
	}
	if old != nil {
		*old = Scheduled{ev, n}
		return
	}
	t.Scheduled = append(t.Scheduled, Scheduled{ev, n})
}

func (t *Timers) drop(turn messages.TurnID, id string) {
	if turn == "" {
		t.Scheduled = without(t.Scheduled, func(sc *Scheduled) bool { return sc.Timer == id })
	} else {
		t.Turn = without(t.Turn, func(x *messages.TimerSet) bool { return x.Timer == id })
	}
}

// OfTurn returns the turn's timer with this id, valid until the next event; nil if it is not
// set.
func (t *Timers) OfTurn(id string) *messages.TimerSet {
	return firstOf(t.Turn, func(x *messages.TimerSet) bool { return x.Timer == id })
}

// Schedule returns the scheduled input of a timer, valid until the next event; nil if there
// is none.
func (t *Timers) Schedule(timer string) *Scheduled {
	return firstOf(t.Scheduled, func(sc *Scheduled) bool { return sc.Timer == timer })
}

// Next returns the scheduled input that comes next, of several at the same time the one that
// was set first; nil if there is none.
func (t *Timers) Next() *Scheduled {
	var next *Scheduled
	for i := range t.Scheduled {
		if sc := &t.Scheduled[i]; next == nil || sc.At.Before(next.At) {
			next = sc
		}
	}
	return next
}

// Lines returns the scheduled inputs of agent a, sorted by their next time.
func (t *Timers) Lines(a messages.AgentID) []messages.Timer {
	lines := make([]messages.Timer, len(t.Scheduled))
	for i := range t.Scheduled {
		sc := &t.Scheduled[i]
		lines[i] = messages.Timer{
			Agent: a, Timer: sc.Timer, Next: sc.At, Cron: sc.Cron, Zone: sc.Zone, N: sc.N, Set: sc.Set,
			Input: sc.Input.ID, Policy: sc.Input.Policy, Text: ContentText(sc.Input.Content),
		}
	}
	slices.SortStableFunc(lines, func(x, y messages.Timer) int { return x.Next.Compare(y.Next) })
	return lines
}
