package rerun

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/projections"
)

// shown is how much of a text is shown to a person.
const shown = 300

// Text describes the result for a person.
func (r *Result) Text() string {
	var b strings.Builder
	switch {
	case r.Result == Unreadable:
		fmt.Fprintf(&b, "%s: cannot be run again: %s\n", r.Agent, line(r.Why))
		return b.String()
	case r.Result == Failed:
		fmt.Fprintf(&b, "%s: failed: %s\n", r.Agent, line(r.Why))
	case r.Used == nil:
		fmt.Fprintf(&b, "%s: calls made again: %d with the recorded result, %d with another\n", r.Agent, r.Calls.Equal, r.Calls.Changed)
	default:
		fmt.Fprintf(&b, "%s: %s; turns: %d; calls: %d equal, %d changed, %d missing, %d new\n",
			r.Agent, r.Result, len(r.Turns), r.Calls.Equal, r.Calls.Changed, r.Calls.Missing, r.Calls.New)
	}
	r.differences(&b)
	r.tools(&b)
	if r.Used != nil {
		fmt.Fprintf(&b, "  used: %s\n", r.Used.Text())
	}
	r.grades(&b)
	return b.String()
}

// differences describes the first difference and the answers that differ.
func (r *Result) differences(b *strings.Builder) {
	if d := r.Difference; d != nil {
		fmt.Fprintf(b, "  first difference, in turn %d\n    recorded: %s\n    now:      %s\n", d.Turn, line(d.Recorded), line(d.Now))
	}
	for i, t := range r.Turns {
		was, is := ended(t.Recorded), ended(t.Now)
		if d := r.Difference; t.Same || !r.compared(&t) || was == is || d.Turn == i+1 && d.Recorded == was && d.Now == is {
			continue
		}
		fmt.Fprintf(b, "  answer of turn %d\n    recorded: %s\n    now:      %s\n", i+1, line(was), line(is))
	}
}

// tools describes what tools did, and what is not on record.
func (r *Result) tools(b *strings.Builder) {
	for _, c := range r.Tools {
		fmt.Fprintf(b, "  %s\n    recorded: %s\n    now:      %s\n", line(callText(c.Tool, c.Arguments)), outputText(c.Recorded, c.Failed), outputText(c.Now, c.NowFailed))
	}
	for _, u := range r.Unrecorded {
		what := "no result"
		if u.What == "approval" {
			what = "no decision of a person"
		}
		fmt.Fprintf(b, "  not on record: %s has %s\n", line(callText(u.Tool, u.Arguments)), what)
	}
	if len(r.Ran) > 0 {
		fmt.Fprintf(b, "  ran: %s\n", counted(r.Ran))
	}
	if len(r.Skipped) > 0 {
		fmt.Fprintf(b, "  not run: %s\n", counted(r.Skipped))
	}
}

// grades describes the scores.
func (r *Result) grades(b *strings.Builder) {
	switch g := r.Grades; {
	case g == nil:
	case g.Error != "":
		fmt.Fprintf(b, "  no score: %s\n", line(g.Error))
	default:
		fmt.Fprintf(b, "  score: recorded %s; now %s\n", scoreText(*g.Recorded), scoreText(*g.Now))
	}
}

func scoreText(s Score) string {
	text := strconv.FormatFloat(s.Score, 'g', 6, 64)
	if s.Reason != "" {
		text += " (" + line(s.Reason) + ")"
	}
	return text
}

// ended describes how a turn ended.
func ended(x *projections.Exchange) string { return sideText(x, len(callsOf(x))) }

func outputText(output string, failed bool) string {
	if failed {
		return "failed: " + line(output)
	}
	return line(output)
}

// Text describes what was consumed for a person.
func (u *Usages) Text() string {
	return "recorded " + usedText(u.Recorded) + "; now " + usedText(u.Now)
}

func usedText(u projections.Used) string {
	text := fmt.Sprintf("%s, %d tokens in, %d out", english.Plural(u.Calls, "model call", ""), u.Usage.Input, u.Usage.Output)
	if u.Cost != 0 {
		text += ", cost " + u.Cost.String()
	}
	return text
}

// counted lists names with their counts.
func counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", line(name), counts[name]))
	}
	return strings.Join(parts, ", ")
}

// line returns a text as one line that is safe on a terminal.
func line(text string) string { return projections.Printable(text, shown) }
