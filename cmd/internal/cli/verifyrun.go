package cli

import (
	"context"
	"encoding/json"
	"iter"
	"os"

	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// verifyAtOnce is how many agents are verified at the same time.
const verifyAtOnce = 4

// verifyRun is a run of verify.
type verifyRun struct {
	*app
	// with is what decides. Nil: the node does.
	with   *candidate
	line   *progress
	counts map[verify.Outcome]int
}

// named yields the agents of arguments that were checked.
func named(args []string) iter.Seq2[messages.AgentID, error] {
	return func(yield func(messages.AgentID, error) bool) {
		for _, arg := range args {
			if id, err := messages.ParseAgentID(arg); !yield(id, err) {
				return
			}
		}
	}
}

// agentsOf yields the agents of a tenant; an empty kind is all.
func agentsOf(ctx context.Context, c *client.Client, tenant, kind string) iter.Seq2[messages.AgentID, error] {
	return func(yield func(messages.AgentID, error) bool) {
		for row, err := range c.Agents(ctx, tenant, client.Only(messages.Query{Kind: kind})) {
			if !yield(row.Agent, err) || err != nil {
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

// inFile is inOrder for the agents of a file.
func inFile[R any](ctx context.Context, atOnce int, name string, one func(context.Context, *export.Agent) (R, error), show func(R) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return inOrder(ctx, atOnce, export.Agents(f), one, show)
}

// one verifies an agent of a node.
func (r *verifyRun) one(ctx context.Context, c *client.Client, agent messages.AgentID) (v verify.Result, err error) {
	if r.with != nil {
		return r.rehearsed(ctx, c, agent)
	}
	for line, err := range c.Query(ctx, agent.String(), messages.Query{View: "verify"}) {
		if err == nil {
			err = json.Unmarshal(line, &v)
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// rehearsed verifies an agent of a node with the candidate.
func (r *verifyRun) rehearsed(ctx context.Context, c *client.Client, agent messages.AgentID) (verify.Result, error) {
	known := make(map[string]json.RawMessage)
	frames := func(yield func(*messages.Frame, error) bool) {
		for line, err := range linesOf(ctx, c, agent, 0) {
			if line.Definition != nil {
				known[string(line.Definition.Hash)] = line.Definition.Data
			} else if !yield(line.Frame, err) || err != nil {
				return
			}
		}
	}
	result := r.with.verify(ctx, agent, known, false, frames)
	if result.Result == verify.Unreadable && ctx.Err() != nil {
		return result, ctx.Err()
	}
	return result, nil
}

// exported verifies an agent of a file.
func (r *verifyRun) exported(ctx context.Context, agent *export.Agent) (v verify.Result, err error) {
	id, err := messages.ParseAgentID(agent.Head.Agent)
	if err != nil {
		return v, err
	}
	known := make(map[string]json.RawMessage)
	for hash, data := range agent.Definitions {
		known[string(hash)] = data
	}
	return r.with.verify(ctx, id, known, len(agent.Head.Redacted) > 0, verify.Frames(agent.Frames)), nil
}

// show prints a result and counts it.
func (r *verifyRun) show(v verify.Result) error {
	r.counts[v.Result]++
	if r.json() {
		return r.object(v)
	}
	r.line.end()
	r.printf("%s", v.Text())
	r.line.show("verify: %d agents done, %d equal", summed(r.counts), r.counts[verify.Equal])
	return nil
}

// summed returns the sum of counts.
func summed[K comparable](counts map[K]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}
