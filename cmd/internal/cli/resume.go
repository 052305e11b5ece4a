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

// raises gives cmd the flags that set new limits. Their names begin with
// prefix; whose is what they limit.
func (f *raiseFlags) raises(cmd *cobra.Command, prefix, whose string) {
	fs := cmd.Flags()
	fs.IntVar(&f.steps, prefix+"max-steps", 0, "new limit of model calls in "+whose+" (default: the old one)")
	fs.IntVar(&f.tokens, prefix+"max-tokens", 0, "new limit of tokens in "+whose)
	fs.Float64Var(&f.cost, prefix+"max-cost", 0,
		"new limit of what "+whose+" may cost, in the unit of the price table: a model without a price there costs nothing and never reaches it")
	fs.DurationVar(&f.duration, prefix+"max-duration", 0, "new limit of the time that "+whose+" may run, such as 10m")
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
		return messages.LimitOverrides{}, usage("--%smax-cost %v: that is nothing; write at least 0.000000001", prefix, f.cost)
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
		Short: "Go on with a paused turn, or with a failed one at the failed step",
		Long: `Go on with a paused turn, or with a failed one at the failed step. A turn that
reached a limit goes on when the limit is raised. A call that waits for approval, or
whose outcome is unknown, is settled with approve, deny or decide.

A limit that is set here holds in place of the old one, be that the definition's,
and may be higher, lower or the first: those of this turn until it ends, those of
the agent until they are set again. Also a turn that runs gets them.`,
	}
	cmd.Flags().StringVar(&turn, "turn", "", "turn to go on with (default: the newest)")
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
