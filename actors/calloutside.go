package actors

import (
	"context"
	"encoding/json"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/tool"
)

// CallTool calls a tool outside of a turn, without hooks, and returns what an agent would record of the
// call: a result of at most cfg.MaxPayload, or a failure with the text that the model reads. As for
// an agent, a tool that ignores its time limit is left running. If ctx ends first, the call fails.
func CallTool(ctx context.Context, cfg Config, t tool.Tool, call tool.Call, arguments string) turn.ToolReturned {
	c := projections.CallState{ToolCall: projections.ToolCall{ID: call.ID, Attempt: call.Attempt}}
	limit := timeout(t)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan turn.ToolReturned, 1)
	go func() {
		returned := vanished(c)
		defer func() { done <- returned }()
		output, err := protect(nil, func() (string, error) {
			return t.Call(tool.WithCall(within, call), json.RawMessage(arguments))
		})
		if err != nil {
			returned = toolError(within, c, err, limit)
		} else {
			returned = toolOutput(c, output, cfg.maxPayload())
		}
	}()
	select {
	case returned := <-done:
		return returned
	case <-ctx.Done():
		return toolError(ctx, c, ctx.Err(), limit)
	case <-time.After(limit + grace):
		return overdue(c, limit)
	}
}
