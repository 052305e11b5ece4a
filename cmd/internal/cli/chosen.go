package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// chosen are the agents that a command is for: those that are named, or all of a tenant or of a kind.
type chosen struct {
	named        []messages.AgentID
	all          bool
	kind, tenant string
}

func (c *chosen) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&c.all, "all", false, "all agents of the tenant")
	f.StringVar(&c.kind, "kind", "", "all agents of this `KIND`")
	tenantFlag(cmd, &c.tenant)
}

// check reads the agents that args name. Unless agents are chosen in exactly one way, it returns a usage
// error with the text wrong. others report whether they are chosen in further ways.
func (c *chosen) check(args []string, wrong string, others ...bool) error {
	ways := 0
	for _, is := range append([]bool{len(args) > 0, c.all, c.kind != ""}, others...) {
		if is {
			ways++
		}
	}
	if ways != 1 {
		return usage("%s", wrong)
	}
	for _, arg := range args {
		id, err := messages.ParseAgentID(arg)
		switch {
		case err != nil:
			return usage("%v", err)
		case slices.Contains(c.named, id):
			return usage("%s is named twice", id)
		}
		c.named = append(c.named, id)
	}
	return nil
}

// list returns the agents. A node lists all of a tenant or of a kind; an error comes with those that it could list.
func (c *chosen) list(ctx context.Context, cl *client.Client) (agents []messages.AgentID, err error) {
	if len(c.named) > 0 {
		return c.named, nil
	}
	for row, err := range cl.Agents(ctx, c.tenant, client.Only(messages.Query{Kind: c.kind})) {
		if err != nil {
			return agents, err
		}
		agents = append(agents, row.Agent)
	}
	return agents, nil
}
