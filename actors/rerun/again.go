package rerun

import (
	"context"

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
func (r *Result) again(ctx context.Context, cfg actors.Config, d actors.Definition, rec *record) {
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
		if changed := r.callAgain(ctx, cfg, t, rec, c); changed != nil {
			r.Tools, r.Result = append(r.Tools, *changed), Differs
			r.Calls.Changed++
		} else {
			r.Calls.Equal++
		}
	}
	r.Ran = rec.ran
}

// callAgain makes a call again; nil if its result is the recorded one.
func (r *Result) callAgain(ctx context.Context, cfg actors.Config, t tool.Tool, rec *record, c *projections.RecordedCall) (changed *Changed) {
	call := rec.unused(tool.Call{Agent: r.Agent, Turn: c.Turn, ID: c.ID, Attempt: 1})
	now := actors.CallTool(ctx, cfg, t, call, c.Arguments)
	failed, fails := c.Outcome == projections.CallFailed, now.Failed != ""
	if now.Output == c.Output && failed == fails {
		return nil
	}
	return &Changed{c.Tool, c.Arguments, c.Output, now.Output, failed, fails}
}
