package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) events() *cobra.Command {
	q := messages.Query{View: "events"}
	cmd := &cobra.Command{
		Use: "events AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show the log of an agent, event by event",
		Long: `Show the log of an agent, event by event. The text form shortens long data; -o json has it
whole, one object a line. Data that is too large for the log is named by its size and hash, as
a blob; --whole puts it back. --follow begins with the newest 20 events, unless --from, --tail
or --turn is given.`,
		Example: `  reprise events assistant/main --turn t4
  reprise events assistant/main --follow
  reprise events assistant/main --from 100 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Tail != 0 && (q.From != 0 || q.Turn != "") {
				return usage("--tail excludes --from and --turn: leave one out")
			}
			if q.Follow && q.From == 0 && q.Tail == 0 && q.Turn == "" {
				q.Tail = followedFrom
			}
			return a.runEvents(cmd.Context(), args[0], q)
		},
	}
	cmd.Flags().Uint64Var((*uint64)(&q.From), "from", 0, "show events from this `EVENT` on")
	tailFlag(cmd, &q, "events")
	turnFlag(cmd, &q)
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "show at most `N` events (default: all)")
	cmd.Flags().BoolVar(&q.Whole, "whole", false, "put payloads that are stored as blobs into the events")
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "continue with new events until Ctrl-C")
	return waitsFor(a.connects(cmd, 0), "an answer, or for more of it; with --follow, to follow")
}

// followedFrom is how many events that have happened --follow shows first.
const followedFrom = 20

func (a *app) runEvents(ctx context.Context, agent string, q messages.Query) error {
	if q.Limit < 0 {
		return usage("--limit %d: it must be positive", q.Limit)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	out := bufio.NewWriterSize(a.out, 1<<16)
	defer func() { _ = out.Flush() }()
	events, cut := 0, false
	err := a.ofAgent(ctx, agent, q)(func(line json.RawMessage) error {
		if events++; a.json() {
			_, _ = out.Write(jsonLine(line))
		} else {
			text, short := a.eventLine(line)
			cut = cut || short
			_, _ = fmt.Fprintln(out, text)
		}
		if q.Follow {
			return out.Flush()
		}
		return nil
	})
	if ctx.Err() != nil || q.Follow && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err == nil && events == 0 {
		return a.noneOf(agent, q)
	}
	if cut && out.Flush() == nil {
		a.noteCut()
	}
	return err
}

// roomy is from which width on a terminal has place for milliseconds besides data.
const roomy = 100

// eventLine is an event in columns: number, time, type, step and data. It reports whether data
// were cut to the width of the terminal.
func (a *app) eventLine(line json.RawMessage) (text string, cut bool) {
	ev := raw[projections.EventJSON](line)
	step := ""
	if ev.Step > 0 {
		step = strconv.Itoa(ev.Step)
	}
	layout, width := toMillisecond, a.width()
	if width > 0 && width < roomy {
		layout = time.DateTime
	}
	n, at, kind := fmt.Sprintf("%6d  ", ev.N), a.moment(ev.At, layout), fmt.Sprintf("  %-18s ", projections.Printable(ev.Type, 64))
	place := fmt.Sprintf("%-5s %3s  ", projections.Printable(string(ev.Turn), 64), step)
	fields := fieldsOf(ev.Data, "turn", "step")
	if width > 0 {
		slices.SortStableFunc(fields, mostFirst)
	}
	data := projections.Printable(strings.Join(fields, " "), 160)
	if ev.Person != nil {
		data = strings.TrimSpace(data + " person=" + replay.Person(ev.Person))
	}
	shown := a.fits(data, n+at+kind+place)
	return n + a.dim(a.out, at) + a.bold(a.out, kind) + place + shown, shown != data
}

// sayMost are the names of the fields that say most, where there is not place for all.
var sayMost = []string{"message", "reason", "tool", "content", "text", "output", "outcome", "items", "error"}

// mostFirst orders fields: those that say most first.
func mostFirst(one, other string) int {
	place := func(field string) int {
		name, _, _ := strings.Cut(field, "=")
		if i := slices.Index(sayMost, name); i >= 0 {
			return i
		}
		return len(sayMost)
	}
	return place(one) - place(other)
}

// summary is the fields of a JSON object as name=value, some left out. What is
// no object is given as it is.
func summary(data json.RawMessage, without ...string) string {
	return strings.Join(fieldsOf(data, without...), " ")
}

// fieldsOf are the parts of a summary.
func fieldsOf(data json.RawMessage, without ...string) (fields []string) {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return []string{string(data)}
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		field, _ := name.(string)
		if !slices.Contains(without, field) {
			fields = append(fields, field+"="+fieldText(value))
		}
	}
	return fields
}

// hash is a SHA-256 in hex, of which a person needs the head alone.
var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// fieldText is a value; a string of one word without its quotes.
func fieldText(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && s != "" && !strings.ContainsAny(s, " \"=\n\t") {
		if hash.MatchString(s) {
			return s[:12] + "…"
		}
		return s
	}
	return string(value)
}
