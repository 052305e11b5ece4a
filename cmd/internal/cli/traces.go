package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/traces"
	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) traces() *cobra.Command {
	var otlp string
	q := messages.Query{View: "traces"}
	cmd := &cobra.Command{
		Use: "traces AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show an agent's turns as OpenTelemetry spans, or send them to a collector",
		Long: `Show an agent's turns as OpenTelemetry spans, by the conventions for generative AI: the turn,
each attempt at a model call, each attempt at a tool call, and each wait for a person. They are
made from the log, so turns of any age have them. Their ids are the same each time, and the same
as those that a node with --otlp sends.

With -o json each turn is a line: an OTLP document in JSON, as collectors read it. --otlp sends
the spans to a collector. Both leave out spans that have not ended and, without --content,
questions, answers, arguments and results. The text form has no contents.`,
		Example: `  reprise traces support/ticket-42 --turn t12
  reprise traces support/ticket-42 --since 7d --otlp http://localhost:4318`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTraces(cmd.Context(), args[0], q, otlp) },
	}
	turnFlag(cmd, &q)
	timeFlags(cmd, &q, "only turns that started")
	asOf(cmd, &q)
	f := cmd.Flags()
	f.BoolVar(&q.Whole, "content", false, "with -o json or --otlp, include questions and answers, and arguments and results of tools")
	f.StringVar(&otlp, "otlp", "", "send the spans to the collector at this base `URL`, such as http://localhost:4318 (with the headers of $"+otlpHeadersVariable+")")
	return a.connects(cmd, defaultTimeout)
}

// traced collects spans, those of each turn by themselves.
type traced struct{ turns [][]projections.Span }

func (t *traced) add(s projections.Span) {
	if last := len(t.turns) - 1; last >= 0 && t.turns[last][0].Turn == s.Turn {
		t.turns[last] = append(t.turns[last], s)
		return
	}
	t.turns = append(t.turns, []projections.Span{s})
}

func (a *app) runTraces(ctx context.Context, agent string, q messages.Query, otlp string) error {
	of := traces.Resource{Service: os.Getenv(serviceVariable), Version: versionText()}
	var sender *traces.Sender
	if otlp != "" {
		headers, err := otlpHeaders()
		if err != nil {
			return err
		}
		if sender, err = traces.NewSender(otlp, headers, of); err != nil {
			return usage("--otlp: %v", err)
		}
	}
	var t traced
	err := a.ofAgent(ctx, agent, q)(func(line json.RawMessage) error {
		t.add(raw[projections.Span](line))
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(t.turns) == 0:
		return a.listed(0, a.noneOf(agent, q), "no turns", "")
	case sender != nil:
		return a.sendTraces(ctx, sender, t.turns)
	case a.json():
		return a.tracesJSON(of, t.turns)
	}
	for _, spans := range t.turns {
		a.traceText(spans)
	}
	return nil
}

// tracesJSON prints each turn as a document of OTLP.
func (a *app) tracesJSON(of traces.Resource, turns [][]projections.Span) error {
	for _, spans := range turns {
		if whole := finished(spans); len(whole) > 0 {
			b, err := of.JSON(whole)
			if err != nil {
				return err
			}
			a.printf("%s", jsonLine(b))
		}
	}
	return nil
}

// tracesFor is how long `reprise traces --otlp` tries to send the spans of one turn.
const tracesFor = 10 * time.Second

// sendTraces sends the spans turn by turn.
func (a *app) sendTraces(ctx context.Context, to *traces.Sender, turns [][]projections.Span) error {
	sent := tracesSent{Type: "sent"}
	for _, spans := range turns {
		whole := finished(spans)
		if len(whole) == 0 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, tracesFor)
		_, err := to.Send(within, whole)
		cancel()
		if err != nil {
			return fail(fmt.Sprintf("%d of %d turns were sent; run it again for all of them: spans keep their ids", sent.Turns, len(turns)), "%v", err)
		}
		sent.Turns, sent.Spans = sent.Turns+1, sent.Spans+len(whole)
	}
	if a.json() {
		return a.object(sent)
	}
	a.printf("sent %s of %s\n", english.Plural(sent.Spans, "span", ""), english.Plural(sent.Turns, "turn", ""))
	return nil
}

// tracesSent is what `reprise traces --otlp -o json` prints. Its names are promises.
type tracesSent struct {
	Type  string `json:"type"` // sent
	Turns int    `json:"turns"`
	Spans int    `json:"spans"`
}

// finished returns the spans that have ended, of a turn that has.
func finished(spans []projections.Span) []projections.Span {
	if spans[0].End.IsZero() {
		return nil
	}
	return spans
}

// traceText prints the spans of a turn for a person, the turn's own first.
func (a *app) traceText(spans []projections.Span) {
	root := &spans[0]
	parent := ""
	if root.Parent != "" {
		parent = ", below span " + root.Parent
	}
	a.headline("turn "+string(root.Turn), "%s, trace %s%s", a.time(root.Start), root.TraceID, parent)
	rows := [][]string{strings.Split("SPAN\tID\tBEGAN\tTOOK\tTOKENS\tOUTCOME", "\t")}
	for i := range spans {
		s := &spans[i]
		indent := ""
		if i > 0 {
			indent = "  "
		}
		rows = append(rows, []string{
			indent + projections.Printable(s.Name, 80), s.SpanID, "+" + replay.Took(root.Start, s.Start), spanTook(s), spanTokens(s), spanOutcome(s),
		})
	}
	a.columns(rows)
}

// spanTook is how long what a span shows took.
func spanTook(s *projections.Span) string {
	if s.End.IsZero() {
		return "runs"
	}
	return replay.Took(s.Start, s.End)
}

// spanTokens is what a model call used, as input and output. Empty: the span is of no model call.
func spanTokens(s *projections.Span) string {
	in, out := s.Count("gen_ai.usage.input_tokens"), s.Count("gen_ai.usage.output_tokens")
	if in == nil || out == nil {
		return ""
	}
	return fmt.Sprintf("%d+%d", *in, *out)
}

// spanOutcome is how what a span shows ended, and the agent that a call was the task of.
func spanOutcome(s *projections.Span) string {
	text := s.Error
	if text == "" {
		text = s.Attribute("reprise.turn.phase")
	}
	if child := s.Attribute("reprise.child"); child != "" {
		text = strings.TrimSpace(text + " (agent " + child + ")")
	}
	return projections.Printable(text, 200)
}
