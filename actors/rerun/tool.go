package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/tool"
)

// errNoResult is what the model reads of a call without a recorded result.
var errNoResult = errors.New("this call was not run: no result of it is on record")

// replayed is a tool whose calls have recorded results, unless it may run.
type replayed struct {
	tool.Tool
	record *record
}

// NeedsApproval asks the tool.
func (t replayed) NeedsApproval(arguments json.RawMessage) (bool, error) {
	if gated, ok := t.Tool.(tool.Gated); ok {
		return gated.NeedsApproval(arguments)
	}
	return t.Spec().Approval == tool.Always, nil
}

// Reconcile returns Unsure: no call of a replay is lost.
func (replayed) Reconcile(context.Context, string) (string, tool.Found, error) {
	return "", tool.Unsure, nil
}

// Call returns the recorded result, or runs the tool.
func (t replayed) Call(ctx context.Context, arguments json.RawMessage) (string, error) {
	name, call := t.Spec().Name, tool.CallOf(ctx)
	if t.record.tools.may(t.Tool) {
		t.record.run(name)
		return t.Tool.Call(tool.WithCall(ctx, t.record.unused(call)), arguments)
	}
	if err := t.misfit(arguments); err != nil {
		return "", err
	}
	c := t.record.result(callKey{call.Turn, call.ID}, name, string(arguments))
	switch {
	case c == nil:
		return "", errNoResult
	case c.Outcome == projections.CallFailed:
		return "", errors.New(c.Output)
	}
	return c.Output, nil
}

// misfit returns why arguments do not fit the tool, as the model reads it when the tool runs; nil if they do.
func (t replayed) misfit(arguments json.RawMessage) error {
	var misfit *tool.ArgumentError
	if _, err := t.NeedsApproval(arguments); errors.As(err, &misfit) {
		return misfit
	}
	return nil
}

// may reports whether a tool may run.
func (t Tools) may(of tool.Tool) bool {
	if _, child := of.(*actors.AgentTool); child {
		return false
	}
	return t == AllTools || t == ReadOnly && of.Spec().OnUnknown == tool.ReadOnly
}

// unused returns a call with an idempotency key that no call had before this run: under the
// recorded one a service would return what it did then, or do it twice once it has forgotten the key.
// Further attempts have the same key.
func (r *record) unused(call tool.Call) tool.Call {
	call.Key = fmt.Sprintf("rerun/%s/%s/%s", r.id, call.Turn, call.ID)
	return call
}

// replayedTools returns the definition with tools that have recorded results.
func replayedTools(d actors.Definition, r *record) actors.Definition {
	tools := make([]tool.Tool, len(d.Tools))
	for i, t := range d.Tools {
		tools[i] = replayed{t, r}
	}
	d.Tools, d.Retain = tools, 0
	return d
}
