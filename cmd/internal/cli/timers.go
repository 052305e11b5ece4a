package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// laterFlags say when an input is to come.
type laterFlags struct {
	in, at, cron, zone, name string
	set                      *pflag.FlagSet
}

func (f *laterFlags) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.set = fs
	fs.StringVar(&f.in, "in", "", "deliver the input after this `DURATION`, such as 90m or 24h, at most ten years")
	fs.StringVar(&f.at, "at", "", "deliver the input at this `TIME`, such as 2026-11-22T09:00 (in the zone --tz, else that of this machine) or 2026-11-22T09:00:00Z")
	fs.StringVar(&f.cron, "cron", "", "deliver the input repeatedly, by this `SCHEDULE`: minute, hour, day of the month, month, day of the week, such as \"0 9 * * 1-5\", or @hourly, @daily, @weekly, @monthly, @yearly")
	fs.StringVar(&f.zone, "tz", "", "time `ZONE` of --cron or --at, such as Europe/Berlin (default of --cron: UTC)")
	fs.StringVar(&f.name, "name", "", "`NAME` of the timer (default: the id of the input)")
}

// laterNames are the names of the flags.
var laterNames = []string{"in", "at", "cron", "tz", "name"}

// any reports whether one of the flags was given.
func (f *laterFlags) any() bool { return slices.ContainsFunc(laterNames, f.set.Changed) }

// tolerance is how long ago --at may be: a person who types a time means one to come.
const tolerance = time.Minute

// schedule reads the flags. deadline is the input's; nil: it has none.
func (f *laterFlags) schedule(now time.Time, deadline *time.Time) (messages.Schedule, error) {
	s := messages.Schedule{Cron: f.cron, Zone: f.zone, Name: f.name}
	for name, value := range map[string]string{"in": f.in, "at": f.at, "cron": f.cron, "tz": f.zone, "name": f.name} {
		if value == "" && f.set.Changed(name) { // a variable that is not set must not send at once
			return s, usage("--%s is empty: give it a value, or leave it out", name)
		}
	}
	if f.in != "" {
		d, err := time.ParseDuration(f.in)
		if err != nil {
			return s, usage("--in %q: write a number with a unit, such as 90m or 24h", f.in)
		}
		if d <= 0 {
			return s, usage("--in %s: it must be positive", f.in)
		}
		s.In = messages.Span(d)
	}
	if f.at != "" {
		at, err := f.time(now)
		if err != nil {
			return s, err
		}
		s.At, s.Zone = &at, ""
	}
	first, err := s.First(now)
	switch {
	case err != nil:
		return s, usage("%s", messages.AsError(err).Message)
	case deadline == nil:
	case s.Cron != "":
		return s, usage("--deadline and --cron exclude one another: a repeated input has no last moment")
	case f.any() && !first.Before(*deadline):
		return s, usage("--deadline: %s is before the input is delivered, at %s: give a later one, or none", deadline.Format(time.RFC3339), first.Format(time.RFC3339))
	}
	return s, nil
}

// time reads --at.
func (f *laterFlags) time(now time.Time) (time.Time, error) {
	zone := time.Local
	if f.zone != "" {
		var err error
		if zone, err = time.LoadLocation(f.zone); err != nil {
			return time.Time{}, usage("--tz %q is unknown: write a name of the IANA time zone database, such as Europe/Berlin or UTC", f.zone)
		}
	}
	at, err := time.Parse(time.RFC3339, f.at)
	if err == nil && f.zone != "" {
		return at, usage("--at %s has its zone in it: leave --tz %s out, or write the time without a zone", f.at, f.zone)
	}
	for _, form := range [...]string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"} {
		if err != nil {
			at, err = time.ParseInLocation(form, f.at, zone)
		}
	}
	switch {
	case err != nil:
		return at, usage("--at %q: write a time such as 2026-11-22T09:00, or with its zone 2026-11-22T09:00:00Z", f.at)
	case now.Sub(at) > tolerance:
		return at, usage("--at %s has passed, %s ago", at.Format(time.RFC3339), now.Sub(at).Round(time.Second))
	}
	return at.UTC(), nil
}

func (a *app) timers() *cobra.Command {
	q := messages.Query{View: "timers"}
	cmd := &cobra.Command{
		Use: "timers AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "List the scheduled inputs of an agent",
		Long: `List the inputs that are scheduled for an agent by send --in, --at and --cron. Each is delivered
once when it is due, also if no node ran at that time. A repeated input that was due several
times in the meantime is delivered once; "missed" in timer.fired counts the others.`,
		Example: `  reprise timers assistant/main`,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runTimers(cmd.Context(), args[0], q) },
	}
	asOf(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runTimers(ctx context.Context, agent string, q messages.Query) error {
	rows, err := table(a, "TIMER\tNEXT\tCRON\tTEXT", a.ofAgent(ctx, agent, q), func(t messages.Timer) string {
		next, again := a.moment(t.Next, time.DateTime), t.Cron
		if zone, err := time.LoadLocation(t.Zone); err == nil && (t.Zone != "" || !isTerminal(a.out)) {
			next = t.Next.In(zone).Format("2006-01-02 15:04:05 MST")
		}
		if t.Zone != "" {
			again += " " + t.Zone
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s", projections.Printable(t.Timer, 80), next,
			projections.Printable(again, 80), projections.Printable(t.Text, 80))
	})
	return a.listed(rows, err, "no input is scheduled for "+agent, fmt.Sprintf("`%s cancel %s --timer TIMER` cancels one", a.started, agent))
}
