package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) replay() *cobra.Command {
	var q messages.Query
	var plain bool
	cmd := &cobra.Command{
		Use: "replay AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Step through what happened to an agent and what each event changed",
		Long: `Step through what happened to an agent: a row for each input, turn, model call, tool call,
approval, child and change of owner, with how long it took and how long it waited. Nothing is
run and nothing is written.

On a terminal it is a debugger: beside the rows it shows, as of the selected event, what
changed, the history, the state, the model's request, the raw event and why it happened; ? lists
the keys. New rows of a running agent appear as they happen. Elsewhere, and with --plain, it
prints a line for each row, or a JSON object with -o json.

--wide shows every event with what it changed in history, state, turns and queue. Large
payloads are shown by size and hash; --whole shows them in full.`,
		Example: `  reprise replay support/ticket-42
  reprise replay support/ticket-42 --plain --turn t12
  reprise replay support/ticket-42 --wide --from 40 --at 60`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runReplay(cmd, args[0], q, plain)
		},
	}
	cmd.Flags().Uint64Var((*uint64)(&q.From), "from", 0, "first `EVENT` to show; those before it are replayed and not shown")
	cmd.Flags().Uint64Var((*uint64)(&q.At), "at", 0, "last `EVENT` to replay (default: the newest)")
	turnFlag(cmd, &q)
	cmd.Flags().BoolVar(&q.Whole, "whole", false, "show payloads that are stored as blobs in full; implies --wide")
	cmd.Flags().BoolVar(&plain, "plain", false, "print lines of text, also on a terminal")
	return a.connects(cmd, 0)
}

func (a *app) runReplay(cmd *cobra.Command, agent string, q messages.Query, plain bool) error {
	if q.At != 0 && q.From > q.At {
		return usage("--from %d is after --at %d", q.From, q.At)
	}
	all := a.wide || q.Whole
	if !all && !plain && !a.json() && !dumb() && isTerminal(a.out) && isTerminal(a.in) {
		return a.debug(cmd.Context(), agent, q)
	}
	return a.inPager(cmd, func() error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		if all {
			return a.replayEvents(ctx, agent, q)
		}
		return a.replayRows(ctx, agent, q)
	})
}

// debug shows the terminal debugger.
func (a *app) debug(ctx context.Context, agent string, q messages.Query) error {
	agent, err := address(agent)
	if err != nil {
		return err
	}
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	zone := time.Local
	if a.utc {
		zone = time.UTC
	}
	ask := func(ctx context.Context, q messages.Query) iter.Seq2[json.RawMessage, error] {
		return c.Query(ctx, agent, q)
	}
	return replay.Run(ctx, replay.Config{Agent: agent, Source: ask, Rows: q, Request: requestIn(zone), Zone: zone, In: a.in, Out: terminalOf(a.out)})
}

// replayRows prints a line for each row of an agent's timeline.
func (a *app) replayRows(ctx context.Context, agent string, q messages.Query) error {
	q.View = "timeline"
	rows, err := printed(a, a.ofAgent(ctx, agent, q), func(r projections.Row) { a.printf("%s\n", a.row(r)) })
	if err == nil && rows == 0 {
		return a.noneOf(agent, q)
	}
	return err
}

// widest is the most columns of a row where there is no terminal.
const widest = 240

// row returns a row of a timeline as a line.
func (a *app) row(r projections.Row) string {
	took, waited := "", ""
	if !r.Until.IsZero() {
		took = replay.Took(r.At, r.Until)
	}
	if w := r.Waited(time.Now()); w > 0 {
		waited = "  waited " + replay.Took(r.At, r.At.Add(w))
	}
	if r.Open {
		took = "…"
	}
	layout := toMillisecond
	if width := a.width(); width > 0 && width < roomy {
		layout = time.TimeOnly
	}
	before := fmt.Sprintf("%6d  %s  %8s  %s%-10s  ", r.N, a.moment(r.At, layout), took, strings.Repeat("  ", replay.Depth(r)), r.Kind)
	text := replay.Words(r) + waited + by(r.Person)
	if a.width() == 0 {
		return runewidth.Truncate(before+text, widest, "…")
	}
	return before + a.fits(text, before)
}

// replayEvents prints each event of an agent with what it changed.
func (a *app) replayEvents(ctx context.Context, agent string, q messages.Query) error {
	q.View = "replay"
	out := bufio.NewWriterSize(a.out, 1<<16)
	changes := 0
	err := a.ofAgent(ctx, agent, q)(func(line json.RawMessage) error {
		changes++
		return a.change(out, raw[projections.Change](line))
	})
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if err == nil && changes == 0 {
		return a.noneOf(agent, q)
	}
	return err
}

// change writes what an event changed.
func (a *app) change(out io.Writer, c projections.Change) error {
	if !a.json() {
		return c.WriteTextAt(out, a.moment(c.At, toMillisecond))
	}
	b, err := json.Marshal(c)
	if err == nil {
		_, err = out.Write(jsonLine(b))
	}
	return err
}
