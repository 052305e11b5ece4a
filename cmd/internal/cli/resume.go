package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

// raiseFlags are new limits, of a turn or of the whole agent.
type raiseFlags struct {
	steps, tokens int
	cost          float64
	duration      time.Duration
}

// raises adds to cmd the flags that set new limits. Their names begin with prefix; whose is what
// they limit.
func (f *raiseFlags) raises(cmd *cobra.Command, prefix, whose string) {
	fs := cmd.Flags()
	fs.IntVar(&f.steps, prefix+"max-steps", 0, "new limit: `N` model calls in "+whose+" (default: the current one)")
	fs.IntVar(&f.tokens, prefix+"max-tokens", 0, "new limit: `N` tokens in "+whose)
	fs.Float64Var(&f.cost, prefix+"max-cost", 0,
		"new limit: `COST` of "+whose+", in the unit of the price table; a model without a price costs nothing")
	fs.DurationVar(&f.duration, prefix+"max-duration", 0, "new limit: `DURATION` of "+whose+", such as 10m")
}

func (f *raiseFlags) raised(prefix string) (messages.LimitOverrides, error) {
	switch {
	case f.steps < 0:
		return messages.LimitOverrides{}, usage("--%smax-steps %d: it must be positive", prefix, f.steps)
	case f.tokens < 0:
		return messages.LimitOverrides{}, usage("--%smax-tokens %d: it must be positive", prefix, f.tokens)
	case !(f.cost >= 0 && f.cost <= 1e9):
		return messages.LimitOverrides{}, usage("--%smax-cost %v: write an amount from 0 to 1000000000", prefix, f.cost)
	case f.cost > 0 && messages.CostOf(f.cost) == 0:
		return messages.LimitOverrides{}, usage("--%smax-cost %v: that is too small; write at least 0.000000001", prefix, f.cost)
	case f.duration < 0 || f.duration > 0 && f.duration < time.Millisecond:
		return messages.LimitOverrides{}, usage("--%smax-duration %v: write a duration such as 10m", prefix, f.duration)
	}
	return messages.LimitOverrides{MaxSteps: f.steps, MaxTokens: f.tokens, MaxCost: f.cost, MaxDuration: messages.Span(f.duration)}, nil
}

// resumed is what resume did. It names a turn only if one continues because of it.
func resumed(turn messages.TurnID) string {
	if turn == "" {
		return "the new limits are set; no turn waited for them"
	}
	return ofTurn("resumed")(turn)
}

func (a *app) resume() *cobra.Command {
	const agents = "agent-" // begins the flags of the agent's limits
	var turn string
	var ofTheTurn, ofTheAgent raiseFlags
	cmd := &cobra.Command{
		Use: "resume AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Resume a paused turn, or a failed one at the failed step",
		Long: `Resume a paused turn, or a failed one at the failed step. A turn that reached a limit continues
when the limit is raised. If the turn waits for an approval, or for the outcome of a call, use
"reprise approve", "reprise deny" or "reprise decide".

A limit that you set here replaces the limit of the definition; it may be higher, lower or the
first one. A limit of the turn holds until the turn ends, a limit of the agent until you set it
again. A running turn gets the new limits, too.`,
		Example: `  reprise resume support/ticket-42 --max-tokens 100000
  reprise resume support/ticket-42 --turn t12 --max-steps 40 --agent-max-cost 50`,
	}
	cmd.Flags().StringVar(&turn, "turn", "", "`TURN` to resume (default: the newest)")
	ofTheTurn.raises(cmd, "", "this turn")
	ofTheAgent.raises(cmd, agents, "all turns of the agent")
	return a.changes(cmd, func(f changeFlags, _ []string) (_ messages.Command, did done, err error) {
		c := messages.Resume{ID: f.id, Turn: messages.TurnID(turn), Reason: f.reason}
		if c.LimitOverrides, err = ofTheTurn.raised(""); err == nil {
			c.AgentLimits, err = ofTheAgent.raised(agents)
		}
		return c, resumed, err
	})
}
