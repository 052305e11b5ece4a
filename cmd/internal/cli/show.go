package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) show() *cobra.Command {
	q := messages.Query{View: "show"}
	cmd := &cobra.Command{
		Use: "show AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show what an agent is doing, its queue and what it waits for",
		Long:  `Show what an agent is doing, which inputs wait, and what it waits for.`,
		Example: `  reprise show assistant/main
  reprise show assistant/main --at 12`,
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
	r := &statusRows{app: a, agent: s.Agent.Agent.String()}
	r.life(s)
	r.queue(s)
	r.origin(s)
	for _, c := range s.Children {
		r.add("asks", "%s, call %s: %s", c.Agent, c.Call, c.Status)
	}
	if s.Budget != nil {
		if s.Budget.Turn != nil {
			r.add("this turn", "%s", accountText(*s.Budget.Turn))
		}
		r.add("all turns", "%s", accountText(s.Budget.Agent))
	}
	r.waits(s)
	a.fields(r.rows)
}

// statusRows are the rows of an agent's status.
type statusRows struct {
	*app
	agent string
	rows  [][2]string
}

// add adds a row. Without a name it continues the one before.
func (r *statusRows) add(name, format string, args ...any) {
	r.rows = append(r.rows, [2]string{name, projections.Printable(fmt.Sprintf(format, args...), 400)})
}

// life adds what the agent does, how its last turn ended, and who owns it.
func (r *statusRows) life(s projections.AgentStatus) {
	r.add("agent", "%s", r.agent)
	r.add("phase", "%s", s.Phase)
	if s.Turn != "" {
		r.add("turn", "%s", s.Turn)
	}
	if t := s.Failed; t != nil {
		r.add("last turn", "%s failed (%s) at %s%s", t.Turn, t.Reason, r.time(t.At), because(t.Message))
		if s.Turn == "" && s.Deleted == nil {
			r.add("", "%s resume %s%s continues it", r.started, r.agent, limit{scope: messages.ScopeTurn}.raise(t.Reason))
		}
	}
	if end := s.Deleted; end != nil {
		r.add("deleted", "%s", r.endText(end))
	}
	r.add("events", "%d, the newest at %s", s.Events, r.time(s.Updated))
	r.add("owner", "%s, epoch %d", s.Owner, s.Epoch)
}

// queue adds the inputs that wait, and those that are scheduled.
func (r *statusRows) queue(s projections.AgentStatus) {
	r.add("queue", "%d", len(s.Queue))
	r.some("", "queued", s.Queue)
	r.some("steered", "steered", s.Steered)
	if s.Timers > 0 {
		r.add("later", "%s, the next at %s: see `%s timers %s`", english.Plural(s.Timers, "input", ""), r.time(s.Next), r.started, r.agent)
	}
}

// some adds the first of so many ids.
func (r *statusRows) some(name, which string, ids []string) {
	for _, id := range ids[:min(len(ids), shownInputs)] {
		r.add(name, "%s", id)
	}
	if more := len(ids) - shownInputs; more > 0 {
		r.add(name, "and %d more: `%s show %s -o json` gives the ids of all that are %s", more, r.started, r.agent, which)
	}
}

// origin adds the agent's parent, and the agents that begin with the same events.
func (r *statusRows) origin(s projections.AgentStatus) {
	if s.Parent != nil {
		r.add("works for", "%s, call %s of turn %s", short(s.Parent.Agent), s.Parent.Call, s.Parent.Turn)
	}
	if o := s.Fork; o != nil {
		from, dry := "fork of", ""
		if o.Imported {
			from = "imported"
		}
		if o.Detached {
			dry = ", detached from it"
		}
		if !o.Tools {
			dry += fmt.Sprintf("; its tools are dry: %s use-tools %s", r.started, r.agent)
		}
		r.add(from, "%s at event %d%s", o.Parent, o.At, dry)
		if with := changesText(o.Set); with != "" {
			r.add("", "with %s", with)
		}
	}
	if s.Forks > 0 {
		r.add("forks", "%d: see `%s forks %s`", s.Forks, r.started, r.agent)
	}
}

// waits adds what the agent waits for, and what to do about it.
func (r *statusRows) waits(s projections.AgentStatus) {
	for _, w := range s.Waiting {
		r.add("waits for", "%s", waitText(w))
		if !w.ExpiresAt.IsZero() {
			r.add("", "denied without a decision at %s", r.time(w.ExpiresAt))
		}
		r.add("", "%s", r.settle(r.agent, s, w))
	}
	if s.WaitingMore {
		r.add("waits for", "%s", r.moreWaits())
	}
	if besides(s) {
		reason, what, do := r.besidesText(r.agent, s, limit{})
		r.add("waits for", "%s%s", reason, because(what))
		r.add("", "%s", do)
	}
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
