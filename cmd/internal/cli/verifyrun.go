package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

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
	total  int // 0: it is not known
	counts map[verify.Outcome]int
}

func (r *verifyRun) begin(agents int) { r.total = agents }

// stored verifies an agent of a node.
func (r *verifyRun) stored(ctx context.Context, c *client.Client, agent messages.AgentID) (v verify.Result, err error) {
	if r.with != nil {
		return r.rehearsed(ctx, c, agent)
	}
	for line, err := range c.Query(ctx, agent.String(), messages.Query{View: "verify"}) {
		if err == nil {
			err = json.Unmarshal(line, &v)
		}
		if err != nil {
			return unreadable(agent, err)
		}
	}
	return v, nil
}

// unreadable returns the result for an agent that does not exist, so that others are verified, and any other
// error.
func unreadable(agent messages.AgentID, err error) (v verify.Result, _ error) {
	if why := new(messages.Error); errors.As(err, &why) && why.Code == messages.NotFound {
		return verify.Result{Agent: agent, Result: verify.Unreadable, Why: why.Message}, nil
	}
	return v, err
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
	r.line.show("verify: %s, %d equal", doneOf(summed(r.counts), r.total), r.counts[verify.Equal])
	return nil
}

// summed returns the sum of counts.
func summed[K comparable](counts map[K]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// doneOf describes how many agents are done; a total of 0 is not known.
func doneOf(done, total int) string {
	if total == 0 {
		return english.Plural(done, "agent", "") + " done"
	}
	return fmt.Sprintf("%d of %s done", done, english.Plural(total, "agent", ""))
}
