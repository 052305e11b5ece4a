package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// work is what is done with each of many agents. stored and exported are called for several agents
// at the same time.
type work[R any] interface {
	// begin is called first for agents of a node, with how many there are.
	begin(agents int)
	// stored does it with an agent of a node.
	stored(context.Context, *client.Client, messages.AgentID) (R, error)
	// exported does it with an agent of a file.
	exported(context.Context, *export.Agent) (R, error)
	// show shows a result.
	show(R) error
}

// eachChosen does w with the agents of a node that are chosen, or of a file that export has written
// if one is named, atOnce of them at the same time. The results are shown in the order of the agents. An error
// of the list is returned after those that are on it are done.
func eachChosen[R any](ctx context.Context, a *app, of *chosen, file string, atOnce int, w work[R]) error {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return inOrder(ctx, atOnce, agentsIn(f), w.exported, w.show)
	}
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	agents, unlisted := of.list(ctx, c)
	w.begin(len(agents))
	err = inOrder(ctx, atOnce, faultless(agents), func(ctx context.Context, agent messages.AgentID) (R, error) {
		return w.stored(ctx, c, agent)
	}, w.show)
	return cmp.Or(err, unlisted)
}

// agentsIn yields the agents of a file that export has written. Its errors name the file.
func agentsIn(f *os.File) iter.Seq2[*export.Agent, error] {
	return func(yield func(*export.Agent, error) bool) {
		for agent, err := range export.Agents(f) {
			if err != nil {
				err = fmt.Errorf("%s: %w", f.Name(), err)
			}
			if !yield(agent, err) {
				return
			}
		}
	}
}

// faultless yields a list without an error.
func faultless[A any](list []A) iter.Seq2[A, error] {
	return func(yield func(A, error) bool) {
		for _, a := range list {
			if !yield(a, nil) {
				return
			}
		}
	}
}

// inOrder does something with agents, atOnce of them at the same time, and shows the results in order.
func inOrder[A, R any](ctx context.Context, atOnce int, agents iter.Seq2[A, error], one func(context.Context, A) (R, error), show func(R) error) error {
	type result struct {
		of  R
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan chan result, atOnce-1) // beside the one that is shown next
	go func() {
		defer close(results)
		for agent, err := range agents {
			next := make(chan result, 1)
			select {
			case results <- next:
			case <-ctx.Done():
				return
			}
			if err != nil {
				next <- result{err: err}
				return
			}
			go func() {
				of, err := one(ctx, agent)
				next <- result{of, err}
			}()
		}
	}()
	for next := range results {
		r := <-next
		if r.err != nil {
			return r.err
		}
		if err := show(r.of); err != nil {
			return err
		}
	}
	return ctx.Err()
}
