package scripted

import (
	"context"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// TwoStep makes a provider for benchmarks, whose turns have two model calls: a
// history that ends with the result of a tool is answered with "done", any
// other with a call of tool. It keeps no state and records nothing, so what is
// measured is the runtime. Each call reports 12 tokens in and 4 out.
func TwoStep(tool, arguments string) providers.Provider { return twoStep{tool, arguments} }

type twoStep struct{ tool, arguments string }

var (
	benchUsage = messages.Usage{Input: 12, Output: 4}
	benchText  = messages.TextContent("done") // shared by all answers: a response's content must not be changed
)

func (t twoStep) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	if ctx.Err() != nil {
		return providers.Response{}, canceled(ctx)
	}
	resp := providers.Response{Finish: "tool_calls", Model: r.Model, Usage: benchUsage}
	if n := len(r.Items); n > 0 && r.Items[n-1].Type == messages.ItemCallOutput {
		resp.Finish = "stop"
		resp.Items = []messages.Item{{Type: messages.ItemMessage, Role: messages.RoleAssistant, Content: benchText}}
		if emit != nil {
			emit(providers.Delta{Kind: providers.DeltaText, Text: "done"})
		}
		return resp, nil
	}
	resp.Items = []messages.Item{{Type: messages.ItemCall, CallID: "call_" + r.Call, Name: t.tool, Arguments: t.arguments}}
	return resp, nil
}
