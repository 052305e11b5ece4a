package turn

import (
	"cmp"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/messages/cron"
	"github.com/reprise-dev/reprise/projections"
)

// How many inputs may be scheduled for an agent, how many bytes their contents may have together,
// and how many the ends of all of them: a clear cancels them in one frame.
const (
	maxSchedules    = 1000
	maxScheduled    = 1 << 20
	maxScheduleEnds = 160 << 10
)

// schedule accepts an input that is due later.
func (d *decision) schedule(in messages.Input) error {
	timer, at, err := d.whenDue(in)
	if err != nil {
		return err
	}
	d.configure()
	set := messages.TimerSet{Timer: timer, For: projections.ForInput, Set: logTime(d.env.Now), At: logTime(at), Cron: in.Cron, Zone: in.Zone}
	in.Schedule = messages.Schedule{}
	set.Input = &in
	d.emit(set)
	return nil
}

// whenDue returns the timer of a scheduled input and when it is due first, or its refusal.
func (d *decision) whenDue(in messages.Input) (timer string, at time.Time, err error) {
	if at, err = in.First(logTime(d.env.Now)); err != nil {
		return "", at, err
	}
	timer = cmp.Or(in.Name, in.ID)
	return timer, at, d.refuseSchedule(in, timer, at)
}

func (d *decision) refuseSchedule(in messages.Input, timer string, at time.Time) error {
	size, ends := contentSize(in.Content)+len(in.Metadata), scheduleEnd(timer, in.ID, in.Reply)
	for _, sc := range d.s.Timers.Scheduled {
		size += contentSize(sc.Input.Content) + len(sc.Input.Metadata)
		ends += scheduleEnd(sc.Timer, sc.Input.ID, sc.Input.Reply)
	}
	switch {
	case d.s.Timers.Schedule(timer) != nil:
		return messages.Refuse(messages.Conflict, "agent %s has a timer %q already: cancel it first, or choose another name", d.env.Agent, timer)
	case in.Deadline != nil && !at.Before(*in.Deadline):
		return messages.Refuse(messages.Expired, "the deadline %s comes before the input does: choose a later one, or none", in.Deadline.UTC().Format("2006-01-02T15:04:05.000Z"))
	case len(d.s.Timers.Scheduled) >= maxSchedules:
		return messages.Refuse(messages.QueueFull, "agent %s has %d inputs scheduled, the most there may be: cancel some", d.env.Agent, maxSchedules)
	case size > maxScheduled:
		return messages.Refuse(messages.QueueFull, "the inputs scheduled for agent %s would have %d bytes: the limit is %d; cancel some", d.env.Agent, size, maxScheduled)
	case ends > maxScheduleEnds:
		return messages.Refuse(messages.QueueFull, "agent %s has as many inputs scheduled as can be cancelled at once: cancel some, or give shorter names", d.env.Agent)
	}
	return d.refuseOptions(in.Options)
}

// scheduleEnd returns how many bytes a timer.cancelled takes.
func scheduleEnd(timer, input, reply string) int {
	return endSize + len(timer) + len(input) + len(reply)
}

func contentSize(c messages.Content) int {
	size := projections.TextSize(c)
	for i := range c {
		size += len(c[i].ImageURL)
	}
	return size
}

// maxMissed is how many missed times of a cron line are counted at most.
const maxMissed = 1000

// fire accepts a scheduled input that is due: once, however many of its times have passed. A
// refusal is recorded: the input is not accepted later, and the times after it are not lost.
func (d *decision) fire(sc projections.Scheduled) {
	in := *sc.Input
	if sc.Cron != "" {
		in.ID = messages.TimerInputID(sc.Timer, sc.N)
	}
	fired := messages.TimerFired{Timer: sc.Timer, Ran: max(d.env.Now.Sub(sc.Set).Milliseconds(), 0), Input: in.ID}
	refused := d.refuseInput(in)
	if refused != nil {
		fired.Refused, fired.Reply = messages.AsError(refused).Message, sc.Input.Reply
	}
	var next time.Time
	if sc.Cron != "" {
		next, fired.Missed = d.nextTime(sc)
	}
	d.emit(fired)
	switch {
	case !next.IsZero():
		d.emit(messages.TimerSet{Timer: sc.Timer, For: projections.ForInput, Set: logTime(d.env.Now), At: logTime(next), Cron: sc.Cron, Zone: sc.Zone})
	case sc.Cron != "":
		d.emit(messages.TimerCancelled{Timer: sc.Timer, By: "cron", Input: sc.Input.ID, Reply: sc.Input.Reply, Reason: "its line has no next time here: the line or its time zone is not known any more"})
	}
	if refused == nil {
		d.accept(in, nil)
	}
}

// nextTime returns the next time of a cron line, and how many have passed since the one that it
// fires for.
func (d *decision) nextTime(sc projections.Scheduled) (next time.Time, missed int) {
	c, err := cron.Parse(sc.Cron, sc.Zone)
	if err != nil {
		return time.Time{}, 0
	}
	for next = c.Next(sc.At); !next.IsZero() && !next.After(d.env.Now); next = c.Next(next) {
		if missed++; missed == maxMissed {
			return c.Next(d.env.Now), missed
		}
	}
	return next, missed
}

// scheduled returns the scheduled input with this id; nil if there is none.
func (s *State) scheduled(input string) *projections.Scheduled {
	for i := range s.Timers.Scheduled {
		if sc := &s.Timers.Scheduled[i]; sc.Input.ID == input {
			return sc
		}
	}
	return nil
}

// unschedule cancels the timer of a scheduled input, which names the timer or the input.
func (d *decision) unschedule(c messages.Cancel) error {
	sc := cmp.Or(d.s.Timers.Schedule(c.Timer), d.s.scheduled(c.Timer))
	if sc == nil {
		return messages.Refuse(messages.NotFound, "no timer %q is set: it has fired, was cancelled, or never was; the view timers lists those that are", c.Timer)
	}
	d.cancelSchedule(*sc, c.CommandType(), c.Reason)
	return nil
}

// cancelSchedules cancels all scheduled inputs.
func (d *decision) cancelSchedules(by, reason string) {
	reason = shortened(reason, len(d.s.Timers.Scheduled))
	for len(d.s.Timers.Scheduled) > 0 {
		d.cancelSchedule(d.s.Timers.Scheduled[0], by, reason)
	}
}

func (d *decision) cancelSchedule(sc projections.Scheduled, by, reason string) {
	d.emit(messages.TimerCancelled{Timer: sc.Timer, Ran: max(d.env.Now.Sub(sc.Set).Milliseconds(), 0), By: by, Reason: reason, Input: sc.Input.ID, Reply: sc.Input.Reply})
}
