package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// deletion is what the flags of delete say.
type deletion struct {
	changeFlags
	dryRun, yes, children, cascade, detach bool
}

func (a *app) delete() *cobra.Command {
	var f deletion
	cmd := &cobra.Command{
		Use: "delete AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Delete an agent and everything that is stored about it",
		Long: `Delete an agent and everything that is stored about it. Its turn is aborted, waiting inputs are
dropped, and its events, blobs, snapshots, dead letters and key are removed. A tombstone stays:
it has the time and the reason of the deletion, and its event number. The usage of the agent is
removed from "reprise usage". An input that is sent later creates a new agent at the address. An
agent whose log is damaged can be deleted, too; its children and its parent are not notified
then.

Children are stopped and stay: they are agents of their own. With --children they are deleted as
well, and their children, the lowest first. If the command is interrupted, run it again. It does
not find the children of a child that was deleted before, nor those that are recorded behind a
place where the log cannot be read.

An agent whose events are shared by forks is not deleted while the forks need them. With --detach
each fork copies the events first and stays: it is encrypted with its own key, and no longer has
results of the agent for calls while its tools are dry. With --cascade the forks are deleted
first, and their forks. If the command is interrupted, run it again.

On a terminal you are asked first. Elsewhere --yes is required. --dry-run shows what would be
removed.`,
		Example: `  reprise delete support/t1 --dry-run
  reprise delete support/t1 --yes --reason "the customer asked for it"
  reprise delete support/t1 --children --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runDelete(cmd.Context(), args[0], f) },
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.cascade, "cascade", false, "delete its forks, and their forks, too")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "let its forks copy its events first")
	cmd.Flags().BoolVar(&f.children, "children", false, "delete its children, and their children, too")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runDelete(ctx context.Context, agent string, f deletion) error {
	agent, err := address(agent)
	if err != nil {
		return err
	}
	if f.cascade && f.detach {
		return usage("--cascade deletes the forks of %s, --detach keeps them: give one of the two", agent)
	}
	asks := !f.yes && !f.dryRun
	if asks && !isTerminal(a.in) {
		return usage("delete removes %s permanently: see with --dry-run what it removes, then add --yes", agent)
	}
	cl, ctx, closes, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closes()
	if f.children {
		return a.deleteTree(ctx, cl, agent, f, asks)
	}
	if err := a.freeOfForks(ctx, cl, agent, f, asks); err != nil {
		return err
	}
	if f.dryRun || asks {
		if held, err := a.showHeld(ctx, cl, agent, f.dryRun); err != nil || f.dryRun || held.Deleted {
			return err
		}
		if !a.sure(agent) {
			return fail("nothing more was removed", "%s stays", agent)
		}
		if f.detach {
			if err := a.detachForks(ctx, cl, agent, f); err != nil {
				return err
			}
		}
	}
	return a.deleteNow(ctx, cl, agent, messages.Delete{ID: f.id, Reason: f.reason})
}

// freeOfForks deletes or detaches the forks of an agent, as the flags say. With asks it asks about each
// that it deletes, and only names those that would be detached: that waits for the answer about the agent.
func (a *app) freeOfForks(ctx context.Context, cl *client.Client, agent string, f deletion, asks bool) error {
	switch {
	case f.cascade:
		return a.deleteForks(ctx, cl, agent, f, asks)
	case f.detach:
		f.dryRun = f.dryRun || asks
		return a.detachForks(ctx, cl, agent, f)
	}
	return nil
}

// deleteTree deletes the agent with those that its calls brought to life.
func (a *app) deleteTree(ctx context.Context, cl *client.Client, agent string, f deletion, asks bool) error {
	tree := &felling{app: a, client: cl, command: messages.Delete{ID: f.id, Reason: f.reason}}
	if err := tree.forks(ctx, agent, f, asks); err != nil {
		return err
	}
	if f.dryRun || asks {
		if err := tree.show(ctx, agent); err != nil || f.dryRun {
			return err
		}
		if !a.sure(agent + " and all of these") {
			return fail("nothing more was removed", "%s stays", agent)
		}
		if f.detach {
			if err := tree.forks(ctx, agent, f, false); err != nil {
				return err
			}
		}
	}
	return tree.fell(ctx, agent, 0)
}

// printInventory prints what a delete would remove.
func (a *app) printInventory(held messages.Inventory) {
	if held.Deleted {
		a.printf("%s is deleted: only a tombstone of %d events remains\n", held.Agent, held.Events)
		return
	}
	a.printf("%s would lose permanently\n", held.Agent)
	line := func(format string, args ...any) { a.printf("  "+format+"\n", args...) }
	line("%s in %s, %s", english.Plural(held.Events, "event", ""), english.Plural(held.Frames, "frame", ""), size(held.Bytes))
	line("%s, %s", english.Plural(held.Blobs, "blob", ""), size(held.BlobBytes))
	line("%s", english.Plural(held.Snapshots, "snapshot", ""))
	line("%s", english.Plural(held.DeadLetters, "dead letter", ""))
	if held.Encrypted {
		line("the key that its events are encrypted with: copies and backups of them become unreadable")
	}
	if held.Children > 0 {
		line("and would leave %s", childrenText(held))
	}
	if held.Damaged != "" {
		line("its log is damaged, and counted up to there: %s", projections.Printable(held.Damaged, 0))
		line("what it did cannot be ended in order: its children and its parent are not notified")
	}
	if held.Waiting > 0 {
		line("and %d inputs and commands that are not applied yet", held.Waiting)
	}
}

// childrenText returns which agents stay behind.
func childrenText(held messages.Inventory) string {
	names := each(held.ChildAgents, messages.AgentID.String)
	if more := held.Children - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("the agents that its calls created (%d): %s", held.Children, strings.Join(names, ", "))
}

// sure asks the person at the terminal.
func (a *app) sure(agent string) bool {
	a.printf("Delete %s? Write y or yes: ", agent)
	line, _ := bufio.NewReader(a.in).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.TrimSpace(strings.ToLower(line)))
}

// deleteNow deletes the agent. It is answered when nothing is left of it.
func (a *app) deleteNow(ctx context.Context, cl *client.Client, agent string, c messages.Delete) error {
	return a.commanded(ctx, cl, agent, c, andAborted("deleted"), messages.Approval{})
}

// endText returns when and why an agent was deleted.
func (a *app) endText(end *projections.Deletion) string {
	return fmt.Sprintf("at %s, event %d", a.time(end.At), end.N) + because(end.Reason)
}
