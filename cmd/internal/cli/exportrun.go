package cli

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/eventlog/export/redact"
	"github.com/reprise-dev/reprise/messages"
)

// exported is what an export holds.
type exported struct {
	File        string            `json:"file"`
	Agents      int               `json:"agents"`
	Frames      int               `json:"frames"`
	Events      int               `json:"events"`
	Definitions int               `json:"definitions"`
	Blobs       int               `json:"blobs"`
	Missing     []messages.Digest `json:"missing,omitempty"`
	Redactions  map[string]int    `json:"redactions,omitempty"`
}

// sayExported prints what was written.
func (a *app) sayExported(sum exported, x exporting) error {
	if len(sum.Missing) > 0 {
		a.note("%d definitions and payloads that events name are no longer stored, the first: %s", len(sum.Missing), sum.Missing[0])
	}
	text := strings.Join([]string{
		english.Plural(sum.Agents, "agent", ""), english.Plural(sum.Frames, "frame", ""), english.Plural(sum.Events, "event", ""),
		english.Plural(sum.Definitions, "definition", ""), english.Plural(sum.Blobs, "payload", ""),
	}, ", ")
	for _, rule := range slices.Sorted(maps.Keys(sum.Redactions)) {
		text += fmt.Sprintf(", %s replaced %s", rule, english.Plural(sum.Redactions[rule], "time", ""))
	}
	switch {
	case x.to == "-":
		a.note("%s", text)
	case a.json():
		sum.File = x.to
		return a.object(sum)
	default:
		a.printf("%s: %s\n", x.to, text)
	}
	return nil
}

// exportRun is an export under way.
type exportRun struct {
	*app
	exporting
	client   *client.Client
	redactor *redact.Redactor
	line     *progress
	sum      exported
}

// write writes agents to w.
func (r *exportRun) write(ctx context.Context, w io.Writer, agents []messages.AgentID) error {
	to := w
	if r.as == asFile && !strings.HasSuffix(r.to, ".jsonl") {
		to = gzip.NewWriter(w)
	}
	for _, agent := range agents {
		if err := r.agent(ctx, to, agent); err != nil {
			return err
		}
	}
	if r.redactor != nil {
		r.sum.Redactions = r.redactor.Counts()
		if none := r.redactor.Unmatched(); len(none) > 0 && !r.unmatched {
			return fail("correct the rules, or give --allow-unmatched if that is expected", "nothing was written: these rules match no text: %s", strings.Join(none, ", "))
		}
	}
	if z, ok := to.(*gzip.Writer); ok {
		return z.Close()
	}
	return nil
}

// agent writes one agent, as it is now.
func (r *exportRun) agent(ctx context.Context, w io.Writer, agent messages.AgentID) error {
	from := &exportSource{c: r.client, agent: agent, at: r.at, each: func(n messages.EventNumber) {
		r.line.show("export %s, event %d; %d agents done", agent, n, r.sum.Agents)
	}}
	if deleted, err := from.newest(ctx); err != nil {
		return err
	} else if deleted {
		if len(r.kind) > 0 || r.all {
			return nil // since it was listed
		}
		return messages.Refuse(messages.NotFound, "agent %s was deleted: nothing of it is left to export", agent)
	}
	as := agent
	if r.redactor != nil {
		var err error
		if as, err = r.redactor.Begin(agent); err != nil {
			return err
		}
	}
	head := export.Head{Program: versionText(), Agent: as.Full(), At: time.Now(), Blobs: !r.noBlobs}
	if r.redactor != nil {
		head.Redacted = r.redactor.Names()
	}
	to, err := newExporter(r.as, w, head)
	if err != nil {
		return err
	}
	before := counts(r.redactor)
	missing, err := export.Copy(ctx, from, to, export.Options{Blobs: !r.noBlobs, Redactor: r.redactor})
	if err != nil {
		return err
	}
	end, err := to.Close(missing, madeSince(before, counts(r.redactor)))
	s := &r.sum
	s.Agents, s.Frames, s.Events = s.Agents+1, s.Frames+end.Frames, s.Events+end.Events
	s.Definitions, s.Blobs, s.Missing = s.Definitions+end.Definitions, s.Blobs+end.Blobs, append(s.Missing, missing...)
	return err
}

// counts are how many texts each rule has replaced; nil without rules.
func counts(r *redact.Redactor) map[string]int {
	if r == nil {
		return nil
	}
	return r.Counts()
}

// madeSince is what was counted between two counts.
func madeSince(before, after map[string]int) map[string]int {
	for rule := range after {
		after[rule] -= before[rule]
	}
	return after
}
