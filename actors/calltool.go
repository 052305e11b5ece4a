package actors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/tool"
)

// beginTool starts a tool.
func (a *agent) beginTool(e turn.Effect) func() {
	call, def := a.call(e), a.def
	if a.state.Forks.Dry() {
		return a.beginDry(e, call)
	}
	limit := def.timeout(call.Tool)
	late := overdue(call, limit)
	var h *hooking
	most := limit + grace
	if def.afterTool() || def.around() {
		asked := a.hooking()
		h = &asked
		most += time.Duration(len(h.hooks)) * sideLimit
	}
	lost := func() any { return vanished(call) }
	span := a.state.Turn.CallSpan(a.id, &call.ToolCall)
	return a.runWithin(most, e, late, lost, func(ctx context.Context) any { return a.useTool(span.Context(ctx), e, call, def, h) })
}

// beginReconcile asks a tool what became of a lost call.
func (a *agent) beginReconcile(e turn.Effect) func() {
	call, def := a.call(e), a.def
	unsure := turn.ToolReconciled{Call: e.Call}
	limit := def.timeout(call.Tool)
	return a.runWithin(limit+grace, e, unsure, func() any { return unsure }, func(ctx context.Context) any {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return a.reconcile(ctx, e, call, def)
	})
}

// claim waits until there is memory for the copies of a tool's result that are made when it is
// stored, and returns the result, or the failure of a call for whose result there is none. This
// is no part of the time that the tool may take.
func claim(ctx context.Context, result any) any {
	returned, ok := result.(turn.ToolReturned)
	if !ok || returned.Failed != "" {
		return result
	}
	if err := memory.Of(ctx).AtLeast(ctx, len(returned.Output)); err != nil && ctx.Err() == nil {
		why := fmt.Sprintf("the call did run, but there was no memory for its result of %d bytes: %s", len(returned.Output), providers.AsError(err).Message)
		returned.Failed, returned.Output = messages.ToolFailureNoMemory, printable(why, maxMessage)
	}
	return returned
}

// timeout returns how long a call of the tool may take.
func (def *definition) timeout(name string) time.Duration {
	if t := def.tools[name]; t != nil {
		return timeout(t)
	}
	return tool.DefaultTimeout
}

func timeout(t tool.Tool) time.Duration { return cmp.Or(t.Spec().Timeout, tool.DefaultTimeout) }

// overdue returns the failure of a call that has not returned some time after its limit.
func overdue(c projections.CallState, limit time.Duration) turn.ToolReturned {
	return erred(c, messages.ToolFailureTimeout, "the tool did not finish within %v and may still run", limit)
}

// vanished returns the failure of a call whose goroutine ended without a result.
func vanished(c projections.CallState) turn.ToolReturned {
	return erred(c, messages.ToolFailurePanic, "the tool ended its goroutine")
}

// erred returns a tool's failure, with the text that the model reads.
func erred(c projections.CallState, kind messages.ToolFailure, format string, args ...any) turn.ToolReturned {
	return turn.ToolReturned{Call: c.ID, Attempt: c.Attempt, Failed: kind, Output: printable(fmt.Sprintf(format, args...), maxMessage)}
}

// useTool runs a tool and asks the hooks about its result; h is nil if there are
// none.
func (a *agent) useTool(ctx context.Context, e turn.Effect, c projections.CallState, def *definition, h *hooking) turn.ToolReturned {
	r := a.runTool(ctx, e, c, def, h)
	if h != nil && def.afterTool() && ctx.Err() == nil {
		seen, hooks := h.afterTool(ctx, HookedCall{c.ID, c.Tool, json.RawMessage(c.Arguments)}, HookedResult{Output: r.Output, Failed: r.Failed})
		r.Output, r.Hooks = seen.Output, hooks
	}
	return r
}

