package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) show() *cobra.Command {
	return a.connects(&cobra.Command{
		Use: "show AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show what an agent is doing, its queue and what it waits for",
		RunE:  func(cmd *cobra.Command, args []string) error { return a.runShow(cmd.Context(), args[0]) },
	}, defaultTimeout)
}

func (a *app) runShow(ctx context.Context, agent string) error {
	return a.lines(ctx, agent, messages.Query{View: "show"}, func(line json.RawMessage) (bool, error) {
		if a.json() {
			a.printf("%s\n", line)
			return true, nil
		}
		return true, a.status(raw[projections.AgentStatus](line))
	})
}

// status prints an agent's status for a person.
func (a *app) status(s projections.AgentStatus) error {
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", name, projections.Printable(fmt.Sprintf(format, args...), 400))
	}
	row("agent", "%s", s.Agent.Agent)
	row("phase", "%s", s.Phase)
	if s.Turn != "" {
		row("turn", "%s", s.Turn)
	}
	row("events", "%d, the newest at %s", s.Events, s.Updated.UTC().Format("2006-01-02 15:04:05"))
	row("owner", "%s, epoch %d", s.Owner, s.Epoch)
	row("queue", "%d", len(s.Queue))
	for _, id := range s.Queue {
		row("", "%s", id)
	}
	for _, w := range s.Waiting {
		row("waits for", "call %s of %s: %s", w.Call, w.Tool, w.Reason)
		row("", "%s decide %s %s completed|failed|retry", a.started, s.Agent.Agent, quoted(string(w.Call)))
	}
	return table.Flush()
}
