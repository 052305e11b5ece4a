package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// maxResult is the largest result of a tool or model, in bytes, that fits into
// a frame with what follows from it.
const maxResult = 192 << 10

// act brings the world in line with the state: it begins the effects that are
// new and cancels those that are listed no more.
func (a *agent) act() {
	if a.recovering || a.broken != nil {
		return
	}
	effects := a.state.Effects()
	for e, cancel := range a.running {
		if !listed(effects, e) {
			cancel()
			delete(a.running, e)
		}
	}
	for _, e := range effects {
		if _, begun := a.running[e]; begun {
			continue
		}
		if a.running == nil {
			a.running = make(map[turn.Effect]func())
		}
		a.running[e] = a.begin(e)
	}
}

func listed(effects []turn.Effect, e turn.Effect) bool {
	for _, x := range effects {
		if x == e {
			return true
		}
	}
	return false
}

// done forgets an effect whose outcome has come.
func (a *agent) done(e turn.Effect) {
	if cancel := a.running[e]; cancel != nil {
		cancel()
	}
	delete(a.running, e)
	if len(a.running) == 0 {
		a.running = nil
	}
}

// begin starts an effect outside the mailbox and returns what cancels it.
func (a *agent) begin(e turn.Effect) func() {
	report := func(result any) { a.root.Send(a.self, outcome{e, result}) }
	if e.Do == turn.Wait {
		timer := time.AfterFunc(time.Until(e.Until), func() { report(turn.RetryDue{Call: e.Call}) })
		return func() { timer.Stop() }
	}
	ctx, cancel := context.WithCancel(context.Background())
	switch e.Do {
	case turn.CallModel:
		req := a.request(e)
		go func() { report(a.callModel(ctx, e, req)) }()
	case turn.RunTool:
		call := a.call(e)
		go func() { report(a.runTool(ctx, e, call)) }()
	case turn.Reconcile:
		call := a.call(e)
		go func() { report(a.reconcile(ctx, e, call)) }()
	}
	return cancel
}

func (a *agent) request(e turn.Effect) providers.Request {
	return providers.Request{
		Model: a.def.model, Instructions: a.def.Instructions, Items: a.state.History.Items(),
		Tools: a.def.specs, Agent: a.id, Call: e.Call, Settings: a.def.Settings,
	}
}

// callModel calls the model once and gives what came of it.
func (a *agent) callModel(ctx context.Context, e turn.Effect, req providers.Request) (result any) {
	var shown atomic.Bool
	defer func() {
		if p := recover(); p != nil {
			a.rt.logger.Error("a model provider panicked", "agent", a.id.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = turn.ModelErred{Call: e.Call, Kind: string(providers.BadAnswer), Message: "the provider panicked", Shown: shown.Load()}
		}
	}()
	resp, err := a.def.provider.Generate(ctx, req, func(d providers.Delta) {
		shown.Store(true)
		a.rt.observer.Delta(Delta{Agent: a.id, Turn: e.Turn, Call: e.Call, Kind: string(d.Kind), Text: d.Text})
	})
	if err != nil {
		pe := providers.AsError(err)
		return turn.ModelErred{
			Call: e.Call, Kind: string(pe.Kind), Message: pe.Message, Status: pe.Status, Temporary: pe.Temporary,
			RetryAfter: pe.RetryAfter, Shown: shown.Load(), Usage: pe.Usage,
		}
	}
	answered := turn.ModelAnswered{Call: e.Call, Items: resp.Items, Finish: resp.Finish, Model: resp.Model, Usage: resp.Usage}
	if size := resultSize(answered); size > maxResult {
		return turn.ModelErred{Call: e.Call, Kind: "too_large", Usage: resp.Usage, Shown: shown.Load(),
			Message: fmt.Sprintf("the answer has %d bytes: the limit is %d", size, maxResult)}
	}
	return answered
}

// call is the state's record of the effect's tool call.
func (a *agent) call(e turn.Effect) turn.ToolCall {
	for _, c := range a.state.Turn.Calls {
		if c.ID == e.Call {
			return c
		}
	}
	return turn.ToolCall{ID: e.Call}
}

// runTool runs a tool within its time limit and gives what came of it.
func (a *agent) runTool(ctx context.Context, e turn.Effect, c turn.ToolCall) (result any) {
	erred := func(kind, format string, args ...any) turn.ToolErred {
		return turn.ToolErred{Call: c.ID, Attempt: c.Attempt, Kind: kind, Message: printable(fmt.Sprintf(format, args...))}
	}
	t := a.def.tools[c.Tool]
	if t == nil {
		return erred("unknown_tool", "there is no tool named %q", c.Tool)
	}
	defer func() {
		if p := recover(); p != nil {
			a.rt.logger.Error("a tool panicked", "agent", a.id.String(), "tool", c.Tool, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = erred("panic", "the tool panicked: %v", p)
		}
	}()
	limit := t.Spec().Timeout
	if limit == 0 {
		limit = tool.DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output, err := t.Call(tool.WithCall(ctx, a.callInfo(e, c)), json.RawMessage(c.Arguments))
	var misfit *tool.ArgumentError
	switch {
	case errors.As(err, &misfit):
		return erred("bad_arguments", "%v", err)
	case err != nil && ctx.Err() == context.DeadlineExceeded:
		return erred("timeout", "the tool did not finish within %v", limit)
	case err != nil:
		return erred("error", "%v", err)
	case len(output) > maxResult:
		return erred("too_large", "the result has %d bytes: the limit is %d; the call did run", len(output), maxResult)
	}
	return turn.ToolReturned{Call: c.ID, Attempt: c.Attempt, Output: printable(output)}
}

func (a *agent) callInfo(e turn.Effect, c turn.ToolCall) tool.Call {
	return tool.Call{Agent: a.id, Turn: e.Turn, ID: c.ID, Key: c.Key, Attempt: c.Attempt}
}

// reconcile asks a tool of class check what became of a lost call.
func (a *agent) reconcile(ctx context.Context, e turn.Effect, c turn.ToolCall) (result any) {
	unsure := turn.ToolReconciled{Call: c.ID}
	r, ok := a.def.tools[c.Tool].(tool.Reconciler)
	if !ok {
		return unsure
	}
	defer func() {
		if recover() != nil {
			result = unsure
		}
	}()
	output, found, err := r.Reconcile(tool.WithCall(ctx, a.callInfo(e, c)), c.Key)
	if err != nil {
		a.rt.logger.Warn("a tool could not tell what became of a call", "agent", a.id.String(), "tool", c.Tool, "call", string(c.ID), "error", err)
		return unsure
	}
	return turn.ToolReconciled{Call: c.ID, Done: found == tool.Done, NotDone: found == tool.NotDone, Output: printable(output)}
}

// printable makes text that JSON and msgpack can carry, bad bytes shown, and
// cuts what no frame could hold.
func printable(s string) string {
	if len(s) > maxResult {
		s = s[:maxResult] + " [cut]"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// resultSize estimates how many bytes an outcome adds to a frame.
func resultSize(result any) int {
	switch r := result.(type) {
	case turn.ToolReturned:
		return len(r.Output)
	case turn.ToolErred:
		return len(r.Message)
	case turn.ModelAnswered:
		size := 0
		for _, item := range r.Items {
			size += 2*len(item.Content.Text()) + 2*len(item.Arguments) + len(item.Raw) + 64
		}
		return size
	}
	return 0
}
