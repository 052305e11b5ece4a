package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// changeFlags are those of every command that changes an agent.
type changeFlags struct{ id, reason string }

func (f *changeFlags) flags(cmd *cobra.Command) {
	idFlag(cmd, &f.id)
	cmd.Flags().StringVar(&f.reason, "reason", "", "`TEXT` of the reason, for the log")
}

// idFlag adds to cmd the flag --id.
func idFlag(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "id", "", "idempotency key: the same `ID` has no second effect among the agent's last 4,096 commands and those of the last 15 minutes, at most 16,384 (default: a new one)")
}

// changes completes cmd, a command that changes the agent that its first argument names: command
// makes what is sent, and did is what that did.
func (a *app) changes(cmd *cobra.Command, command func(f changeFlags, args []string) (c messages.Command, did done, err error)) *cobra.Command {
	var f changeFlags
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, did, err := command(f, args)
		if err != nil {
			return err
		}
		agent, err := address(args[0])
		if err != nil {
			return err
		}
		cl, ctx, closes, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		defer closes()
		return a.commanded(ctx, cl, agent, c, did, messages.Approval{})
	}
	return a.connects(cmd, defaultTimeout)
}

// done is what a command did, in the past tense, given the turn that it
// started, ended or let continue; empty: none.
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

// andAborted is what a command did besides aborting the turn.
func andAborted(what string) done {
	return func(turn messages.TurnID) string {
		if turn == "" {
			return what
		}
		return fmt.Sprintf("%s; turn %s was aborted", what, turn)
	}
}

// plainly is what a command did, whatever the turn.
func plainly(format string, args ...any) done {
	return func(messages.TurnID) string { return fmt.Sprintf(format, args...) }
}

// commanded sends a command and prints what became of it. about is the call that a decision is
// about; without an id: the command is none.
func (a *app) commanded(ctx context.Context, cl *client.Client, agent string, c messages.Command, did done, about messages.Approval) error {
	answer, err := cl.Do(ctx, agent, c)
	if err != nil {
		return err
	}
	settled, did, err := a.below(ctx, cl, agent, answer, did)
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(changed{agent, answer, settled, about.Call, about.Tool, about.Arguments})
	}
	a.became(agent, answer, did)
	return nil
}

// changed is what a command that changes an agent says in JSON.
type changed struct {
	Agent string `json:"agent"`
	messages.Answer
	// Settled is what became of a decision that was passed down. Nil: none was, or
	// it is not known yet.
	Settled *messages.ChildSettled `json:"settled,omitempty"`
	// Call, Tool and Arguments are of the call that was decided about, as it waited.
	Call      messages.CallID `json:"call,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
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

// below waits for what becomes of a decision that was passed down, and adds to did
// where, or that it is not known yet. A decision that has no effect is an error.
func (a *app) below(ctx context.Context, cl *client.Client, agent string, answer messages.Answer, did done) (*messages.ChildSettled, done, error) {
	if answer.ForwardedTo == "" {
		return nil, did, nil
	}
	whose := short(answer.ForwardedTo)
	s := settledBelow(ctx, cl, agent, answer)
	switch {
	case s == nil:
		return nil, plainly("passed on to %s (%s); the outcome there is not known yet: see child.settled in `%s events %s --from %d`",
			whose, did(""), a.started, agent, answer.N), nil
	case s.Refused != "":
		return nil, nil, fail(fmt.Sprintf("`%s events %s` shows what was decided there", a.started, whose),
			"the decision was passed on to %s and had no effect there: %s", whose, s.Message)
	case s.Message != "":
		return s, plainly("nothing changed at %s: %s", whose, s.Message), nil
	}
	return s, plainly("%s of %s", did(""), whose), nil
}

// settledBelow is what became of the decision that an answer is about; nil if that is
// not known in time.
func settledBelow(ctx context.Context, cl *client.Client, agent string, answer messages.Answer) *messages.ChildSettled {
	ctx, cancel := context.WithTimeout(ctx, heeding)
	defer cancel()
	decision := ""
	for ev, err := range cl.Events(ctx, agent, client.Only(messages.Query{From: answer.N, Follow: true})) {
		switch {
		case err != nil:
			return nil // the decision holds
		case ev.N == answer.N:
			decision = raw[messages.ChildDecided](ev.Data).ID
		case ev.Type == (messages.ChildSettled{}).EventType():
			if s := raw[messages.ChildSettled](ev.Data); s.ID == decision {
				return &s
			}
		}
	}
	return nil
}
