package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// forkFlags are the flags of fork.
type forkFlags struct {
	changeFlags
	at    uint64
	tools bool
	set   []string
}

func (a *app) fork() *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use: "fork AGENT NEW", GroupID: groupChange, Args: cobra.ExactArgs(2),
		Short: "Create an agent that continues from any event of another one",
		Long: `Create an agent, a fork, that continues from any event of another agent, its parent. Both
continue, and neither sees what the other does later. The events up to that one are shared, not
copied: the parent cannot be deleted while the fork needs them, except with --cascade or
--detach. If AGENT is a fork and shares the event with its own parent, the fork is made there.

NEW is an address that no agent has or had. It may be of another kind. With --set it has another
model, other instructions or fewer tools than its kind.

Waiting inputs, timers and messages to other agents stay with the parent. A fork that is made
inside a turn is paused until it is resumed; calls that ran at that point are unknown in the fork
and need "reprise decide".

The tools of a fork are dry: a call gets the result that the parent has on record for the same
call, or for the same tool and arguments. Without such a result it waits for a person (see
"reprise decide"). "reprise use-tools" lets the fork run its tools.`,
		Example: `  reprise fork support/t1 support/what-if --at 42
  reprise fork support/t1 support/brief --at 42 --set model=openai/gpt-5.5 --set instructions=@brief.md
  reprise fork support/t1 support-next/t1 --at 42 --reason "the new instructions"`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runFork(cmd.Context(), args, f) },
	}
	f.flags(cmd)
	cmd.Flags().Uint64Var(&f.at, "at", 0, "last `EVENT` that both share (default: the newest of AGENT)")
	setFlag(cmd, &f.set)
	cmd.Flags().BoolVar(&f.tools, "use-tools", false, "let the fork run its tools from the beginning")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runFork(ctx context.Context, args []string, f forkFlags) error {
	parent, err := address(args[0])
	if err != nil {
		return err
	}
	fork, err := messages.ParseAgentID(args[1])
	if err != nil {
		return err
	}
	set, err := forkChanges(f.set)
	if err != nil {
		return err
	}
	cl, ctx, closes, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closes()
	answer, err := cl.Do(ctx, parent, messages.Fork{ID: f.id, Fork: fork.Full(), At: messages.EventNumber(f.at), Set: set, Reason: f.reason})
	if err != nil {
		return err
	}
	at, settled, err := forkSettled(ctx, cl, parent, answer.N)
	switch {
	case err != nil:
		return fail(fmt.Sprintf("it begins as soon as %s has an owner; `%s forks %s` shows that", fork, a.started, parent), "the fork is recorded, event %d of %s, and has not begun yet: %v", answer.N, parent, err)
	case settled.Refused != "":
		return &messages.Error{Code: settled.Refused, Message: settled.Message}
	}
	if f.tools {
		if _, err := cl.Do(ctx, fork.String(), messages.UseTools{Reason: f.reason}); err != nil {
			return err
		}
	}
	if a.json() {
		return a.object(forkMade{fork, parent, at, settled.N, answer.Duplicate})
	}
	dry := "; its tools are dry"
	if f.tools {
		dry = ""
	}
	a.printf("%s: forked from %s at event %d%s\n", fork, parent, at, dry)
	return nil
}

// forkMade is what fork says in JSON.
type forkMade struct {
	Agent  messages.AgentID `json:"agent"`
	Parent string           `json:"parent"`
	// At is the newest event that both have, N the first of the fork's own.
	At        messages.EventNumber `json:"at"`
	N         messages.EventNumber `json:"n"`
	Duplicate bool                 `json:"duplicate,omitempty"`
}

// forkSettled waits for what becomes of the fork that event n of its parent requests.
func forkSettled(ctx context.Context, cl *client.Client, parent string, n messages.EventNumber) (at messages.EventNumber, settled messages.ForkSettled, err error) {
	begin := ""
	for ev, err := range cl.Events(ctx, parent, client.Only(messages.Query{From: n, Follow: true})) {
		switch {
		case err != nil:
			return at, settled, err
		case ev.N == n:
			requested := raw[messages.ForkRequested](ev.Data)
			begin, at = requested.Begin, requested.At
		case ev.Type == (messages.ForkSettled{}).EventType():
			if s := raw[messages.ForkSettled](ev.Data); s.Begin == begin {
				return at, s, nil
			}
		}
	}
	return at, settled, ctx.Err()
}
