package cli

import (
	"context"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// drainTimeout is how long drain waits: tools that must not be cut off may take a while.
const drainTimeout = 2 * time.Minute

func (a *app) drain() *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use: "drain NODE", GroupID: groupRun, Args: cobra.ExactArgs(1),
		Short: "Move the partitions of a node to the other nodes before you stop it",
		Long: `Move the partitions of a node to the other nodes before you stop it.

NODE is the id of the node, the beginning of the id, or its name if only one node has that
name. The command waits until the node has no partition or has left the cluster. The other
nodes may still be taking over the last of its partitions then; inputs for them wait. The node
continues to pass requests to the others.

Agents continue on their new node. While a tool with on_unknown pause or reconcile runs, the
node waits for its result, in each partition for at most its --drain-limit. A call that takes
longer is cut off; the next owner asks a person or the tool for the outcome.

--off makes the node take partitions again. A node that receives SIGTERM drains automatically.`,
		Example: `  reprise drain node-1
  reprise drain node-1 --off`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runDrain(cmd.Context(), args[0], !off) },
	}
	cmd.Flags().BoolVar(&off, "off", false, "let the node take partitions again; the command returns at once")
	return waitsFor(a.connects(cmd, drainTimeout), "the node to have no partition")
}

func (a *app) runDrain(ctx context.Context, name string, on bool) error {
	c, within, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, err := c.FindNode(within, name)
	if err != nil {
		return err
	}
	n, err := c.Drain(within, found.ID, on)
	if err != nil {
		return err
	}
	gone := false
	if on {
		if n, gone, err = a.drained(within, c, n); err != nil {
			return err
		}
	}
	switch {
	case a.json():
		return a.object(n)
	case gone:
		a.printf("node %s on %s has left the cluster; the other nodes take over its partitions\n", n.ID, n.Host)
	case on:
		a.printf("node %s on %s has no partitions now and can be stopped\n", n.ID, n.Host)
	default:
		a.printf("node %s on %s takes partitions again\n", n.ID, n.Host)
	}
	return nil
}

// drained waits until a node has no partition, or is no member of the cluster.
func (a *app) drained(ctx context.Context, c *client.Client, n client.Node) (_ client.Node, gone bool, err error) {
	if n.Partitions == 0 {
		return n, false, nil
	}
	p := a.progress()
	defer p.end()
	err = poll(ctx, redraw, func() (done bool, err error) {
		next, err := c.Node(ctx, n.ID)
		if err != nil && messages.AsError(err).Code == messages.NotFound { // it has stopped, or is not connected at the moment
			next = n
			_, err = c.FindNode(ctx, n.ID)
		}
		switch {
		case err != nil && messages.AsError(err).Code == messages.NotFound: // nor do the others count it as a member
			n.Partitions, gone = 0, true
		case err != nil && messages.AsError(err).Code == messages.Unavailable: // no node answers at the moment
		case err != nil && ctx.Err() == nil:
			return false, err
		case err == nil && !next.Draining:
			return false, fail("", "the drain of node %s was ended by --off", n.ID)
		case err == nil:
			n = next
		}
		p.show("%s to go …", english.Plural(n.Partitions, "partition", ""))
		return n.Partitions == 0, nil
	})
	if ctx.Err() != nil && n.Partitions > 0 {
		err = fail("the drain continues; run the command again to wait for longer, or with --off to stop it",
			"node %s still has %s", n.ID, english.Plural(n.Partitions, "partition", ""))
	}
	return n, gone, err
}
