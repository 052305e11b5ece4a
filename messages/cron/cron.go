// Package cron computes the times of cron lines in time zones whose clocks change.
package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// Line is a cron line in a time zone. Make it with [Parse].
type Line struct {
	schedule cron.Schedule
	zone     *time.Location
	// hourly reports whether the line selects every hour.
	hourly bool
}

// columns are the fields of a cron line, in their order.
var columns = [...]struct{ name, values string }{
	{"the minute", "0-59"}, {"the hour", "0-23"}, {"the day of the month", "1-31"},
	{"the month", "1-12 or JAN-DEC"}, {"the day of the week", "0-7 (0 and 7 are Sunday) or SUN-SAT"},
}

// words may be written instead of five fields.
var words = []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}

var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom | cron.Descriptor)

// maxLine is the longest cron line, in bytes.
const maxLine = 256

// Parse reads a cron line: minute, hour, day of the month, month and day of
// the week, each a number, *, a range, a list or a step, or one of @hourly,
// @daily, @weekly, @monthly and @yearly. As in every crontab, a line that selects days of
// the month and days of the week matches both. zone is a name of the IANA time zone
// database; empty means UTC. The refusal names the field that is wrong.
func Parse(line, zone string) (Line, error) {
	if len(line) > maxLine {
		return Line{}, fmt.Errorf("the cron line has %d bytes: the limit is %d", len(line), maxLine)
	}
	location, err := parseZone(zone)
	if err != nil {
		return Line{}, err
	}
	fields := strings.Fields(line)
	if err := check(line, fields); err != nil {
		return Line{}, err
	}
	schedule, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return Line{}, fmt.Errorf("cron %q: %w", line, err)
	}
	l := Line{schedule, location, fields[0] == "@hourly" || len(fields) > 1 && strings.HasPrefix(fields[1], "*")}
	if l.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Line{}, fmt.Errorf("cron %q: that time never comes; there is no such day in any year", line)
	}
	return l, nil
}

func parseZone(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("tz %q is unknown: write a name of the IANA time zone database, such as Europe/Berlin or UTC", zone)
	}
	return location, nil
}

// check refuses a line with a wrong field, and names it.
func check(line string, fields []string) error {
	switch {
	case len(fields) == 0:
		return errors.New("the cron line is empty: write five fields such as \"0 9 * * 1-5\"")
	case fields[0][0] == '@' && (len(fields) > 1 || !slices.Contains(words, fields[0])):
		return fmt.Errorf("cron %q: write one of %s, or five fields such as \"0 9 * * 1-5\"", line, strings.Join(words, ", "))
	case fields[0][0] == '@':
		return nil
	case strings.Contains(fields[0], "="):
		return fmt.Errorf("cron %q: the line cannot name its time zone: set tz (--tz)", line)
	case len(fields) != len(columns):
		return fmt.Errorf("cron %q has %d fields: write five, which are minute, hour, day of the month, month and day of the week, such as \"0 9 * * 1-5\"", line, len(fields))
	}
	for i, f := range columns {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = fields[i]
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
			return fmt.Errorf("cron %q: field %d, %s, is %q: write %s, or *, a list such as 1,2, a range such as 1-3 or a step such as */2", line, i+1, f.name, fields[i], f.values)
		}
	}
	return nil
}

// Next returns the first time after t; zero if there is none. Where clocks are set forward,
// a skipped time is due as much later. Where they are set back, a repeated time counts
// once, unless the line selects every hour.
func (l Line) Next(t time.Time) time.Time {
	at := t.In(l.zone)
	for range maxChanges {
		next := l.between(t, at)
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
func (l Line) between(t, at time.Time) time.Time {
	_, shown := at.Zone()
	next := l.after(t, shown)
	change, _ := at.ZoneBounds()
	if change.IsZero() {
		return next
	}
	_, before := change.Add(-1).Zone()
	left := time.Duration(shown-before) * time.Second
	switch {
	case left > 0: // skipped times, by the clocks as they were
		if late := l.after(later(t, change.Add(-time.Second)), before); late.Before(change.Add(left)) && late.Before(next) {
			return late
		}
	case !l.hourly && next.Before(change.Add(-left)): // repeated
		return l.after(later(t, change.Add(-left-time.Second)), shown)
	}
	return next
}

// after returns the first time after t by clocks that are so many seconds ahead of UTC.
func (l Line) after(t time.Time, ahead int) time.Time {
	shift := time.Duration(ahead) * time.Second
	next := l.schedule.Next(t.UTC().Add(shift))
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
