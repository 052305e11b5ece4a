package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// setTimer sets a timer of the turn, for a call if there is one.
func (d *decision) setTimer(what string, call messages.CallID, at time.Time) {
	id := what
	if call != "" {
		id = projections.TimerID(what, call)
	}
	d.emit(messages.TimerSet{Turn: d.s.Turn.ID, Timer: id, For: what, Call: call, Set: logTime(d.env.Now), At: logTime(at)})
}

// logTime returns a time as it is read back from the log.
func logTime(t time.Time) time.Time { return t.Round(0).UTC() }

// cancelTimer cancels a timer of the turn, if it is set.
func (d *decision) cancelTimer(id string) {
	if tm := d.s.Timers.OfTurn(id); tm != nil {
		d.emit(messages.TimerCancelled{Turn: d.s.Turn.ID, Timer: id, Ran: d.ran(tm)})
	}
}

func (d *decision) cancelTimers() {
	for len(d.s.Timers.Turn) > 0 {
		d.cancelTimer(d.s.Timers.Turn[0].Timer)
	}
}

// ran returns for how long a timer has run, never less than 0: clocks of different nodes differ.
func (d *decision) ran(tm *messages.TimerSet) int64 {
	return max(d.env.Now.Sub(tm.Set).Milliseconds(), 0)
}

// startClock sets the timer of the turn's duration, if it has a limit that was
// not reached before.
func (d *decision) startClock() {
	t := d.s.Turn
	if t.Exhausted() == messages.LimitDuration {
		return
	}
	turn, agent := d.budgets()
	left := int64(-1)
	for _, b := range [...]budget{turn, agent} {
		if most := b.limits.MaxDuration; most != 0 {
			if rest := max(most-b.used.Duration, 0); left < 0 || rest < left {
				left = rest
			}
		}
	}
	if left >= 0 {
		d.setTimer(projections.ForDuration, "", d.env.Now.Add(ms(left)))
	}
}

// stopClock cancels the timer of the turn's duration; what it ran counts.
func (d *decision) stopClock() { d.cancelTimer(projections.DurationTimer) }

// due records that a timer's time has come, unless it is not set any more.
func (d *decision) due(o TimerDue) {
	if o.Turn == "" {
		if sc := d.s.Timers.Next(); sc != nil && sc.Timer == o.Timer && sc.At.Equal(o.At) {
			d.fire(*sc)
		}
	} else if t := d.s.Turn; t != nil && t.ID == o.Turn {
		d.fired(o.Timer)
	}
}

// fired records that the time of a turn's timer has come, and what follows from that.
func (d *decision) fired(id string) {
	t, tm := d.s.Turn, d.s.Timers.OfTurn(id)
	if tm == nil {
		return
	}
	fired := *tm
	d.emit(messages.TimerFired{Turn: t.ID, Timer: id, Ran: d.ran(tm)})
	switch fired.For {
	case projections.ForApproval:
		if c := t.Call(fired.Call); c != nil && c.Outcome == projections.CallWaiting {
			d.denyCall(c, messages.ApprovalDenied{By: messages.ByTimeout, Text: "This call was not approved in time; it was not run.", Reason: "the approval expired"})
			d.why = "an approval expired"
		}
	case projections.ForDuration:
		if o := d.outOfTime(); o.Limit != "" {
			d.exhaust(o)
		} else {
			d.startClock() // its limit was raised meanwhile
		}
	}
}

// outOfTime returns the limit of duration that the turn has reached; the zero value: none.
func (d *decision) outOfTime() projections.Exceeded {
	turn, agent := d.budgets()
	turn.limits, agent.limits = messages.Limits{MaxDuration: turn.limits.MaxDuration}, messages.Limits{MaxDuration: agent.limits.MaxDuration}
	return d.exceeded(turn, agent)
}
