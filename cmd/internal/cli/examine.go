package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// examination prints what a doctor finds, line by line, and sums it up.
type examination struct {
	app  *app
	line *progress
	sum  doctor.Counts
	// warned is how many findings need care and are no problem, ill how many are
	// problems with no agent.
	warned, ill int
	// whole reports whether it came to its end.
	whole bool
	// encrypted reports whether what is stored is encrypted; nil: unknown.
	encrypted *bool
	// scrubbed is how far the log was read through in the background; nil: unknown.
	scrubbed *doctor.Scrubbed
}

func (a *app) examination() *examination { return &examination{app: a, line: a.progress()} }

// finding prints one thing that is wrong.
func (x *examination) finding(f doctor.Finding) {
	x.line.end()
	a := x.app
	switch {
	case f.Repaired:
	case f.Status == doctor.Warn:
		x.warned++
	default:
		x.ill++
	}
	if a.json() {
		_ = a.object(struct {
			Type string `json:"type"`
			doctor.Finding
		}{"finding", f}) // an object of plain fields; a closed pipe is reported at the end
		return
	}
	status := a.red(a.out, fmt.Sprintf("%-4s", f.Status))
	if f.Repaired {
		status = "done"
	}
	a.printf("%s  %-12s  %s%s\n", status, f.Check, place(f), a.timed(projections.Printable(f.Detail, 0)))
	if f.Remedy != "" {
		a.printf("%20s%s\n", "", projections.Printable(f.Remedy, 0))
	}
}

// place returns where a finding is.
func place(f doctor.Finding) string {
	if f.Agent == (messages.AgentID{}) {
		return ""
	}
	text := f.Agent.String()
	if f.Event > 0 {
		text += fmt.Sprintf(" at event %d", f.Event)
	}
	if f.Seq > 0 {
		text += fmt.Sprintf(" (%s)", strings.TrimSpace(fmt.Sprintf("%s sequence %d", f.Stream, f.Seq)))
	}
	return projections.Printable(text, 0) + ": "
}

// result sums up.
func (x *examination) result() finding {
	x.line.end()
	c := x.sum
	text := fmt.Sprintf("%s with %s, %s and %s were read", english.Plural(c.Agents, "agent", ""), english.Plural(c.Frames, "frame", ""), english.Plural(c.Events, "event", ""), english.Plural(c.Blobs, "payload", ""))
	for _, more := range []struct {
		n         int
		one, many string
	}{{x.ill, "problem", ""}, {x.warned, "thing that needs care", "things that need care"}, {c.Repaired, "repaired", "repaired"}, {c.Untold, "more that is not named", "more that are not named"}} {
		if more.n > 0 {
			text += ", " + english.Plural(more.n, more.one, more.many)
		}
	}
	status := "ok"
	switch {
	case x.ill > 0 || c.Problems > 0:
		status = "fail"
	case x.warned > 0:
		status = "warn"
	}
	if !x.whole {
		return finding{"log", "fail", "not everything could be checked: " + text}
	}
	return finding{"log", status, text}
}

// encryption reports whether what is stored is encrypted, if that is known.
func (x *examination) encryption() []finding {
	switch {
	case x.encrypted == nil:
		return nil
	case *x.encrypted:
		return []finding{{"encryption", "ok", "inputs, answers and tool calls are stored encrypted, except those stored before encryption was switched on"}}
	}
	return []finding{{"encryption", "note", "off: anyone who has the files or a backup can read them; serve --key-file switches it on"}}
}

// scrub returns how far the log was read through in the background, if a node has said.
func (x *examination) scrub() []finding {
	switch {
	case x.scrubbed == nil:
		return nil
	case x.scrubbed.Whole:
		return []finding{{"scrub", "ok", x.scrubbed.Detail}}
	}
	return []finding{{"scrub", "note", x.scrubbed.Detail}}
}

// remote has a node examine the store, or one agent if it is named.
func (x *examination) remote(ctx context.Context, c *client.Client, agent string, q messages.Query) error {
	var lines iter.Seq2[json.RawMessage, error]
	if lines = c.QueryStore(ctx, q); agent != "" {
		lines = c.Query(ctx, agent, q)
	}
	for line, err := range lines {
		if err != nil {
			return err
		}
		e := raw[gateway.Examined](line)
		x.scrubbed = cmp.Or(e.Scrubbed, x.scrubbed)
		switch {
		case e.Finding != nil:
			x.finding(*e.Finding)
		case e.Type == "examined" && e.Counts != nil:
			x.sum.Add(*e.Counts)
			x.line.show("examine: %d of %d parts, %d agents, %d frames", e.Shard, e.Shards, x.sum.Agents, x.sum.Frames)
			x.whole = e.Shard == e.Shards
			x.encrypted = e.Encrypted
		case e.Counts != nil:
			x.line.show("examine: part %d of %d, %d agents, %d frames", e.Shard, e.Shards, x.sum.Agents+e.Counts.Agents, x.sum.Frames+e.Counts.Frames)
		}
	}
	return nil
}

// local examines a store that no node runs on.
func (x *examination) local(ctx context.Context, d *doctor.Doctor) error {
	for shard := range d.Shards() {
		counts, err := d.Shard(ctx, shard, doctor.Options{}, x.finding, func(c doctor.Counts) {
			x.line.show("examine: part %d of %d, %d agents, %d frames", shard+1, d.Shards(), x.sum.Agents+c.Agents, x.sum.Frames+c.Frames)
		})
		x.sum.Add(counts)
		if err != nil {
			return err
		}
	}
	x.whole = true
	return nil
}
