package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// decisionFlags say more of a person's decision about a call.
type decisionFlags struct {
	changeFlags
	turn, argsHash string
	remember       bool
}

// bound is which call a decision is about, in the help of approve and deny.
const bound = `

The decision holds for one call of one turn, with the arguments that it has when this command
reads them. If these change in between, the decision is refused. To decide only about what you
have seen, name the turn with --turn (a model may use an id again in another turn) and the
arguments with --args-hash.

If the call is one of a child agent of AGENT, the decision is passed on to the child, and the
command waits some seconds for the outcome. It fails if the decision has no effect there, such
as when someone else has decided already. An outcome that takes longer is in the event
child.settled of AGENT.`

func (a *app) approve() *cobra.Command {
	return a.decision(&cobra.Command{
		Use:     "approve AGENT CALL",
		Short:   "Approve a tool call that waits",
		Example: `  reprise approve support/t1 call_10890b43423fd3494ace --turn t4 --reason "it was broken"`,
	}, "run at once, except repeats and calls that a hook pauses", "approved", func(f decisionFlags, p messages.Approval) messages.Command {
		return messages.Approve{ID: f.id, Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Remember: f.remember, Reason: f.reason}
	})
}

func (a *app) deny() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:     "deny AGENT CALL",
		Short:   "Deny a tool call that waits",
		Example: `  reprise deny support/t1 call_10890b43423fd3494ace --turn t4 --text "Offer a voucher instead."`,
	}
	cmd.Flags().StringVar(&text, "text", "", fmt.Sprintf("`TEXT` that the model reads in place of a result (default: %q)", messages.DeniedText))
	return a.decision(cmd, "are denied at once", "denied", func(f decisionFlags, p messages.Approval) messages.Command {
		c := messages.Deny{ID: f.id, Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Remember: f.remember, Reason: f.reason}
		if cmd.Flags().Changed("text") {
			c.Text = &text
		}
		return c
	})
}

// decision completes cmd, which sends the decision that command makes of a call. later is what
// becomes of the tool's later calls with --remember, and did what became of this one.
func (a *app) decision(cmd *cobra.Command, later, did string, command func(decisionFlags, messages.Approval) messages.Command) *cobra.Command {
	var f decisionFlags
	cmd.GroupID, cmd.Args, cmd.Long = groupDecide, cobra.ExactArgs(2), cmd.Short+"."+bound
	f.flags(cmd)
	cmd.Flags().StringVar(&f.turn, "turn", "",
		"decide only if the call waits in this `TURN`, as approvals lists it (default: the turn in which it waits now)")
	cmd.Flags().StringVar(&f.argsHash, "args-hash", "",
		"decide only if the call's arguments have this `HASH`, as in approvals -o json (default: the hash that they have now)")
	cmd.Flags().BoolVar(&f.remember, "remember", false, "from now on, calls of the tool by this agent that need approval "+later+"; \"reprise approvals forget\" undoes it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.decideCall(cmd.Context(), args[0], args[1], f, did, command)
	}
	return a.connects(cmd, defaultTimeout)
}

// decideCall looks at a call that waits for approval and sends the decision that
// command makes of it: bound to its turn and its arguments, or to those that the
// flags name.
func (a *app) decideCall(ctx context.Context, agent, call string, f decisionFlags, did string, command func(decisionFlags, messages.Approval) messages.Command) error {
	agent, err := address(agent)
	if err != nil {
		return err
	}
	cl, ctx, closes, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closes()
	shown, err := a.asked(ctx, cl, agent, messages.CallID(call), messages.TurnID(f.turn))
	if err != nil {
		return err
	}
	named := shown
	named.ArgsHash = cmp.Or(f.argsHash, shown.ArgsHash)
	what := plainly("%s %s, call %s", did, callText(shown.Tool, shown.Arguments), call)
	return a.commanded(ctx, cl, agent, command(f, named), what, shown)
}

// asked is the call as it was asked about: as it waits for approval or, once it
// is decided, as the log has it. What was not asked about cannot be decided. An
// empty turn is the one that the call waits in, or did last.
func (a *app) asked(ctx context.Context, cl *client.Client, agent string, call messages.CallID, turn messages.TurnID) (found messages.Approval, err error) {
	var elsewhere messages.TurnID
	for p, err := range cl.Approvals(ctx, agent) {
		switch {
		case err != nil:
			return found, err
		case p.Call != call:
		case turn == "" || turn == p.Turn:
			return p, nil
		default:
			elsewhere = p.Turn
		}
	}
	if elsewhere != "" {
		return found, fail("see that it is the call that you mean", "call %q of %s waits in turn %s, not in turn %s", call, agent, elsewhere, turn)
	}
	if found, err = lately(ctx, cl, agent, call, turn); err == nil && found.Call == "" {
		err = fail(fmt.Sprintf("`%s approvals %s` lists those that do", a.started, agent), "no call %q of %s waits for approval", call, agent)
	}
	return found, err
}

// lookedBack is how many of an agent's newest events are searched for a call
// that was decided already.
const lookedBack = 1000

// lately is a call that was asked about not long ago; empty if there is none.
func lately(ctx context.Context, cl *client.Client, agent string, call messages.CallID, turn messages.TurnID) (found messages.Approval, err error) {
	for ev, err := range cl.Events(ctx, agent, client.Only(messages.Query{Tail: lookedBack})) {
		if err != nil {
			return found, err
		}
		if ev.Type != (messages.ApprovalRequested{}).EventType() {
			continue
		}
		if e := raw[messages.ApprovalRequested](ev.Data); e.Call == call && (turn == "" || turn == e.Turn) {
			found = messages.Approval{Turn: e.Turn, Call: call, Tool: e.Tool, Arguments: e.Arguments, ArgsHash: e.ArgsHash}
		}
	}
	return found, nil
}