// runTool runs a tool within its time limit and returns what came of it.
func (a *agent) runTool(ctx context.Context, e turn.Effect, c projections.CallState, def *definition, h *hooking) turn.ToolReturned {
	t, limit := def.tools[c.Tool], def.timeout(c.Tool)
	if t == nil {
		return erred(c, messages.ToolFailureUnknownTool, "there is no tool named %q", c.Tool)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	call := func(c context.Context, arguments json.RawMessage) (string, error) {
		if err := a.mayAct(ctx); err != nil {
			return "", err
		}
		return t.Call(tool.WithProgress(c, func(text string) { a.progress(e, text) }), arguments)
	}
	if h != nil {
		call = h.aroundTool(c, call)
	}
	output, err := protect(func() *slog.Logger { return a.log().With("tool", c.Tool) }, func() (string, error) {
		return call(tool.WithCall(ctx, a.callInfo(e, c)), json.RawMessage(c.Arguments))
	})
	if err != nil {
		return toolError(ctx, c, err, limit)
	}
	return toolOutput(c, output, a.rt.blobs.most)
}

// toolOutput returns the result of a call that returned output, of at most most bytes.
func toolOutput(c projections.CallState, output string, most int) turn.ToolReturned {
	if len(output) > most {
		return erred(c, messages.ToolFailureTooLarge, "the result has %d bytes: the limit is %d; the call did run", len(output), most)
	}
	return turn.ToolReturned{Call: c.ID, Attempt: c.Attempt, Output: printable(output, most)}
}

// toolError returns the failure of a call that returned err.
func toolError(ctx context.Context, c projections.CallState, err error, limit time.Duration) turn.ToolReturned {
	var misfit *tool.ArgumentError
	var full *providers.Error
	var unknown *tool.UnknownError
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		return erred(c, messages.ToolFailurePanic, "the tool %v", err)
	case errors.As(err, &misfit):
		return erred(c, messages.ToolFailureBadArguments, "%v", err)
	case errors.As(err, &full) && full.Kind == providers.NoMemory:
		return erred(c, messages.ToolFailureNoMemory, "%v", err)
	case errors.Is(err, errMayNotAct):
		return erred(c, messages.ToolFailureTimeout, "%v", err)
	case ctx.Err() == context.DeadlineExceeded:
		return erred(c, messages.ToolFailureTimeout, "the tool did not finish within %v", limit)
	case errors.As(err, &unknown):
		return erred(c, messages.ToolFailureUnknown, "%v", err)
	}
	return erred(c, messages.ToolFailureError, "%v", err)
}

// progress reports to the observer how far a call is.
func (a *agent) progress(e turn.Effect, text string) {
	a.observe(func(o Observer) {
		o.Delta(Delta{Agent: a.id, Turn: e.Turn, Call: e.Call, Kind: "progress", Text: printable(text, maxMessage)})
	})
}

func (a *agent) callInfo(e turn.Effect, c projections.CallState) tool.Call {
	return tool.Call{Agent: a.id, Turn: e.Turn, ID: c.ID, Key: c.Key, Attempt: c.Attempt}
}

// reconcile asks a tool what became of a lost call.
func (a *agent) reconcile(ctx context.Context, e turn.Effect, c projections.CallState, def *definition) turn.ToolReconciled {
	unsure := turn.ToolReconciled{Call: c.ID}
	r, ok := def.tools[c.Tool].(tool.Reconciler)
	if !ok {
		return unsure
	}
	output, found, err := r.Reconcile(tool.WithCall(ctx, a.callInfo(e, c)), c.Key)
	if err != nil {
		a.log().Warn("a tool could not report what became of a call", "tool", c.Tool, "call", string(c.ID), "error", err)
		return unsure
	}
	outcomes := map[tool.Found]messages.Outcome{tool.Done: messages.OutcomeCompleted, tool.NotDone: messages.OutcomeRetry}
	return turn.ToolReconciled{Call: c.ID, Outcome: outcomes[found], Output: printable(output, a.rt.blobs.most)}
}

// errMayNotAct is the error of a call that was not made, because ownership of the agent was in
// doubt until its time was over.
var errMayNotAct = errors.New("it was not called: this node could not be sure any more that the agent is its own")

// mayAct waits until this node may act as the agent's owner, and is to be asked right before a
// call. An error reports that the call must not be made: ctx has ended, which it also does when
// the agent stops because its partition is another node's.
func (a *agent) mayAct(ctx context.Context) error {
	if a.rt.may() {
		return ctx.Err() // behind the question: what was lost has been stopped before the answer was yes
	}
	a.warn("a call waits until this node is sure again that the agent is its own")
	for !a.rt.may() {
		if pause(ctx, firstPause) != nil {
			return errMayNotAct
		}
	}
	return ctx.Err()
}
