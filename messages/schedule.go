package messages

import (
	"time"

	"github.com/reprise-dev/reprise/messages/cron"
)

// Schedule is when an input is accepted: after In, at At, or repeatedly by Cron; at most
// one of them is set. The zero value is at once.
type Schedule struct {
	// In is how long after its owner receives it the input is accepted, such as `90m`; at most ten years.
	In Span `json:"in,omitempty"`
	// At is when it is accepted, at most ten years away. One that has passed is at once.
	At *time.Time `json:"at,omitempty"`
	// Cron is a cron line of five fields, or a name such as `@daily`: see package messages/cron.
	Cron string `json:"cron,omitempty"`
	// Zone is the time zone of the cron line, such as `Europe/Berlin`. Empty: UTC.
	Zone string `json:"tz,omitempty"`
	// Name is the name of the timer, unique within the agent. Empty: the input's id.
	Name string `json:"name,omitempty"`
}

// Scheduled reports whether the input is for later.
func (s Schedule) Scheduled() bool { return s.In != 0 || s.At != nil || s.Cron != "" }

// check refuses an invalid schedule.
func (s Schedule) check() error {
	set := 0
	for _, is := range [...]bool{s.In != 0, s.At != nil, s.Cron != ""} {
		if is {
			set++
		}
	}
	switch {
	case set > 1:
		return Refuse(BadInput, "in, at and cron exclude one another: an input comes after a time, at a time, or again and again")
	case set == 0 && s.Name != "":
		return Refuse(BadInput, "name %q: it names the timer of an input that is to come later: set in, at or cron, too", s.Name)
	case s.Cron == "" && s.Zone != "":
		return Refuse(BadInput, "tz %q: it is the time zone of a cron line, and there is none; the zone of at is a part of it", s.Zone)
	case s.In < 0:
		return Refuse(BadInput, "in is %s: it must be positive", time.Duration(s.In))
	case time.Duration(s.In) > maxDelay:
		return Refuse(BadInput, "in is %s: the limit is ten years (87672h)", time.Duration(s.In))
	}
	if err := checkName("the name of the timer", s.Name); err != nil || s.Cron == "" {
		return err
	}
	_, err := s.line()
	return err
}

// line returns the cron line of the schedule, or its refusal.
func (s Schedule) line() (cron.Line, error) {
	l, err := cron.Parse(s.Cron, s.Zone)
	if err != nil {
		return l, Refuse(BadInput, "%v", err)
	}
	return l, nil
}

// First returns when the input is due for the first time. It refuses an invalid schedule,
// and a time that is too far from now.
func (s Schedule) First(now time.Time) (time.Time, error) {
	if err := s.check(); err != nil {
		return time.Time{}, err
	}
	switch {
	case s.Cron != "":
		l, err := s.line()
		if err != nil {
			return time.Time{}, err
		}
		return l.Next(now), nil
	case s.At != nil && s.At.Sub(now) > maxDelay:
		return time.Time{}, Refuse(BadInput, "at is %s: the limit is ten years from now", s.At.UTC().Format(time.RFC3339))
	case s.At != nil:
		return *s.At, nil
	}
	return now.Add(time.Duration(s.In)), nil
}

// fillSchedule completes an input's schedule from the headers, and checks it.
func fillSchedule(in *Input, header Header) error {
	s := &in.Schedule
	fillText(&s.Cron, header, HeaderCron)
	fillText(&s.Zone, header, HeaderZone)
	fillText(&s.Name, header, HeaderTimer)
	if h := header(HeaderIn); h != "" && s.In == 0 {
		d, err := time.ParseDuration(h)
		if err != nil || d == 0 {
			return Refuse(BadInput, "%s %q: write a duration such as 90m or 24h", HeaderIn, h)
		}
		s.In = Span(d)
	}
	if err := fillTime(&s.At, header, HeaderAt); err != nil {
		return err
	}
	if s.Cron != "" && in.Deadline != nil {
		return Refuse(BadInput, "deadline and cron exclude one another: a repeated input has no last moment")
	}
	return s.check()
}
