package cli

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) diff() *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "diff AGENT OTHER", GroupID: groupLook, Args: cobra.ExactArgs(2),
		Short: "Compare two agents: where they part, and what happened since",
		Long: `Show where two agents part: the last event that both share, and what happened to each since, in
rows as replay shows them. A turn that was open at that event has its row on each side that
changed it. For a fork and its parent, and for two forks of one agent, this is where the fork
was made.

--wide and -o json show events instead of rows.`,
		Example: `  reprise diff support/t1 support/what-if
  reprise diff support/t1 support/what-if --wide --limit 0`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runDiff(cmd.Context(), args, limit) },
	}
	cmd.Flags().IntVar(&limit, "limit", 10, "show at most `N` rows, or events, of each agent; 0: all")
	return a.connects(cmd, defaultTimeout)
}

// parting is where two agents part, as diff prints it in JSON.
type parting struct {
	// Last is the newest event that both have. 0: they have none in common.
	Last messages.EventNumber `json:"last"`
	// Agents are the two, with what they have behind that event.
	Agents [2]parted `json:"agents"`
}

// parted is what an agent has behind the event where it parts from another.
type parted struct {
	Agent  string                  `json:"agent"`
	Events []projections.EventJSON `json:"events"`
	// More reports whether it has more events.
	More bool `json:"more,omitempty"`
}

func (a *app) runDiff(ctx context.Context, args []string, limit int) error {
	var p parting
	var err error
	for i := range p.Agents {
		if p.Agents[i].Agent, err = address(args[i]); err != nil {
			return err
		}
	}
	if limit < 0 {
		return usage("--limit %d: it must not be negative", limit)
	}
	cl, ctx, closes, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closes()
	if p.Last, err = sharedBy(ctx, cl, p.Agents[0].Agent, p.Agents[1].Agent); err != nil {
		return err
	}
	if err := p.find(ctx, cl, limit); err != nil {
		return err
	}
	if a.json() {
		return a.object(p)
	}
	return a.printParting(ctx, cl, p, limit)
}

// sharedBy returns an event up to which two agents have the same ones because one is a fork of the
// other, or both are of a third. 0: none is known.
func sharedBy(ctx context.Context, cl *client.Client, one, other string) (messages.EventNumber, error) {
	var origins [2]projections.Origin
	for i, agent := range [...]string{one, other} {
		s, err := cl.Show(ctx, agent)
		if err != nil {
			return 0, err
		}
		origins[i] = projections.Origin{Parent: s.Agent.Agent, At: s.Events}
		if s.Fork != nil && !s.Fork.Owned() {
			origins[i] = *s.Fork
		}
	}
	if origins[0].Parent != origins[1].Parent {
		return 0, nil
	}
	return min(origins[0].At, origins[1].At), nil
}

// find compares the events behind Last, and gathers those of each from where they part.
func (p *parting) find(ctx context.Context, cl *client.Client, limit int) error {
	var next [2]func() (projections.EventJSON, error, bool)
	for i := range p.Agents {
		events := cl.Events(ctx, p.Agents[i].Agent, client.Only(messages.Query{From: p.Last + 1}))
		pull, stop := iter.Pull2(events)
		defer stop()
		next[i] = pull
	}
	for {
		one, errOne, thereOne := next[0]()
		other, errOther, thereOther := next[1]()
		if err := cmp.Or(errOne, errOther); err != nil {
			return err
		}
		if thereOne && thereOther && one.N == other.N && one.Frame == other.Frame {
			p.Last = one.N
			continue
		}
		if err := p.Agents[0].gather(one, thereOne, next[0], limit); err != nil {
			return err
		}
		return p.Agents[1].gather(other, thereOther, next[1], limit)
	}
}

// gather takes the events from one on, at most so many.
func (p *parted) gather(ev projections.EventJSON, there bool, next func() (projections.EventJSON, error, bool), limit int) (err error) {
	for p.Events = []projections.EventJSON{}; there; ev, err, there = next() {
		if err != nil {
			return err
		}
		if p.More = limit > 0 && len(p.Events) == limit; p.More {
			return nil
		}
		p.Events = append(p.Events, ev)
	}
	return nil
}
