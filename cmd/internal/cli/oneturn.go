package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) turn() *cobra.Command {
	q := messages.Query{View: "turn"}
	cmd := &cobra.Command{
		Use: "turn AGENT TURN", GroupID: groupLook, Args: cobra.ExactArgs(2),
		Short: "Show one turn: input, model calls, tool calls, answer and cost",
		Long: `Show one turn: the inputs, each step with what the model answered, its tool calls with arguments,
result and who decided, when it waited for a person, the answer, and the cost. Long results are
cut; "reprise history AGENT --turn TURN" has them whole. -o json prints one object: a line of
"reprise turns" with asked (the inputs), done (the steps), pauses and output.`,
		Example: `  reprise turn assistant/main t4`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Turn = messages.TurnID(args[1])
			_, err := printed(a, a.ofAgent(cmd.Context(), args[0], q), a.turnText)
			return err
		},
	}
	asOf(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

// turnText prints a turn for a person.
func (a *app) turnText(t projections.TurnDetail) {
	reason := cmp.Or(string(t.Kind), t.Reason, t.Finish, t.By)
	if reason != "" {
		reason = " (" + reason + ")"
	}
	a.headline("turn "+string(t.ID), "%s%s%s", t.Phase, reason, because(t.Message))
	if t.Continues != "" {
		a.headline("", "continues turn %s", t.Continues)
	}
	for _, in := range t.Asked {
		a.headline("input "+in.ID, "%s%s", a.time(in.At), by(in.Person))
		a.paragraph(projections.ContentText(in.Content))
	}
	output := (&projections.Output{Text: t.Output, Blob: t.OutputBlob}).String()
	for _, s := range t.Done {
		a.stepText(s, output)
	}
	for _, p := range t.Pauses {
		until := "still waits" + because(p.Message)
		if !p.Until.IsZero() {
			until = "waited " + replay.Took(p.At, p.Until) + by(p.Person)
		}
		a.headline("pause", "%s, %s", p.Reason, until)
	}
	if output != "" {
		a.headline("answer", "")
		a.paragraph(output)
	}
	total := english.Plural(t.Steps, "step", "") + ", " + costText(t.Usage, t.Cost)
	if !t.EndedAt.IsZero() {
		total += ", " + replay.Took(t.StartedAt, t.EndedAt)
	}
	a.headline("total", "%s", total)
}

// stepText prints a step of a turn, without what is the turn's answer.
func (a *app) stepText(s projections.TurnStep, answer string) {
	for _, m := range s.Models {
		how := "no answer yet"
		switch {
		case m.Lost:
			how = "its answer was lost"
		case m.Failed != "":
			how = "failed (" + m.Failed + ")" + because(m.Message)
		case m.N != 0:
			how = costText(m.Usage, m.Cost)
		}
		if !m.EndedAt.IsZero() {
			how = replay.Took(m.StartedAt, m.EndedAt) + ", " + how
		}
		a.headline(fmt.Sprintf("step %d", s.Step), "%s, %s", m.Model, how)
	}
	for _, item := range s.Items {
		text := projections.ContentText(item.Content)
		if item.Type != messages.ItemMessage {
			text = string(item.Type) + ": " + cmp.Or(text, projections.Printable(string(item.Raw), 400))
		}
		if text != answer {
			a.paragraph(text)
		}
	}
	for _, c := range s.Tools {
		how := outcomeText(c)
		if c.Approval != "" && c.Outcome != projections.CallDenied {
			if how += ", " + c.Approval; c.ApprovedBy != messages.ByDecision {
				how += " (" + string(c.ApprovedBy) + ")"
			}
		}
		if !c.StartedAt.IsZero() && !c.EndedAt.IsZero() {
			how += ", " + replay.Took(c.StartedAt, c.EndedAt)
		}
		a.headline("  call "+string(c.ID), "%s: %s", callText(c.Tool, c.Arguments), how)
		if text := outputText(c); text != "" {
			a.paragraph(text)
		}
	}
}

// headline prints a name and a text in one line.
func (a *app) headline(name, format string, args ...any) {
	text := projections.Printable(fmt.Sprintf(format, args...), 400)
	a.printf("%s\n", strings.TrimRight(a.bold(a.out, fmt.Sprintf("%-12s", projections.Printable(name, 100)))+"  "+text, " "))
}

// paragraph prints a text of several lines below a headline.
func (a *app) paragraph(text string) {
	const margin = "              "
	a.printf("%s%s\n", margin, indented(safe(text), margin))
}

// by is a person who did something; empty if no one is named.
func by(p *messages.Person) string {
	if p == nil {
		return ""
	}
	return ", by " + replay.Person(p)
}

// costText is what model calls used and cost.
func costText(u messages.Usage, cost messages.Cost) string {
	text := fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	if cost != 0 {
		text += ", cost " + cost.String()
	}
	return text
}

// turnFlag adds to cmd the flag --turn.
func turnFlag(cmd *cobra.Command, q *messages.Query) {
	cmd.Flags().StringVar((*string)(&q.Turn), "turn", "", "only what belongs to this `TURN`, such as t12")
}

// tailFlag adds to cmd the flag --tail.
func tailFlag(cmd *cobra.Command, q *messages.Query, what string) {
	cmd.Flags().IntVar(&q.Tail, "tail", 0, "only the newest `N` "+what)
}

// noneOf is the error for a turn without anything to show; nil if q names none.
func (a *app) noneOf(agent string, q messages.Query) error {
	if q.Turn == "" {
		return nil
	}
	return fail(fmt.Sprintf("`%s turns %s` lists its turns", a.started, agent), "agent %s has nothing to show of turn %q", agent, q.Turn)
}
