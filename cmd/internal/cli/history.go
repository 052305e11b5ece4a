package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// asOf adds to cmd the flag --at.
func asOf(cmd *cobra.Command, q *messages.Query) {
	cmd.Flags().Uint64Var((*uint64)(&q.At), "at", 0, "show it as of this `EVENT` (default: the newest)")
}

func (a *app) history() *cobra.Command {
	q := messages.Query{View: "history"}
	cmd := &cobra.Command{
		Use: "history AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show the history that the model sees",
		Long: `Show the history of an agent as its model sees it: messages, tool calls and results. With --at
it shows the history as of an earlier event.`,
		Example: `  reprise history assistant/main
  reprise history assistant/main --turn t4`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runHistory(cmd.Context(), args[0], q) },
	}
	asOf(cmd, &q)
	turnFlag(cmd, &q)
	tailFlag(cmd, &q, "items")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runHistory(ctx context.Context, agent string, q messages.Query) error {
	items, err := printed(a, a.ofAgent(ctx, agent, q), a.item)
	if err == nil && items == 0 {
		return a.noneOf(agent, q)
	}
	return err
}

// item prints an item of history for a person.
func (a *app) item(item projections.HistoryItem) {
	a.itemAs(strconv.FormatUint(uint64(item.N), 10), item)
}

// itemAs prints an item with what it comes from, such as the number of an event.
func (a *app) itemAs(from string, item projections.HistoryItem) {
	const margin = "        "
	title, text := replay.Item(item)
	a.printf("%6s  %s\n%s%s\n", from, a.bold(a.out, projections.Printable(title, 200)), margin, indented(safe(text), margin))
}

func (a *app) state() *cobra.Command {
	q := messages.Query{View: "state"}
	cmd := &cobra.Command{
		Use: "state AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short:   "Show the state of an agent",
		Long:    `Show the state of an agent: a JSON object that "reprise set-state" changes.`,
		Example: `  reprise state assistant/main`,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runState(cmd.Context(), args[0], q) },
	}
	asOf(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runState(ctx context.Context, agent string, q messages.Query) error {
	_, err := printed(a, a.ofAgent(ctx, agent, q), func(state json.RawMessage) {
		var text bytes.Buffer
		_ = json.Indent(&text, state, "", "  ") // it came as JSON
		a.printf("%s\n", safe(text.String()))
	})
	return err
}
