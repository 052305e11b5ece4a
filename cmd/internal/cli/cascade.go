package cli

import (
	"context"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// forksOf returns the forks that begin with the events of an agent, those of forks before the fork
// that they were made of: the order in which they can be deleted.
func forksOf(ctx context.Context, cl *client.Client, agent string) (forks []string, err error) {
	for f, err := range cl.Forks(ctx, agent) {
		if err != nil {
			return nil, err
		}
		fork := f.Agent.String()
		live, err := isFork(ctx, cl, f, agent)
		if err != nil {
			return nil, err
		}
		if !live {
			continue
		}
		below, err := forksOf(ctx, cl, fork)
		if err != nil {
			return nil, err
		}
		forks = append(append(forks, below...), fork)
	}
	return forks, nil
}

// isFork reports whether an agent is still the fork of a parent that it was made as. One that has
// not begun is none.
func isFork(ctx context.Context, cl *client.Client, f projections.Fork, parent string) (bool, error) {
	s, err := cl.Show(ctx, f.Agent.String())
	if err != nil && messages.AsError(err).Code == messages.NotFound {
		return false, nil
	}
	return err == nil && s.Deleted == nil && s.Fork != nil && !s.Fork.Imported && s.Fork.Parent.String() == parent && s.Fork.At == f.At, err
}

// deleteForks deletes the forks of an agent, or shows what of them would go. With asks each is asked
// about.
func (a *app) deleteForks(ctx context.Context, cl *client.Client, agent string, f deletion, asks bool) error {
	forks, err := forksOf(ctx, cl, agent)
	if err != nil {
		return err
	}
	for _, fork := range forks {
		if f.dryRun || asks {
			if err := a.showHeld(ctx, cl, fork, f.dryRun); err != nil {
				return err
			}
		}
		if asks && !a.sure(fork) {
			return fail("nothing more was removed", "%s stays, and so does %s", fork, agent)
		}
		if f.dryRun {
			continue
		}
		if err := a.deleteNow(ctx, cl, fork, messages.Delete{Reason: f.reason}); err != nil {
			return err
		}
	}
	return nil
}

// showHeld prints what a delete of an agent would remove.
func (a *app) showHeld(ctx context.Context, cl *client.Client, agent string, dryRun bool) error {
	held, err := cl.Inventory(ctx, agent)
	if err != nil {
		return err
	}
	if dryRun && a.json() {
		return a.object(held)
	}
	a.printInventory(held)
	return nil
}
