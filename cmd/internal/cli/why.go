package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) why() *cobra.Command {
	return a.connects(&cobra.Command{
		Use: "why AGENT EVENT|CALL", GroupID: groupLook, Args: cobra.ExactArgs(2),
		Short: "Show why an event or a tool call happened",
		Long: `Show why an event happened, or a tool call that is named by its id, the newest cause first:
from a tool call to the model's answer that asked for it, to what that model call was sent,
to the inputs, with who sent them and through which endpoint. Decisions of people are listed
at the time they were made. The chain continues in the logs of parents. Equal calls, of the
agent in any turn or of other children of its parent, are listed last. Findings that follow
from the chain are printed below it.

` + "`reprise effects -o json`" + ` has the ids of calls, and ` + "`reprise effects`" + ` and ` + "`reprise events AGENT`" + `
list the numbers of events. The first column is
  event      the event in question
  then       what happened later to the same call
  before     what happened earlier to the same call, turn or timer
  decided    a decision about the call
  asked      the model's answer that asked for the call
  answered   the model call that gave that answer, or that failed
  saw        a result that this model call was the first to include
  started    the start of the turn
  input      an input of the turn
  parent     the parent's call that the agent works for
  repeats    an equal earlier call or input
  repeated   an equal later call
  equal      an equal call of the parent, or of another child of the parent
  missing    a log that cannot be read, with the reason
An input sent again with the same id had no effect and is not recorded.`,
		Example: `  reprise effects --tool refund --where order=7
  reprise why support/ticket-42 17
  reprise why support/ticket-42 call_c366b28396c1a6c80c2e`,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := a.eventOrCall(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			q := messages.Query{View: "why", At: n}
			_, err = printed(a, a.ofAgent(cmd.Context(), args[0], q), a.whyText)
			return err
		},
	}, defaultTimeout)
}

// eventOrCall returns the event that text is the number of, or that asked for the tool call that text is
// the id of. Two calls may have one id if the model did not see the first any more; that is refused.
func (a *app) eventOrCall(ctx context.Context, agent, text string) (messages.EventNumber, error) {
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		return a.eventNumber(agent, text)
	}
	var calls []string
	var last messages.EventNumber
	err := a.ofAgent(ctx, agent, messages.Query{View: "effects"})(func(line json.RawMessage) error {
		if e := raw[projections.Effect](line); string(e.ID) == text {
			calls, last = append(calls, fmt.Sprint(e.N)), e.N
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case len(calls) == 0:
		isTurn := a.ofAgent(ctx, agent, messages.Query{View: "turn", Turn: messages.TurnID(text)})(func(json.RawMessage) error { return nil }) == nil
		if isTurn {
			return 0, fail(fmt.Sprintf("`%s turn %s %s` shows it", a.started, agent, text),
				"%s is a turn of agent %s; write the number of an event, such as 17, or the id of a call", text, agent)
		}
		return 0, fail(fmt.Sprintf("`%s effects %s` lists its calls, `%s events %s` its events", a.started, agent, a.started, agent),
			"agent %s has no tool call %q; write the number of an event, such as 17, or the id of a call", agent, text)
	case len(calls) > 1:
		return 0, usage("agent %s has %d calls with the id %q, asked for by events %s: write the number of one", agent, len(calls), text, words(calls))
	}
	return last, nil
}

// whyText prints a chain of causes for a person.
func (a *app) whyText(w projections.Why) {
	rows := [][]string{{"WHY", "AGENT", "EVENT", "AT", "WHAT"}}
	for _, c := range w.Chain {
		n := ""
		if c.N != 0 {
			n = fmt.Sprint(c.N)
		}
		rows = append(rows, []string{string(c.Relation), c.Agent.String(), n, a.time(c.At), replay.Cause(c)})
	}
	a.columns(rows)
	a.printf("\n")
	a.fields(slices.Concat(a.found(w), a.furtherFrom(w)))
}

// found is what is evident from the chain.
func (a *app) found(w projections.Why) (rows [][2]string) {
	for _, f := range w.Findings {
		rows = append(rows, [2]string{"found", projections.Printable(f.Text, 0)})
	}
	if len(rows) == 0 {
		rows = append(rows, [2]string{"found", "no equal call and no repeated input"})
	}
	if w.Examined < w.Siblings {
		rows = append(rows, [2]string{"", fmt.Sprintf("of %d other children of its parent %d were searched for an equal call", w.Siblings, w.Examined)})
	}
	return rows
}

// furtherFrom is what to type next.
func (a *app) furtherFrom(w projections.Why) (rows [][2]string) {
	next := func(what, command string, c projections.Cause) {
		rows = append(rows, [2]string{"next", fmt.Sprintf("`%s %s %s %d` %s", a.started, command, c.Agent, c.N, what)})
	}
	asked := func(c projections.Cause) bool { return messages.Is(c.Type, messages.BeginsModelCall) }
	if i := slices.IndexFunc(w.Chain, asked); i >= 0 {
		next("shows what the model was sent", "request", w.Chain[i])
	}
	equal := func(c projections.Cause) bool {
		return c.Call != "" && slices.Contains([]projections.Relation{projections.CauseRepeats, projections.CauseRepeated, projections.CauseEqual}, c.Relation)
	}
	if i := slices.IndexFunc(w.Chain, equal); i >= 0 {
		next("shows why the other call was made", "why", w.Chain[i])
	}
	about := func(c projections.Cause) bool { return c.Relation == projections.CauseEvent && c.Turn != "" }
	if i := slices.IndexFunc(w.Chain, about); i >= 0 {
		rows = append(rows, [2]string{"next", fmt.Sprintf("`%s replay %s --turn %s` shows the whole turn", a.started, w.Agent, w.Chain[i].Turn)})
	}
	return rows
}
