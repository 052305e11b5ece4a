package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) show() *cobra.Command {
	q := messages.Query{View: "show"}
	cmd := &cobra.Command{
		Use: "show AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show what an agent is doing, its queue and what it waits for",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := printed(a, a.ofAgent(cmd.Context(), args[0], q), a.status)
			return err
		},
	}
	asOf(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

// shownInputs is how many inputs of a kind are shown to a person.
const shownInputs = 10

// status prints an agent's status for a person.
func (a *app) status(s projections.AgentStatus) {
	var rows [][2]string
	row := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, projections.Printable(fmt.Sprintf(format, args...), 400)})
	}
	agent := s.Agent.Agent.String()
	row("agent", "%s", agent)
	row("phase", "%s", s.Phase)
	if s.Turn != "" {
		row("turn", "%s", s.Turn)
	}
	if t := s.Failed; t != nil {
		row("last turn", "%s failed (%s) at %s%s", t.Turn, t.Reason, a.time(t.At), because(t.Message))
		if s.Turn == "" && s.Deleted == nil {
			row("", "%s resume %s%s continues it", a.started, agent, limit{scope: messages.ScopeTurn}.raise(t.Reason))
		}
	}
	if end := s.Deleted; end != nil {
		row("deleted", "%s", a.endText(end))
	}
	row("events", "%d, the newest at %s", s.Events, a.time(s.Updated))
	row("owner", "%s, epoch %d", s.Owner, s.Epoch)
	row("queue", "%d", len(s.Queue))
	some := func(name, which string, ids []string) {
		for _, id := range ids[:min(len(ids), shownInputs)] {
			row(name, "%s", id)
		}
		if more := len(ids) - shownInputs; more > 0 {
			row(name, "and %d more: `%s show %s -o json` gives the ids of all that are %s", more, a.started, agent, which)
		}
	}
	some("", "queued", s.Queue)
	some("steered", "steered", s.Steered)
	if s.Timers > 0 {
		row("later", "%d inputs, the next at %s: see `%s timers %s`", s.Timers, a.time(s.Next), a.started, agent)
	}
	if s.Parent != nil {
		row("works for", "%s, call %s of turn %s", short(s.Parent.Agent), s.Parent.Call, s.Parent.Turn)
	}
	if s.Fork != nil {
		dry := ""
		if !s.Fork.Tools {
			dry = fmt.Sprintf("; its tools are dry: %s use-tools %s", a.started, agent)
		}
		from := "fork of"
		if s.Fork.Imported {
			from = "imported"
		}
		row(from, "%s at event %d%s", s.Fork.Parent, s.Fork.At, dry)
		if with := changesText(s.Fork.Set); with != "" {
			row("", "with %s", with)
		}
	}
	if s.Forks > 0 {
		row("forks", "%d: see `%s forks %s`", s.Forks, a.started, agent)
	}
	for _, c := range s.Children {
		row("asks", "%s, call %s: %s", c.Agent, c.Call, c.Status)
	}
	if s.Budget != nil {
		if s.Budget.Turn != nil {
			row("this turn", "%s", accountText(*s.Budget.Turn))
		}
		row("all turns", "%s", accountText(s.Budget.Agent))
	}
	for _, w := range s.Waiting {
		row("waits for", "%s", waitText(w))
		if !w.ExpiresAt.IsZero() {
			row("", "denied without a decision at %s", a.time(w.ExpiresAt))
		}
		row("", "%s", a.settle(agent, s, w))
	}
	if s.WaitingMore {
		row("waits for", "%s", a.moreWaits())
	}
	if besides(s) {
		reason, what, do := a.besidesText(agent, s, limit{})
		row("waits for", "%s%s", reason, because(what))
		row("", "%s", do)
	}
	a.fields(rows)
}

// accountText is what was used of a budget: "3 of 20 steps, 151 tokens".
func accountText(b projections.Budget) string {
	texts := []string{
		usedText(b.Used.Steps, b.Limits.MaxSteps, strconv.Itoa) + " steps",
		usedText(b.Used.Tokens, b.Limits.MaxTokens, strconv.Itoa) + " tokens",
	}
	if b.Used.Cost != 0 || b.Limits.MaxCost != 0 {
		texts = append(texts, usedText(b.Used.Cost, b.Limits.MaxCost, messages.Cost.String)+" cost")
	}
	if b.Used.Duration != 0 || b.Limits.MaxDuration != 0 {
		texts = append(texts, usedText(b.Used.Duration, b.Limits.MaxDuration, func(ms int64) string {
			return (time.Duration(ms) * time.Millisecond).String()
		}))
	}
	return strings.Join(texts, ", ")
}

func usedText[N comparable](used, limit N, text func(N) string) string {
	if none := *new(N); limit == none {
		return text(used)
	}
	return text(used) + " of " + text(limit)
}
