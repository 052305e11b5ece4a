package turn

import (
	"encoding/json"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The outcomes are what the caller reports: what came of an effect, or that the process started
// again. One that is not awaited any more changes nothing.
type (
	// ModelAnswered is a model's whole answer, as hooks have left it, with the reviews of its calls.
	ModelAnswered struct {
		Call   messages.CallID
		Items  []messages.Item
		Finish string
		Model  string
		Usage  messages.Usage
		// Blob is that of model.completed.
		Blob *messages.Blob
		// Hooks are the decisions about the answer and about its calls as a whole.
		Hooks []HookDecision
		// Reviewed holds the review of each call that can run, by the id of UniqueCalls.
		Reviewed map[messages.CallID]Review
	}
	// ModelErred is a failed attempt at a model call or at a summary.
	ModelErred struct {
		Call      messages.CallID
		Kind      messages.ModelFailure
		Message   string
		Status    int
		Temporary bool
		// RetryAfter is what the server asked for.
		RetryAfter time.Duration
		// Shown reports whether a part of the answer was streamed to a caller.
		Shown bool
		Usage messages.Usage
		// Unknown reports whether the attempt may have used more than Usage.
		Unknown bool
		// Ours reports that the request could not be made, which no other model would change.
		Ours bool
	}
	// TimerDue reports that a Wait is over: one of that turn, or that of a scheduled input. At is
	// its Until.
	TimerDue struct {
		Turn  messages.TurnID // empty for a scheduled input
		Timer string
		At    time.Time
	}
	// Summarized is a model's summary of the older part of the history.
	Summarized struct {
		Call  messages.CallID
		Text  string
		Usage messages.Usage
	}
	// HooksAsked is what the hooks at a point have decided.
	HooksAsked struct {
		Point     Point
		Decisions []HookDecision
		// Request is the digest of the request that hooks have made. Empty: they did not
		// change it.
		Request string
		// Rewritten and RewrittenBlob are those of model.requested.
		Rewritten     json.RawMessage
		RewrittenBlob *messages.Blob
		// Seen are the steered inputs that are part of the request.
		Seen []string
	}
	// ToolReturned is a tool's result, or its failure.
	ToolReturned struct {
		Call    messages.CallID
		Attempt int
		// Failed is the kind of a failure, as in tool.failed. Empty: the tool completed.
		Failed messages.ToolFailure
		// Output is the text that the model reads. Blob is that of tool.completed.
		Output string
		Blob   *messages.Blob
		Hooks  []HookDecision
		// Unknown is why a person must give the result. Empty: it is above.
		Unknown string
	}
	// ToolReconciled is what the tool of a lost call reports of it.
	ToolReconciled struct {
		Call messages.CallID
		// Outcome is messages.OutcomeCompleted if Output or Blob is the result, OutcomeRetry if
		// the call may run. Empty: it is not known.
		Outcome messages.Outcome
		Output  string
		Blob    *messages.Blob
	}
	// Recover reports that the process of the effects under way was lost.
	Recover struct{}
	// Continue has the agent do what it has left: begin the next turn, or calls that were left to
	// another owner, if there will be none.
	Continue struct{}
)

// Review is what hooks and its tool decide about a call before it runs. The zero value admits it,
// unless its tool reports which calls require approval.
type Review struct {
	Hooks []HookDecision
	// Misfit is why the arguments cannot be used. Empty: they can.
	Misfit string
	// Free reports that the tool requires no approval for this call.
	Free bool
}

// HookDecision is what one hook has decided.
type HookDecision struct {
	Hook  string
	Point Point
	Do    HookAction
	// Reason is why, for the log.
	Reason string
	// Text is the answer of a finish or skip, the result of a skipped call, the
	// note of a continue.
	Text string
	// Arguments are those of a rewritten call.
	Arguments string
}

// HookAction is what a hook may decide.
type HookAction = projections.HookAction

// The actions.
const (
	HookContinue = projections.HookContinue
	HookRewrite  = projections.HookRewrite
	HookSkip     = projections.HookSkip
	HookPause    = projections.HookPause
	HookFinish   = projections.HookFinish
	HookFailed   = projections.HookFailed
)

// Point is where a hook is asked.
type Point = messages.HookPoint

// The points where a turn waits for hooks. Other hooks are asked as a part of the effect that they
// belong to.
const (
	BeforeModel = messages.PointBeforeModel // PointTurnStart included, before the first step
	TurnEnd     = messages.PointTurnEnd
)
