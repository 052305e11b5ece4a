package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

func (a *app) store() *cobra.Command {
	cmd := &cobra.Command{
		Use: "store", GroupID: groupKeep, Args: cobra.NoArgs,
		Short: "Change how the store is kept",
		Long:  `Change how the store is kept.`,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.storeScale())
	return cmd
}

func (a *app) storeScale() *cobra.Command {
	var replicas int
	var dry bool
	cmd := &cobra.Command{
		Use: "scale --replicas N", Args: cobra.NoArgs,
		Short: "Change the number of copies of a store while its nodes run",
		Long: `Change the number of copies of a store while its nodes run.

Every stream and bucket gets that many copies on the servers of the cluster, one stream after
another; the command waits until all copies of each are current. Three copies survive the loss of
one server, five of two. You may interrupt the command and run it again: finished streams stay as
they are. With --dry-run it prints what it would change, and changes nothing.

If there was one copy, snapshots were kept in a form that the server cannot copy. They are dropped
and written again while agents work: they are a cache.

The command is for a cluster whose streams have one copy. Never give the folder of an embedded
server, or of a server that was alone, to a server of a cluster: NATS removes the streams that it
finds there. Move such a store with "reprise backup" and "reprise restore --nats URL --replicas
N".

The command needs an administrator's permission: $JS.API.>.`,
		Example: `  reprise store scale --replicas 3 --dry-run
  reprise store scale --replicas 3`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if replicas < 1 || replicas > maxReplicas {
				return usage("--replicas %d: NATS keeps 1 to %d copies; 3 survive the loss of one server", replicas, maxReplicas)
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.scaleStore(ctx, replicas, dry)
		},
	}
	cmd.Flags().IntVar(&replicas, "replicas", 0, "keep `N` copies of each stream and bucket")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print what would be changed")
	return waitsFor(a.connects(cmd, 0), "all of it")
}

// maxReplicas is how many copies the server keeps at most.
const maxReplicas = 5

// storedStream is a line of store scale in JSON.
type storedStream struct {
	Stream   string `json:"stream"`
	Replicas int    `json:"replicas"`
	// Want is how many copies it is to have.
	Want int `json:"want"`
	// Whole reports whether it has them, all current.
	Whole  bool     `json:"whole"`
	Bytes  uint64   `json:"bytes"`
	Leader string   `json:"leader,omitempty"`
	Behind []string `json:"behind,omitempty"`
}

func (a *app) scaleStore(ctx context.Context, replicas int, dry bool) error {
	o, file, err := a.server()
	if err != nil {
		return err
	}
	store, err := a.dial(o, file)
	if err != nil {
		return err
	}
	defer store.Conn.Close()
	ctx, cancel := a.limited(ctx)
	defer cancel()
	line := a.progress()
	all, err := natslog.Scale{
		Conn: store.Conn, Subjects: messages.Subjects{Root: o.Root}, Replicas: replicas, DryRun: dry,
		Progress: func(c natslog.Copies, done bool) {
			if line.end(); done || dry {
				a.streamLine(c, replicas)
				return
			}
			line.show("%s  %s: %s", c.Stream, size(c.Bytes), strings.Join(c.Behind, ", "))
		},
	}.Run(ctx)
	line.end()
	if err != nil {
		return err
	}
	return a.scaled(all, replicas, dry)
}

// streamLine prints one stream.
func (a *app) streamLine(c natslog.Copies, want int) {
	switch {
	case a.json():
		_ = a.object(storedStream{c.Stream, c.Replicas, want, c.Whole(want), c.Bytes, c.Leader, c.Behind})
	case c.Whole(want):
		a.printf("ok    %-24s  %d copies, %s\n", c.Stream, c.Replicas, size(c.Bytes))
	case c.Replicas == want:
		a.printf("wait  %-24s  %s\n", c.Stream, strings.Join(c.Behind, ", "))
	default:
		a.printf("to do %-24s  %d of %d copies, %s\n", c.Stream, c.Replicas, want, size(c.Bytes))
	}
}

// scaled prints how it ended.
func (a *app) scaled(all []natslog.Copies, want int, dry bool) error {
	left := 0
	for _, c := range all {
		if !c.Whole(want) {
			left++
		}
	}
	switch {
	case a.json():
		return nil
	case dry && left > 0:
		a.printf("%d of %d streams and buckets would be changed; run it without --dry-run\n", left, len(all))
	case left > 0:
		return fmt.Errorf("%d of %d streams are not whole", left, len(all))
	default:
		a.printf("all %d streams and buckets have %d copies\n", len(all), want)
	}
	return nil
}
