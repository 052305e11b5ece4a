package actors

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// Hook is code of yours that is asked at points of a turn and may change its
// course. Nil functions are not asked. What a hook wants, but for a plain
// Continue, is a fact of the agent (hook.decided) with its reason.
//
// Hooks run outside the mailbox, one after the other in their order, each for a
// minute at most. One whose decision to pause or continue is in the log is not
// asked again in that step. Otherwise a hook may be asked again about the same thing after a crash
// or a retry: until its decision is in the log it has none. The functions must
// be safe for concurrent use: agents run in parallel.
//
// One that returns an error, panics or takes too long has failed. That fails
// the turn before and after a model call, fails the call before a tool, and is
// recorded and otherwise ignored after a tool and at the turn's end.
type Hook struct {
	// Name is unique in its definition.
	Name string
	// Order: lower ones are asked first, equal ones in the order of the
	// definition.
	Order int

	// TurnStart is asked before a turn's first model call.
	// Skip and Finish end the turn with Text; Pause waits for resume.
	TurnStart func(context.Context, HookInfo) (Verdict, error)
	// BeforeModel is asked before each attempt at a model call. The request is a
	// copy, with as much of large texts as the model is shown (ShowAtMost); it is sent changed only by Rewrite, which sends Request instead; Skip and Finish end the turn with Text and
	// call no model; Pause waits for resume. What Request changes is kept in the log, for
	// [Runtime.Requested]; one that JSON cannot hold, or that changes more than Config.MaxPayload, is a
	// failure of the hook.
	BeforeModel func(context.Context, HookInfo, providers.Request) (Verdict, error)
	// AfterModel is asked about each answer. Rewrite takes the items of Response
	// instead; Skip runs none of its calls and gives each Text as its result;
	// Finish ends the turn with Text; Pause waits for resume before its calls run.
	AfterModel func(context.Context, HookInfo, providers.Response) (Verdict, error)
	// BeforeTools is asked about the calls of an answer together. Rewrite runs
	// those in Calls with other arguments; Skip, Finish and Pause as AfterModel.
	BeforeTools func(context.Context, HookInfo, []HookedCall) (Verdict, error)
	// BeforeTool is asked about each call. Rewrite runs it with Arguments; Skip
	// gives it Text as its result; Pause makes it wait for approval; Finish ends
	// the turn with Text.
	BeforeTool func(context.Context, HookInfo, HookedCall) (Verdict, error)
	// AfterTool is asked about each result, whole, before that is on record: a crash in
	// between leaves a call of a tool with OnUnknown Pause in doubt, so let it be short. Rewrite gives the model Text instead;
	// Finish ends the turn with Text; Pause waits for resume before the next
	// step. Skip leaves the result as it is and asks no further hook.
	AfterTool func(context.Context, HookInfo, HookedCall, HookedResult) (Verdict, error)
	// TurnEnd is asked before a turn completes. Continue with a Text makes
	// another model call that reads it, if the limits allow one; Rewrite and a
	// Finish with a Text change the output; Pause waits for resume. It is also
	// called for turns that failed or were aborted, once they have: its verdict
	// has no effect then, it is not called again after a crash, and a node that
	// closes does not wait for it.
	TurnEnd func(context.Context, HookInfo, HookedEnd) (Verdict, error)

	// AroundModel and AroundTool wrap the call itself, the first hook
	// outermost: to time it, to keep its result, to try it elsewhere. They may call
	// next once, again, or not at all; what they return is what is recorded. What
	// goes in is on record by then and cannot be changed: that is for BeforeModel
	// and BeforeTool, whose changes approvals see. They have the time of the call.
	AroundModel func(ctx context.Context, in HookInfo, r providers.Request, next func(context.Context) (providers.Response, error)) (providers.Response, error)
	AroundTool  func(ctx context.Context, in HookInfo, c HookedCall, next func(context.Context) (string, error)) (string, error)
}

// HookInfo is where in its turn an agent is.
type HookInfo struct {
	Agent  messages.AgentID
	Turn   messages.TurnID
	Step   int // of the model call that is next or was last
	Inputs []string
}

// HookedCall is a call that a model asks for.
type HookedCall struct {
	ID        messages.CallID
	Tool      string
	Arguments json.RawMessage
}

// HookedResult is what came of a call.
type HookedResult struct {
	Output string
	// Failed is the kind of a failure, as in tool.failed; Output is its text.
	Failed messages.ToolFailure
}

// HookedEnd is how a turn ends.
type HookedEnd struct {
	// Status is completed, failed or aborted.
	Status string
	Output string
	// Reason is why it failed or was aborted. Of a model's failure it is the kind, if that is a token.
	Reason string
}

// Action is what a hook wants.
type Action = turn.HookAction

// The actions. The zero value is Continue.
const (
	Continue = turn.HookContinue
	Rewrite  = turn.HookRewrite
	Skip     = turn.HookSkip
	Pause    = turn.HookPause
	Finish   = turn.HookFinish
)

// Verdict is a hook's decision. The zero value changes nothing.
type Verdict struct {
	Do Action
	// Reason is kept in the log, for its readers.
	Reason string
	// Text is what is documented at the points; with Continue it is a note that the model
	// reads from then on.
	Text string
	// Request replaces a model's, Response what it answered.
	Request  *providers.Request
	Response *providers.Response
	// Arguments are a call's new ones, Calls those of several.
	Arguments json.RawMessage
	Calls     map[messages.CallID]json.RawMessage
}

// sortHooks returns the hooks in the order in which they are asked.
func sortHooks(hooks []Hook) []Hook {
	sorted := slices.Clone(hooks)
	slices.SortStableFunc(sorted, func(a, b Hook) int { return a.Order - b.Order })
	return sorted
}

// has reports whether any hook is asked at a point.
func has(hooks []Hook, asked func(Hook) bool) bool { return slices.ContainsFunc(hooks, asked) }
