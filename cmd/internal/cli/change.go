package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// changeFlags are those of every command that changes an agent.
type changeFlags struct{ id, reason string }

func (f *changeFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.id, "id", "", "idempotency key: the same id has its effect once (default: a new one)")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for those who read the log")
}

// done is what a command did, in the past tense, given the turn that it
// started, ended or let go on; empty: none.
type done func(messages.TurnID) string

// ofTurn is what a command did to a turn.
func ofTurn(what string) done {
	return func(turn messages.TurnID) string {
		if turn == "" {
			return what
		}
		return fmt.Sprintf("%s turn %s", what, turn)
	}
}

// plainly is what a command did, whatever the turn.
func plainly(format string, args ...any) done {
	return func(messages.TurnID) string { return fmt.Sprintf(format, args...) }
}

// change sends a command to an agent and says what became of it.
func (a *app) change(ctx context.Context, agent string, c messages.Command, did done) error {
	agent, err := address(agent)
	if err != nil {
		return err
	}
	cl, ctx, closes, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closes()
	answer, err := cl.Do(ctx, agent, c)
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(changed{agent, answer})
	}
	a.became(agent, answer, did)
	return nil
}

// changed is what a command that changes an agent says in JSON.
type changed struct {
	Agent string `json:"agent"`
	messages.Answer
}

// became prints what became of a command.
func (a *app) became(agent string, answer messages.Answer, did done) {
	what := did(answer.Turn)
	if answer.Noop != "" {
		what = "nothing changed: " + answer.Noop
	}
	if answer.Duplicate {
		what += " (this id was applied before)"
	}
	a.printf("%s: %s, event %d\n", agent, projections.Printable(what, 0), answer.N)
}
