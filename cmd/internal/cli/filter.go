package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

// when is a flag for a moment: how long ago, such as 90m, 24h or 7d, a date, or
// a date and time (RFC 3339). Times without a zone are those of this machine, or with --utc
// UTC.
type when struct {
	at   *time.Time
	text string
}

// inUTC reads it again as UTC.
func (w *when) inUTC() {
	if at, err := moment(w.text, time.Now().UTC()); err == nil {
		*w.at = at
	}
}

// String is what was written.
func (w *when) String() string { return w.text }

// Type is what the help calls it.
func (w *when) Type() string { return "TIME" }

// Set reads it.
func (w *when) Set(text string) error {
	at, err := moment(text, time.Now())
	if err == nil {
		*w.at, w.text = at, text
	}
	return err
}

// moment reads a moment; now is in the zone of those without one.
func moment(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)).UTC(), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("write how long ago (90m, 24h, 7d), a date (2026-01-31) or a time (2026-01-31T12:00:00Z)")
}

// whereFlag is --where, which may be given several times.
type whereFlag struct{ q *messages.Query }

// String is what was written.
func (w whereFlag) String() string { return "" }

// Type is what the help calls it.
func (w whereFlag) Type() string { return "PATH=VALUE" }

// Set reads one path and its value.
func (w whereFlag) Set(text string) error {
	path, value, found := strings.Cut(text, "=")
	if !found || path == "" {
		return fmt.Errorf("write path=value, such as order=7 or customer.name=Ann")
	}
	if other, twice := w.q.Where[path]; twice && other != value {
		return fmt.Errorf("%s cannot be both %q and %q", path, other, value)
	}
	if w.q.Where == nil {
		w.q.Where = make(map[string]string)
	}
	w.q.Where[path] = value
	return nil
}

// callFlags adds to cmd the flags that choose calls of tools.
func callFlags(cmd *cobra.Command, q *messages.Query) {
	f := cmd.Flags()
	f.StringVar(&q.Tool, "tool", "", "only calls of this `TOOL`")
	f.Var(whereFlag{q}, "where", "only calls with this argument, such as order=7 or customer.name=Ann; may be repeated")
	timeFlags(cmd, q, "only calls that were asked for")
}

// timeFlags adds to cmd the flags --since and --until.
func timeFlags(cmd *cobra.Command, q *messages.Query, what string) {
	cmd.Flags().Var(&when{at: &q.Since}, "since", what+" since then: 90m, 24h, 7d, a date or a time")
	cmd.Flags().Var(&when{at: &q.Until}, "until", what+" before then")
}

// kindFlag adds to cmd the flag --kind.
func kindFlag(cmd *cobra.Command, q *messages.Query) {
	cmd.Flags().StringVar(&q.Kind, "kind", "", "only agents of this `KIND`")
}

// limitFlag adds to cmd the flag --limit.
func limitFlag(cmd *cobra.Command, q *messages.Query) {
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "show at most `N` lines (default: all)")
}

// ofAll refuses flags that only mean something without an agent, or only with
// one.
func ofAll(cmd *cobra.Command, args []string, all, agent []string) error {
	names, wrong := agent, "name the agent"
	if len(args) > 0 {
		names, wrong = all, "leave it out: an agent is named"
	}
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usage("--%s: %s", name, wrong)
		}
	}
	if limit := cmd.Flags().Lookup("limit"); limit != nil && strings.HasPrefix(limit.Value.String(), "-") {
		return usage("--limit %s: it must be positive", limit.Value)
	}
	if kind := cmd.Flags().Lookup("kind"); kind != nil && kind.Changed {
		if err := messages.ValidateToken("--kind", kind.Value.String()); err != nil {
			return usage("%v", err)
		}
	}
	return nil
}

// words lists what may be written.
func words[T ~string](list []T) string { return strings.Join(asText(list), ", ") }

func asText[T ~string](list []T) []string {
	return each(list, func(word T) string { return string(word) })
}

// each is what of makes of each of a list; nil for an empty one.
func each[T, U any](list []T, of func(T) U) (made []U) {
	for _, one := range list {
		made = append(made, of(one))
	}
	return made
}

// byteSize is the value of a flag that is a number of bytes, such as 512MiB.
type byteSize int64

// Set reads a number with or without a unit.
func (s *byteSize) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return errors.New("write a number of bytes, or one with a unit, such as 512MiB")
	}
	*s = byteSize(n)
	return nil
}

// String is the number in its largest unit; empty for none.
func (s *byteSize) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

// Type is how help names the value.
func (*byteSize) Type() string { return "BYTES" }
