package cli

import (
	"context"
	"iter"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// forksOf returns the forks that begin with the events of an agent, those of forks before the fork
// that they were made of: the order in which they can be deleted.
func (a *app) forksOf(ctx context.Context, cl *client.Client, agent string) (forks []string, err error) {
	direct, err := a.liveForks(ctx, cl, agent)
	if err != nil {
		return nil, err
	}
	for _, f := range direct {
		fork := f.Agent.String()
		below, err := a.forksOf(ctx, cl, fork)
		if err != nil {
			return nil, err
		}
		forks = append(append(forks, below...), fork)
	}
	return forks, nil
}

// liveForks returns the forks of an agent itself that begin with its events.
func (a *app) liveForks(ctx context.Context, cl *client.Client, agent string) (forks []projections.Fork, err error) {
	all, err := collected(cl.Forks(ctx, agent))
	if err != nil && messages.AsError(err).Code == messages.Damaged {
		all, err = a.readableForks(ctx, cl, agent)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		live, err := isFork(ctx, cl, f, agent)
		if err != nil {
			return nil, err
		}
		if live {
			forks = append(forks, f)
		}
	}
	return forks, nil
}

// readableForks returns the forks that a damaged agent has on record before its damage.
func (a *app) readableForks(ctx context.Context, cl *client.Client, agent string) ([]projections.Fork, error) {
	held, err := cl.Inventory(ctx, agent)
	if err != nil {
		return nil, err
	}
	a.note("%s cannot be read to its end: forks that were made of it later stay", agent)
	if held.Last <= 1 {
		return nil, nil
	}
	return collected(cl.Forks(ctx, agent, client.At(held.Last-1)))
}

// collected returns what a sequence yields before its error.
func collected[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// isFork reports whether an agent is still the fork of a parent that it was made as, and begins with
// its events. One that has not begun does not, and one that was detached does not any more.
func isFork(ctx context.Context, cl *client.Client, f projections.Fork, parent string) (bool, error) {
	fork := f.Agent.String()
	for ev, err := range cl.Events(ctx, fork, client.Only(messages.Query{From: f.At + 1, Limit: 1})) { // which a damaged one has, too
		if err != nil {
			return false, ignored(err, messages.NotFound)
		}
		if ev.Type != (messages.AgentForked{}).EventType() {
			return false, nil
		}
		if of, err := messages.ParseAgentID(raw[messages.AgentForked](ev.Data).Parent); err != nil || of.String() != parent {
			return false, nil
		}
	}
	s, err := cl.Show(ctx, fork)
	switch {
	case err != nil && messages.AsError(err).Code == messages.Damaged:
		return true, nil
	case err != nil:
		return false, ignored(err, messages.NotFound)
	}
	return s.Deleted == nil && s.Fork != nil && !s.Fork.Owned(), nil
}

// ignored returns the error unless it has that code.
func ignored(err error, code messages.Code) error {
	if messages.AsError(err).Code == code {
		return nil
	}
	return err
}

// deleteForks deletes the forks of an agent, or shows what of them would go. With asks each is asked
// about.
func (a *app) deleteForks(ctx context.Context, cl *client.Client, agent string, f deletion, asks bool) error {
	forks, err := a.forksOf(ctx, cl, agent)
	if err != nil {
		return err
	}
	for _, fork := range forks {
		if f.dryRun || asks {
			if _, err := a.showHeld(ctx, cl, fork, f.dryRun); err != nil {
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

// detachForks has the forks of an agent copy the events that they have of it. Forks of those have them
// through these.
func (a *app) detachForks(ctx context.Context, cl *client.Client, agent string, f deletion) error {
	forks, err := a.liveForks(ctx, cl, agent)
	if err != nil {
		return err
	}
	for _, fork := range forks {
		if f.dryRun {
			a.note("%s would copy the events up to %d, which it has of %s", fork.Agent, fork.At, agent)
			continue
		}
		if err := a.commanded(ctx, cl, fork.Agent.String(), messages.Detach{Reason: f.reason}, plainly("detached"), messages.Approval{}); err != nil {
			return err
		}
	}
	return nil
}

// showHeld prints what a delete of an agent would remove.
func (a *app) showHeld(ctx context.Context, cl *client.Client, agent string, dryRun bool) (messages.Inventory, error) {
	held, err := cl.Inventory(ctx, agent)
	switch {
	case err != nil:
		return held, err
	case dryRun && a.json():
		return held, a.object(held)
	}
	a.printInventory(held)
	return held, nil
}
