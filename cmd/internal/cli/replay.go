package cli

import (
	"bufio"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) replay() *cobra.Command {
	q := messages.Query{View: "replay"}
	cmd := &cobra.Command{
		Use: "replay AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Walk through an agent's log and show what each event changed",
		Long: `Walk through an agent's log and show what each event changed in its history,
state, turns and queue. Nothing is run and nothing is written. What is too large for
the log itself is named by its size and hash, as a blob; --whole puts it back.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runReplay(cmd.Context(), args[0], q)
		},
	}
	cmd.Flags().Uint64Var((*uint64)(&q.From), "from", 0, "first event to show; those before it are replayed in silence")
	cmd.Flags().Uint64Var((*uint64)(&q.At), "at", 0, "last event to replay (default: the newest)")
	turnFlag(cmd, &q)
	cmd.Flags().BoolVar(&q.Whole, "whole", false, "put what is kept as blobs into the events that name them")
	return a.connects(cmd, 0)
}

func (a *app) runReplay(ctx context.Context, agent string, q messages.Query) error {
	if q.At != 0 && q.From > q.At {
		return usage("--from %d is after --at %d", q.From, q.At)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	out := bufio.NewWriterSize(a.out, 1<<16)
	changes := 0
	err := a.ofAgent(ctx, agent, q)(func(line json.RawMessage) error {
		changes++
		change := raw[projections.Change](line)
		if !a.json() {
			return change.WriteTextAt(out, a.moment(change.At, toMillisecond))
		}
		b, err := json.Marshal(change)
		if err == nil {
			_, err = out.Write(append(b, '\n'))
		}
		return err
	})
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if err == nil && changes == 0 {
		return a.noneOf(agent, q)
	}
	return err
}
