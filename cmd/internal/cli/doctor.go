package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) doctor() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "doctor", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "Look whether a node can be reached and what needs care",
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), tenant) },
	}
	tenantFlag(cmd, &tenant)
	return a.connects(cmd, defaultTimeout)
}

// finding is one thing that doctor looked at.
type finding struct {
	Check string `json:"check"`
	// Status is ok, warn, fail or note.
	Status string `json:"status"`
	Detail string `json:"detail"`
}

func (a *app) runDoctor(ctx context.Context, tenant string) error {
	if err := messages.ValidateToken("tenant", tenant); err != nil {
		return usage("%v", err)
	}
	found := a.examine(ctx, tenant)
	ill := slices.ContainsFunc(found, func(f finding) bool { return f.Status == "fail" })
	if a.json() {
		err := a.object(struct {
			OK     bool      `json:"ok"`
			Checks []finding `json:"checks"`
		}{!ill, found})
		if err != nil {
			return err
		}
	} else {
		for _, f := range found {
			status := fmt.Sprintf("%-4s", f.Status)
			if f.Status == "fail" || f.Status == "warn" {
				status = a.red(a.out, status)
			}
			a.printf("%s  %-12s  %s\n", status, f.Check, projections.Printable(f.Detail, 0))
		}
	}
	if ill {
		return silent(exitFailed)
	}
	return nil
}

func (a *app) examine(ctx context.Context, tenant string) (found []finding) {
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		var f *failure
		what := err.Error()
		if errors.As(err, &f) && f.do != "" {
			what += "; " + f.do
		}
		return []finding{{"server", "fail", what}}
	}
	defer done()
	return append([]finding{{"server", "ok", c.Server() + " answers"}},
		a.backlog(ctx, c), a.population(ctx, c, tenant), a.deadLetters(ctx, c, tenant),
		finding{"sync", "note", "unknown from here: a node says when it starts whether what is acknowledged is on disk"},
		finding{"tenants", "note", "within one NATS account tenants are not isolated: give each user permissions for their tenant's subjects only, or an account of their own"})
}

// backlog looks at the work queue.
func (a *app) backlog(ctx context.Context, c *client.Client) finding {
	n, err := c.Backlog(ctx)
	if err != nil {
		return finding{"queue", "fail", err.Error()}
	}
	return finding{"queue", "ok", fmt.Sprintf("%d inputs and commands are stored and not yet applied", n)}
}

// population counts a tenant's agents by phase, which only a node can tell.
func (a *app) population(ctx context.Context, c *client.Client, tenant string) finding {
	phases := make(map[string]int)
	known := 0
	for line, err := range c.QueryTenant(ctx, tenant, messages.Query{View: "agents"}) {
		if err != nil {
			return finding{"node", "fail", err.Error()}
		}
		phases[raw[projections.Agent](line).Phase]++
		known++
	}
	text := fmt.Sprintf("a node answers; tenant %s has %d agents", tenant, known)
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		parts = append(parts, fmt.Sprintf("%d %s", phases[phase], phase))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if phases["paused"] > 0 {
		return finding{"node", "warn", text + "; `" + a.started + " ls --phase paused` lists those that wait for a person"}
	}
	return finding{"node", "ok", text}
}

func (a *app) deadLetters(ctx context.Context, c *client.Client, tenant string) finding {
	n := 0
	var newest json.RawMessage
	for line, err := range c.QueryTenant(ctx, tenant, messages.Query{View: "dlq"}) {
		if err != nil {
			return finding{"dead letters", "fail", err.Error()}
		}
		n, newest = n+1, line
	}
	if n == 0 {
		return finding{"dead letters", "ok", "none"}
	}
	return finding{"dead letters", "warn", fmt.Sprintf("%d, the newest: %s; `%s dlq ls` lists them", n, raw[messages.DeadLetter](newest).Reason, a.started)}
}
