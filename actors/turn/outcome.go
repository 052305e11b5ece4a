package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The outcomes are what the shell feeds back: what came of an effect, or that
// the process came back. Each names its call; one that is no longer awaited
// changes nothing.
type (
	// ModelAnswered is a model's whole answer, and what hooks and tools made
	// of it.
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
		// Reviewed holds what is known of each call that can run, by the id that
		// UniqueCalls gave it.
		Reviewed map[messages.CallID]Review
	}
	// ModelErred is a failed attempt at a model call or at a summary.
	ModelErred struct {
		Call      messages.CallID
		Kind      string
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
		// Ours reports that the request could not be made: no other model would do better.
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
	// HooksAsked is what the hooks at a point decided.
	HooksAsked struct {
		Point     Point
		Decisions []HookDecision
		// Request is the digest of the request that hooks have made. Empty: they
		// left it as it was.
		Request string
		// Seen are the steered inputs that are part of that request.
		Seen []string
	}
	// ToolReturned is a tool's result, or its failure.
	ToolReturned struct {
		Call    messages.CallID
		Attempt int
		// Failed is the kind of a failure, as in tool.failed. Empty: the tool completed.
		Failed string
		// Output is the text that the model reads. Blob is that of tool.completed.
		Output string
		Blob   *messages.Blob
		Hooks  []HookDecision
	}
	// ToolReconciled is what a tool that reconciles knows of a lost call.
	ToolReconciled struct {
		Call messages.CallID
		// Outcome is messages.OutcomeCompleted if Output or Blob is the result, OutcomeRetry if
		// the call may run. Empty: the tool cannot tell.
		Outcome messages.Outcome
		Output  string
		Blob    *messages.Blob
	}
	// Recover reports that what ran is gone with its process.
	Recover struct{}
	// Continue has the agent do what it has left: begin the next turn, or calls that waited for
	// another owner, which does not come after all.
	Continue struct{}
)

// Review is what is known of a call before it runs. The zero value lets it,
// unless its tool is one whose approval is asked.
type Review struct {
	Hooks []HookDecision
	// Misfit says why the arguments cannot be used. Empty: they can.
	Misfit string
	// Free reports that a tool whose approval is asked needs none for this call.
	Free bool
}

// HookDecision is what one hook wants.
type HookDecision struct {
	Hook  string
	Point string // as in hook.decided
	Do    HookAction
	// Reason is why, for the log.
	Reason string
	// Text is the answer of a finish or skip, the result of a skipped call, the
	// note of a continue.
	Text string
	// Arguments are a rewritten call's.
	Arguments string
}

// HookAction is what a hook may want.
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

// Point is where the machine waits for hooks.
type Point string

// The points. The hooks of other places are asked while the effect they belong
// to is still under way.
const (
	BeforeModel Point = projections.PointBeforeModel // turn_start included, before the first step
	TurnEnd     Point = projections.PointTurnEnd
)
