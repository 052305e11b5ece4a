package toolbox

import (
	"strconv"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/internal/process"
	"github.com/reprise-dev/reprise/providers/tool"
)

// environment is what a program runs with: what of the node's environment is inherited,
// what its configuration adds, and its call with its trace context, which nothing can override.
func environment(own, added []string, call tool.Call, trace messages.TraceContext) []string {
	agent, attempt := "", ""
	if call.ID != "" || call.Key != "" {
		agent, attempt = call.Agent.String(), strconv.Itoa(call.Attempt)
	}
	return append(process.Environment(own, added),
		"REPRISE_IDEMPOTENCY_KEY="+call.Key,
		"REPRISE_AGENT="+agent,
		"REPRISE_TURN="+string(call.Turn),
		"REPRISE_CALL="+string(call.ID),
		"REPRISE_ATTEMPT="+attempt,
		"TRACEPARENT="+trace.Parent(),
		"TRACESTATE="+trace.State(),
	)
}
