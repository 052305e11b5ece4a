package messages

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	cron "github.com/netresearch/go-cron"
)

// ForInput is TimerSet.For of a timer of a scheduled input.
const ForInput = "input"

// Schedule is when an input is accepted: after In, at At, or repeatedly by Cron; at most
// one of them is set. The zero value is at once.
type Schedule struct {
	// In counts from when the owner of the agent receives the input; at most maxDelay.
	In Span `json:"in,omitempty"`
	// At is at most maxDelay away. One that has passed is at once.
	At *time.Time `json:"at,omitempty"`
	// Cron is a cron line as in ParseCron, in the time zone Zone.
	Cron string `json:"cron,omitempty"`
	Zone string `json:"tz,omitempty"`
	// Name is the name of the timer, unique within the agent. Empty: the input's id.
	Name string `json:"name,omitempty"`
}

// maxDelay is how far ahead an input may be scheduled: ten years.
const maxDelay = 3653 * 24 * time.Hour

// Scheduled reports whether the input is for later.
func (s Schedule) Scheduled() bool { return s.In != 0 || s.At != nil || s.Cron != "" }

// Check refuses an invalid schedule.
func (s Schedule) Check() error {
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
	if len(s.Name) > MaxID {
		return Refuse(BadInput, "the name of the timer is %d bytes long: the limit is %d", len(s.Name), MaxID)
	}
	if !utf8.ValidString(s.Name) || strings.ContainsFunc(s.Name, unicode.IsControl) {
		return Refuse(BadInput, "the name %q of the timer holds control characters or is no UTF-8", s.Name)
	}
	if s.Cron == "" {
		return nil
	}
	_, err := ParseCron(s.Cron, s.Zone)
	return err
}

// First returns when the input is due for the first time. It refuses what Check refuses,
// and a time that is too far from now.
func (s Schedule) First(now time.Time) (time.Time, error) {
	if err := s.Check(); err != nil {
		return time.Time{}, err
	}
	switch {
	case s.Cron != "":
		c, err := ParseCron(s.Cron, s.Zone)
		if err != nil {
			return time.Time{}, err
		}
		return c.Next(now), nil
	case s.At != nil && s.At.Sub(now) > maxDelay:
		return time.Time{}, Refuse(BadInput, "at is %s: the limit is ten years from now", s.At.UTC().Format(time.RFC3339))
	case s.At != nil:
		return *s.At, nil
	}
	return now.Add(time.Duration(s.In)), nil
}

// Cron is a cron line in a time zone. Make it with ParseCron.
type Cron struct {
	schedule cron.Schedule
	zone     *time.Location
	// hourly reports whether the line selects every hour.
	hourly bool
}

// cronFields are the fields of a cron line, in their order.
var cronFields = [...]struct{ name, values string }{
	{"the minute", "0-59"}, {"the hour", "0-23"}, {"the day of the month", "1-31"},
	{"the month", "1-12 or JAN-DEC"}, {"the day of the week", "0-7 (0 and 7 are Sunday) or SUN-SAT"},
}

// cronWords may be written instead of five fields.
var cronWords = []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}

var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom | cron.Descriptor)

// maxCron is the longest cron line, in bytes.
const maxCron = 256

// ParseCron reads a cron line: minute, hour, day of the month, month and day of
// the week, each a number, *, a range, a list or a step, or one of @hourly,
// @daily, @weekly, @monthly and @yearly. As in every crontab, a line that selects days of
// the month and days of the week matches both. zone is a name of the IANA time zone
// database; empty means UTC. The refusal names the field that is wrong.
func ParseCron(line, zone string) (Cron, error) {
	if len(line) > maxCron {
		return Cron{}, Refuse(BadInput, "the cron line has %d bytes: the limit is %d", len(line), maxCron)
	}
	location, err := parseZone(zone)
	if err != nil {
		return Cron{}, err
	}
	fields := strings.Fields(line)
	if err := checkCron(line, fields); err != nil {
		return Cron{}, err
	}
	schedule, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return Cron{}, Refuse(BadInput, "cron %q: %v", line, err)
	}
	c := Cron{schedule, location, fields[0] == "@hourly" || len(fields) > 1 && strings.HasPrefix(fields[1], "*")}
	if c.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Cron{}, Refuse(BadInput, "cron %q: that time never comes; there is no such day in any year", line)
	}
	return c, nil
}

func parseZone(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, Refuse(BadInput, "tz %q is unknown: write a name of the IANA time zone database, such as Europe/Berlin or UTC", zone)
	}
	return location, nil
}

// checkCron refuses a line with a wrong field, and names it.
func checkCron(line string, fields []string) error {
	switch {
	case len(fields) == 0:
		return Refuse(BadInput, "the cron line is empty: write five fields such as \"0 9 * * 1-5\"")
	case fields[0][0] == '@' && (len(fields) > 1 || !slices.Contains(cronWords, fields[0])):
		return Refuse(BadInput, "cron %q: write one of %s, or five fields such as \"0 9 * * 1-5\"", line, strings.Join(cronWords, ", "))
	case fields[0][0] == '@':
		return nil
	case strings.Contains(fields[0], "="):
		return Refuse(BadInput, "cron %q: the time zone does not stand in the line: set tz (--tz)", line)
	case len(fields) != len(cronFields):
		return Refuse(BadInput, "cron %q has %d fields: write five, which are minute, hour, day of the month, month and day of the week, such as \"0 9 * * 1-5\"", line, len(fields))
	}
	for i, f := range cronFields {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = fields[i]
		if _, err := cronParser.Parse(strings.Join(alone, " ")); err != nil {
			return Refuse(BadInput, "cron %q: field %d, %s, is %q: write %s, or *, a list such as 1,2, a range such as 1-3 or a step such as */2", line, i+1, f.name, fields[i], f.values)
		}
	}
	return nil
}

// Next returns the first time after t; zero if there is none. Where clocks are set forward,
// a skipped time is due as much later. Where they are set back, a repeated time counts
// once, unless the line selects every hour.
func (c Cron) Next(t time.Time) time.Time {
	at := t.In(c.zone)
	for range maxChanges {
		next := c.between(t, at)
		_, change := at.ZoneBounds()
		if next.IsZero() || change.IsZero() || next.Before(change) {
			return next
		}
		at, t = change, change.Add(-time.Second)
	}
	return time.Time{}
}

// maxChanges bounds how many changes of the clocks Next passes: a 29th of February may be
// eight years away.
const maxChanges = 100

// between returns the first time after t, with the clocks as they are set at at.
func (c Cron) between(t, at time.Time) time.Time {
	_, shown := at.Zone()
	next := c.after(t, shown)
	change, _ := at.ZoneBounds()
	if change.IsZero() {
		return next
	}
	_, before := change.Add(-1).Zone()
	left := time.Duration(shown-before) * time.Second
	switch {
	case left > 0: // skipped times, by the clocks as they were
		if late := c.after(later(t, change.Add(-time.Second)), before); late.Before(change.Add(left)) && late.Before(next) {
			return late
		}
	case !c.hourly && next.Before(change.Add(-left)): // repeated
		return c.after(later(t, change.Add(-left-time.Second)), shown)
	}
	return next
}

// after returns the first time after t by clocks that are so many seconds ahead of UTC.
func (c Cron) after(t time.Time, ahead int) time.Time {
	shift := time.Duration(ahead) * time.Second
	next := c.schedule.Next(t.UTC().Add(shift))
	if next.IsZero() {
		return next
	}
	return next.Add(-shift)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
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
		return Refuse(BadInput, "deadline and cron exclude one another: an input that comes again and again has no last moment")
	}
	return s.Check()
}
