package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// verdict is a person's decision about a call that waits for approval.
type verdict struct {
	changeFlags
	argsHash string
	remember bool
}

// verdicts gives cmd the flags of a decision; later says what --remember does.
func (v *verdict) verdicts(cmd *cobra.Command, later string) {
	v.flags(cmd)
	cmd.Flags().StringVar(&v.argsHash, "args-hash", "", "decide only if the call has these arguments, as approvals -o json names them (default: those that this command shows)")
	cmd.Flags().BoolVar(&v.remember, "remember", false, later)
}

func (a *app) approve() *cobra.Command {
	var v verdict
	cmd := &cobra.Command{
		Use: "approve AGENT CALL", GroupID: groupDecide, Args: cobra.ExactArgs(2),
		Short:   "Let a call run that waits for approval",
		Example: `  reprise approve support/t1 call_10890b43423fd3494ace --reason "it was broken"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			call := messages.CallID(args[1])
			return a.decideCall(cmd.Context(), args[0], call, func(shown messages.Approval) messages.Command {
				return messages.Approve{
					ID: v.id, Turn: shown.Turn, Call: call, ArgsHash: cmp.Or(v.argsHash, shown.ArgsHash), Remember: v.remember, Reason: v.reason,
				}
			}, "approved")
		},
	}
	v.verdicts(cmd, "from now on this agent's calls of the tool run unasked; forget undoes it")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) deny() *cobra.Command {
	var v verdict
	var text string
	cmd := &cobra.Command{
		Use: "deny AGENT CALL", GroupID: groupDecide, Args: cobra.ExactArgs(2),
		Short:   "Keep a call from running that waits for approval",
		Example: `  reprise deny support/t1 call_10890b43423fd3494ace --text "Offer a voucher instead."`,
		RunE: func(cmd *cobra.Command, args []string) error {
			call := messages.CallID(args[1])
			c := messages.Deny{ID: v.id, Call: call, Remember: v.remember, Reason: v.reason}
			if cmd.Flags().Changed("text") {
				c.Text = &text
			}
			return a.decideCall(cmd.Context(), args[0], call, func(shown messages.Approval) messages.Command {
				c.Turn, c.ArgsHash = shown.Turn, cmp.Or(v.argsHash, shown.ArgsHash)
				return c
			}, "denied")
		},
	}
	v.verdicts(cmd, "from now on this agent's calls of the tool are denied unasked; forget undoes it")
	cmd.Flags().StringVar(&text, "text", "", fmt.Sprintf("what the model reads instead of a result (default: %q)", messages.DeniedText))
	return a.connects(cmd, defaultTimeout)
}

// decideCall shows a call that waits for approval and sends the decision that
// command makes of what was shown.
func (a *app) decideCall(ctx context.Context, agent string, call messages.CallID, command func(messages.Approval) messages.Command, did string) error {
	agent, err := address(agent)
	if err != nil {
		return err
	}
	cl, ctx, closes, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closes()
	shown, err := a.asked(ctx, cl, agent, call)
	if err != nil {
		return err
	}
	answer, err := cl.Do(ctx, agent, command(shown))
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(struct {
			changed
			Call      messages.CallID `json:"call"`
			Tool      string          `json:"tool"`
			Arguments string          `json:"arguments"`
		}{changed{agent, answer}, call, shown.Tool, shown.Arguments})
	}
	a.became(agent, answer, plainly("%s %s, call %s", did, callText(shown.Tool, shown.Arguments), call))
	return nil
}

// asked is the call as it was asked about: as it waits for approval or, once
// it is decided, as the log has it. What nobody was asked nobody can decide.
func (a *app) asked(ctx context.Context, cl *client.Client, agent string, call messages.CallID) (found messages.Approval, err error) {
	for line, err := range cl.Query(ctx, agent, messages.Query{View: "approvals"}) {
		if err != nil {
			return found, err
		}
		if found = raw[messages.Approval](line); found.Call == call {
			return found, nil
		}
	}
	found = messages.Approval{}
	for line, err := range cl.Query(ctx, agent, messages.Query{View: "events"}) {
		if err != nil {
			return found, err
		}
		ev := raw[projections.EventJSON](line)
		if ev.Type != (messages.ApprovalRequested{}).EventType() {
			continue
		}
		if e := raw[messages.ApprovalRequested](ev.Data); e.Call == call {
			found = messages.Approval{Turn: e.Turn, Call: call, Tool: e.Tool, Arguments: e.Arguments, ArgsHash: e.ArgsHash}
		}
	}
	if found.Call == "" {
		return found, fail(fmt.Sprintf("`%s approvals %s` lists those that do", a.started, agent), "no call %q of %s waits for approval", call, agent)
	}
	return found, nil
}
