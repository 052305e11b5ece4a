package actors

import (
	"context"
	"fmt"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A fork is dry until a person decides otherwise: none of its tools is called. A call has the result
// that its parent has on record for it. If there is none, a person supplies it.

// beginDry finds the recorded result of a call.
func (a *agent) beginDry(e turn.Effect, call projections.CallState) (cancel func()) {
	o := *a.state.Forks.Origin
	result := turn.ToolReturned{Call: call.ID, Attempt: call.Attempt}
	lost := func() any {
		result := result
		result.Unknown = "the search for its recorded result has failed"
		return result
	}
	return a.run(e, lost, func(ctx context.Context) any {
		recorded, err := a.rt.recorded(ctx, a.id, o, call)
		switch {
		case err != nil:
			result.Unknown = printable(fmt.Sprintf("tools are dry, and its recorded result cannot be read: %v", err), maxMessage)
		case recorded == nil:
			result.Unknown = "tools are dry, and " + unrecorded(o)
		default:
			a.replay(ctx, &result, o.Parent, *recorded)
		}
		return result
	})
}

// unrecorded returns why there is no recorded result of a call.
func unrecorded(o projections.Origin) string {
	switch {
	case o.Imported:
		return fmt.Sprintf("an imported agent has no recorded results: those of %s after event %d are not in the file that it was imported from", o.Parent, o.At)
	case o.Detached:
		return fmt.Sprintf("a detached fork has no recorded results: those of %s after event %d are not read any more", o.Parent, o.At)
	}
	return fmt.Sprintf("%s has no recorded result of this call", o.Parent)
}

// replay makes a recorded result that of a call. One that is kept as a blob is copied.
func (a *agent) replay(ctx context.Context, result *turn.ToolReturned, parent messages.AgentID, recorded projections.RecordedCall) {
	result.Output = recorded.Output
	if recorded.Outcome == projections.CallFailed {
		result.Failed = recorded.Kind
	}
	if recorded.Blob == nil {
		return
	}
	var err error
	if result.Blob, err = a.rt.blobs.copy(ctx, a.id, a.epoch, parent, *recorded.Blob); err != nil {
		result.Unknown = printable(fmt.Sprintf("tools are dry, and its recorded result cannot be copied: %v", err), maxMessage)
	}
}

// recorded returns the result that the parent of a fork has on record for a call: that of the same
// call, if the parent had asked for it before the fork was made. Else the n-th call of the fork's own
// with a tool and arguments has the result of the parent's n-th such call since then. Nil: there is
// none. The parent's log is read from the fork on, for its own call from the start of that call's turn.
func (rt *Runtime) recorded(ctx context.Context, fork messages.AgentID, o projections.Origin, call projections.CallState) (*projections.RecordedCall, error) {
	if o.Owned() { // there is none here, or the parent's address may be another agent's by now
		return nil, nil
	}
	var own, parent, before projections.RecordedCalls
	if err := rt.calls(ctx, fork, o.At+1, &own); err != nil {
		return nil, err
	}
	if own.Of(call.Turn, call.ID) == nil { // the parent asked for it
		if err := rt.calls(ctx, o.Parent, call.Turn.Start(), &before); err != nil {
			return nil, err
		}
		return withResult(before.Of(call.Turn, call.ID)), nil
	}
	if err := rt.calls(ctx, o.Parent, o.At+1, &parent); err != nil {
		return nil, err
	}
	asks := call.Asks()
	nth := 0
	for i := range own.List {
		if c := &own.List[i]; c.Turn == call.Turn && c.ID == call.ID {
			break
		} else if c.Asks() == asks {
			nth++
		}
	}
	if results := parent.Results()[asks]; nth < len(results) {
		return results[nth], nil
	}
	return nil, nil
}

// withResult returns the call if its result is known; else nil.
func withResult(c *projections.RecordedCall) *projections.RecordedCall {
	if c != nil && c.HasResult() {
		return c
	}
	return nil
}

// calls folds the calls of an agent from an event on.
func (rt *Runtime) calls(ctx context.Context, id messages.AgentID, from messages.EventNumber, to *projections.RecordedCalls) error {
	for rec, err := range rt.store.Read(ctx, id, eventlog.From(from)) {
		if err != nil {
			return err
		}
		to.InFrame(rec.Frame)
		for i, ev := range rec.Frame.Events {
			if n := rec.Frame.First + messages.EventNumber(i); n >= from {
				to.Apply(n, ev)
			}
		}
	}
	return nil
}
