package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

// changeFlags are those of every command that changes an agent.
type changeFlags struct{ id, reason string }

func (f *changeFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.id, "id", "", "idempotency key: the same id has its effect once (default: a new one)")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for those who read the log")
}

// change sends a command to an agent and says what became of it; done is what
// the command does, in the past tense.
func (a *app) change(ctx context.Context, agent string, c messages.Command, done string) error {
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
	return a.answered(agent, answer, done)
}

func (a *app) answered(agent string, answer messages.Answer, done string) error {
	if a.json() {
		return a.object(struct {
			Agent string `json:"agent"`
			messages.Answer
		}{agent, answer})
	}
	what := done
	switch {
	case answer.Noop != "":
		what = "nothing changed: " + answer.Noop
	case answer.Turn != "":
		what = fmt.Sprintf("%s turn %s", done, answer.Turn)
	}
	if answer.Duplicate {
		what += " (this id was applied before)"
	}
	a.printf("%s: %s, event %d\n", agent, safe(what), answer.N)
	return nil
}
