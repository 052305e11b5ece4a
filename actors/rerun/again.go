package rerun

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Changed is a recorded call whose tool has another result now.
type Changed struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Recorded  string `json:"recorded"`
	Now       string `json:"now"`
	// Failed and NowFailed report that the result is a failure.
	Failed    bool `json:"failed,omitempty"`
	NowFailed bool `json:"now_failed,omitempty"`
}

// again makes the recorded calls again, in their order and one by one, as far as their tools may run.
func (r *Result) again(ctx context.Context, d actors.Definition, rec *record) {
	tools := make(map[string]tool.Tool)
	for _, t := range d.Tools {
		tools[t.Spec().Name] = t
	}
	r.Result, r.Skipped = Same, make(map[string]int)
	for i := range rec.calls.List {
		if ctx.Err() != nil {
			return
		}
		c := &rec.calls.List[i]
		t := tools[c.Tool]
		if !c.HasResult() || t == nil || !rec.tools.may(t) {
			r.Skipped[c.Tool]++
			continue
		}
		rec.run(c.Tool)
		if changed := r.callAgain(ctx, t, rec, c); changed != nil {
			r.Tools, r.Result = append(r.Tools, *changed), Differs
			r.Calls.Changed++
		} else {
			r.Calls.Equal++
		}
	}
	r.Ran = rec.ran
}

// callAgain makes a call again; nil if its result is the recorded one.
func (r *Result) callAgain(ctx context.Context, t tool.Tool, rec *record, c *projections.RecordedCall) (changed *Changed) {
	limit := cmp.Or(t.Spec().Timeout, tool.DefaultTimeout)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output, err := protected(func() (string, error) {
		return t.Call(rec.unused(ctx, tool.Call{Agent: r.Agent, Turn: c.Turn, ID: c.ID, Attempt: 1}), json.RawMessage(c.Arguments))
	})
	if err != nil {
		output = err.Error()
	}
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		output = fmt.Sprintf("the tool did not finish within %v", limit) // as a node records it
	}
	failed := c.Outcome == projections.CallFailed
	if output == c.Output && failed == (err != nil) {
		return nil
	}
	return &Changed{c.Tool, c.Arguments, c.Output, output, failed, err != nil}
}

// protected calls a function of a user, and returns a panic as an error.
func protected[R any](call func() (R, error)) (r R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return call()
}
