package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/messages/cron"
	"github.com/reprise-dev/reprise/projections"
)

// How many inputs may be scheduled for an agent, how many bytes their contents
// may have together, and how many the ends of all of them: a clear cancels them in
// one frame.
const (
	maxSchedules    = 1000
	maxScheduled    = 1 << 20
	maxScheduleEnds = 160 << 10
)

// schedule accepts an input that is to come later.
func (d *decision) schedule(in messages.Input) error {
	timer, at, err := d.whenDue(in)
	if err != nil {
		return err
	}
	d.configure()
	set := messages.TimerSet{Timer: timer, For: messages.ForInput, Set: stored(d.env.Now), At: stored(at), Cron: in.Cron, Zone: in.Zone}
	in.Schedule = messages.Schedule{}
	set.Input = &in
	d.emit(set)
	return nil
}

// whenDue is the timer of an input that is to come later and when it comes first,
// or its refusal.
func (d *decision) whenDue(in messages.Input) (timer string, at time.Time, err error) {
	if at, err = in.First(stored(d.env.Now)); err != nil {
		return "", at, err
	}
	if timer = in.Name; timer == "" {
		timer = in.ID
	}
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
	case in.Deadline != nil && in.Cron != "":
		return messages.Refuse(messages.BadInput, "deadline and cron exclude one another: an input that comes again and again has no last moment")
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

// scheduleEnd is what a timer.cancelled takes.
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

// maxMissed is how many missed times of a cron line are counted.
const maxMissed = 1000

// fire brings a scheduled input, whose time has come. However many of its times
// have passed it comes once. What is said against it is a fact: it does not come
// later, and the times after it are not lost.
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
		d.emit(messages.TimerSet{Timer: sc.Timer, For: messages.ForInput, Set: stored(d.env.Now), At: stored(next), Cron: sc.Cron, Zone: sc.Zone})
	case sc.Cron != "":
		d.emit(messages.TimerCancelled{Timer: sc.Timer, By: "cron", Input: sc.Input.ID, Reply: sc.Input.Reply, Reason: "its line has no next time here: the line or its time zone is not known any more"})
	}
	if refused == nil {
		d.accept(in, nil)
	}
}

// nextTime is when a cron line comes next, and how many times have passed since
// the one that it fires for.
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

// cancelTimer cancels a timer that would bring an input.
func (d *decision) cancelTimer(c messages.Cancel) error {
	sc := d.s.Timers.Schedule(c.Timer)
	for i := range d.s.Timers.Scheduled {
		if sc == nil && d.s.Timers.Scheduled[i].Input.ID == c.Timer {
			sc = &d.s.Timers.Scheduled[i]
		}
	}
	if sc == nil {
		return messages.Refuse(messages.NotFound, "no timer %q is set: it has fired, was cancelled, or never was; the view timers lists those that are", c.Timer)
	}
	d.cancelSchedule(*sc, "cancel", c.Reason)
	return nil
}

// cancelSchedules takes all scheduled inputs back.
func (d *decision) cancelSchedules(by, reason string) {
	reason = each(reason, len(d.s.Timers.Scheduled))
	for len(d.s.Timers.Scheduled) > 0 {
		d.cancelSchedule(d.s.Timers.Scheduled[0], by, reason)
	}
}

func (d *decision) cancelSchedule(sc projections.Scheduled, by, reason string) {
	d.emit(messages.TimerCancelled{Timer: sc.Timer, Ran: max(d.env.Now.Sub(sc.Set).Milliseconds(), 0), By: by, Reason: reason, Input: sc.Input.ID, Reply: sc.Input.Reply})
}
