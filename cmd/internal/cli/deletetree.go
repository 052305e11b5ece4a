package cli

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// felling deletes an agent with all agents that its calls brought to life, the
// lowest first: which agents an agent has called is known as long as it is there itself. So
// one that is cut short can be begun again, and continues.
type felling struct {
	app     *app
	client  *client.Client
	command messages.Delete
}

// fellTries is how often an agent is looked at that continues meanwhile. Each time
// its turn has been aborted and what waited has been dropped.
const fellTries = 20

// branch is an agent as it was found.
type branch struct {
	held     messages.Inventory
	children []projections.Child
	// gone reports whether there never was one, or is none any more.
	gone bool
}

// look finds an agent and its children: all that it had as of event held.Last.
func (f *felling) look(ctx context.Context, agent string) (b branch, err error) {
	b.held, err = f.client.Inventory(ctx, agent)
	if err != nil {
		b.gone = messages.AsError(err).Code == messages.NotFound
		return b, err
	}
	if b.held.Deleted {
		b.gone = true
		return b, nil
	}
	if b.held.Damaged != "" { // what is known of it before the damage
		f.app.note("%s cannot be read to its end: agents that it called and that are not named here stay", agent)
		for _, a := range b.held.ChildAgents {
			b.children = append(b.children, projections.Child{Agent: a})
		}
		return b, nil
	}
	for child, err := range f.client.Children(ctx, agent) {
		if err != nil {
			return b, err
		}
		b.children = append(b.children, child)
	}
	return b, nil
}

// each calls give with an agent and those below it, each once and the lowest first, as they are
// found now.
func (f *felling) each(ctx context.Context, agent string, seen map[string]bool, give func(messages.Inventory) error) error {
	seen[agent] = true
	b, err := f.look(ctx, agent)
	if err != nil {
		if b.gone && len(seen) > 1 { // a child that has not begun
			err = nil
		}
		return err
	}
	for _, child := range b.children {
		if below := child.Agent.String(); !seen[below] {
			if err := f.each(ctx, below, seen, give); err != nil {
				return err
			}
		}
	}
	return give(b.held)
}

// forks deletes the forks of each agent with --cascade, or detaches them with --detach. Without these,
// an agent with forks is refused before anything is deleted.
func (f *felling) forks(ctx context.Context, agent string, d deletion, asks bool) error {
	return f.each(ctx, agent, make(map[string]bool), func(held messages.Inventory) error {
		name := held.Agent.String()
		switch {
		case held.Deleted:
			return nil
		case d.cascade, d.detach:
			return f.app.freeOfForks(ctx, f.client, name, d, asks)
		case d.dryRun:
			return nil
		}
		forks, err := f.app.forksOf(ctx, f.client, name)
		if err == nil && len(forks) > 0 {
			err = fail("delete them with it (--cascade), or have them copy these (--detach)", "%s has forks that begin with its events, such as %s; nothing was removed", name, forks[0])
		}
		return err
	})
}

// show prints what of the whole tree would go.
func (f *felling) show(ctx context.Context, agent string) error {
	agents, sum := 0, messages.Inventory{}
	err := f.each(ctx, agent, make(map[string]bool), func(held messages.Inventory) error {
		agents, sum.Events, sum.Blobs = agents+1, sum.Events+held.Events, sum.Blobs+held.Blobs
		sum.Bytes, sum.BlobBytes = sum.Bytes+held.Bytes, sum.BlobBytes+held.BlobBytes
		if f.app.json() {
			return f.app.object(held)
		}
		held.Children = 0 // they are in the list
		f.app.printInventory(held)
		return nil
	})
	if err == nil && !f.app.json() {
		f.app.printf("%s with %s and %s, %s\n", english.Plural(agents, "agent", ""), english.Plural(sum.Events, "event", ""), english.Plural(sum.Blobs, "blob", ""), size(sum.Bytes+sum.BlobBytes))
	}
	return err
}

// fell deletes an agent and those below it.
func (f *felling) fell(ctx context.Context, agent string, depth int) error {
	for range fellTries {
		b, err := f.look(ctx, agent)
		switch {
		case b.gone && depth > 0:
			return nil
		case b.gone && err == nil: // the answer says so
			return f.app.deleteNow(ctx, f.client, agent, f.command)
		case err != nil:
			return err
		}
		if still, err := f.still(ctx, agent, b); err != nil || !still {
			if err != nil {
				return err
			}
			continue
		}
		for _, child := range b.children {
			if err := f.fell(ctx, child.Agent.String(), depth+1); err != nil {
				return err
			}
		}
		c := f.command
		if b.held.Damaged == "" {
			c.Last = b.held.Last // else it has children that were not seen
		}
		if err = f.app.deleteNow(ctx, f.client, agent, c); err == nil || messages.AsError(err).Code != messages.Conflict {
			return err
		}
	}
	return fail("send it nothing more, then delete it again: that continues where this ended", "%s has new work each time it is deleted, and was not deleted; those below it were", agent)
}

// still ends what an agent does, and reports whether it does nothing and waits for no
// child to stop. One that cannot run is still.
func (f *felling) still(ctx context.Context, agent string, b branch) (bool, error) {
	if b.held.Damaged != "" {
		return true, nil
	}
	s, err := f.client.Show(ctx, agent)
	if err != nil {
		return false, err
	}
	if s.Phase != messages.PhaseIdle {
		_, err := f.client.Do(ctx, agent, messages.Clear{Reason: f.command.Reason})
		if err != nil && messages.AsError(err).Code == messages.UnknownKind {
			return true, nil
		}
		return false, err
	}
	for _, child := range b.children {
		if child.Status != projections.ChildStopping {
			continue
		}
		for _, err := range f.client.Events(ctx, agent, client.Only(messages.Query{From: b.held.Last + 1, Follow: true})) {
			if err != nil {
				return false, fmt.Errorf("%s waits for %s to stop: %w", agent, child.Agent, err)
			}
			break
		}
		return false, ctx.Err()
	}
	return true, nil
}
