package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/tool"
)

// maxResult is the largest result of a tool or model, in bytes, that fits into
// a frame with what follows from it.
const maxResult = 192 << 10

// act brings the world in line with the state: it begins the effects that are
// new and cancels those that are listed no more.
func (a *agent) act() {
	a.reportDrained()
	if a.broken != nil {
		return
	}
	effects := a.state.Effects()
	if a.def.turn.Unknown {
		effects = a.state.Ends()
	}
	a.cease(effects)
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

// cease cancels what is listed no more. It need not wait for the log as a
// beginning must: should the append behind it fail, the agent stops anyway, and
// what ran is recovered as after a crash.
func (a *agent) cease(effects []turn.Effect) {
	for e, cancel := range a.running {
		if !listed(effects, e) {
			cancel()
			delete(a.running, e)
		}
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

// grace is how long a tool may take to notice that its time is over.
const grace = 5 * time.Second

// begin starts an effect outside the mailbox and returns what cancels it.
func (a *agent) begin(e turn.Effect) func() {
	switch e.Do {
	case turn.Wait:
		timer := time.AfterFunc(time.Until(e.Until), func() { a.report(e, e.Due()) })
		return func() { timer.Stop() }
	case turn.CallModel:
		return a.beginModel(e)
	case turn.Summarize:
		return a.beginSummary(e)
	case turn.AskHooks:
		return a.beginHooks(e)
	case turn.Begin:
		a.report(e, turn.Continue{})
	case turn.RunTool:
		return a.beginTool(e)
	case turn.Send:
		return a.send(e)
	case turn.Reconcile:
		call := a.call(e)
		gone := turn.ToolReconciled{Call: e.Call}
		def := a.def
		limit := def.timeout(call.Tool)
		overdue := time.AfterFunc(limit+grace, func() { a.report(e, gone) })
		cancel := a.run(e, gone, func(stopped context.Context) any {
			defer overdue.Stop()
			ctx, cancel := context.WithTimeout(stopped, limit)
			defer cancel()
			result := a.reconcile(ctx, e, call, def)
			overdue.Stop() // what it says is in hand, and is stored for as long as that takes
			return a.spill(stopped, result)
		})
		return func() { overdue.Stop(); cancel() }
	}
	return func() {}
}

// beginTool starts a tool. One that does not end with its time is left to
// itself: its call has timed out.
func (a *agent) beginTool(e turn.Effect) func() {
	call := a.call(e)
	def := a.def
	limit := def.timeout(call.Tool)
	late := erred(call, "timeout", "the tool did not finish within %v and may still run", limit)
	var h *hooking
	patience := limit + grace
	if a.def.afterTool || a.def.around {
		asked := a.hooking()
		h = &asked
		patience += time.Duration(len(h.hooks)) * hookLimit
	}
	overdue := time.AfterFunc(patience, func() { a.report(e, late) })
	cancel := a.run(e, erred(call, "panic", "the tool ended its goroutine"), func(ctx context.Context) any {
		defer overdue.Stop()
		result := a.useTool(ctx, e, call, def, h)
		overdue.Stop() // the result is in hand, and is stored for as long as that takes
		return a.spill(ctx, roomFor(ctx, call, result))
	})
	return func() { overdue.Stop(); cancel() }
}

// roomFor waits until there is memory for the copies of a tool's result that are made when it
// is stored, and returns the result, or the failure of a call for whose result there is
// none. This is no part of the time that the tool may take.
func roomFor(ctx context.Context, c projections.CallState, result any) any {
	returned, ok := result.(turn.ToolReturned)
	if !ok {
		return result
	}
	if err := memory.Of(ctx).AtLeast(ctx, len(returned.Output)); err != nil && ctx.Err() == nil {
		failed := erred(c, string(providers.NoMemory), "the call did run, but there was no memory for its result of %d bytes: %s", len(returned.Output), providers.AsError(err).Message)
		failed.Hooks = returned.Hooks
		return failed
	}
	return result
}

// run does the work in a goroutine and reports what came of it, or gone if the
// work ended its goroutine.
func (a *agent) run(e turn.Effect, gone any, work func(context.Context) any) (cancel func()) {
	ctx, cancel := context.WithCancel(a.ctx)
	ctx, release := a.rt.memory.With(ctx)
	a.rt.dispatcher.run(func() {
		defer release() // the result is small by then
		result := gone
		defer func() { a.report(e, result) }()
		result = work(ctx)
	})
	return cancel
}

// report hands over what came of an effect. It may be called from any goroutine.
func (a *agent) report(e turn.Effect, result any) {
	if a.outcomes.add(outcome{e, result}) {
		a.root.Send(a.self, outcomesWait{})
	}
}

// timeout is how long a call of the tool may take.
func (def *definition) timeout(name string) time.Duration {
	if t := def.tools[name]; t != nil && t.Spec().Timeout != 0 {
		return t.Spec().Timeout
	}
	return tool.DefaultTimeout
}

// beginModel calls the model that the state names, with the request that hooks
// have made, if they have.
func (a *agent) beginModel(e turn.Effect) func() {
	asked := a.state.Turn.Model
	m := a.def.models[asked.Model]
	req := a.request(e, m, nil, asked.ToolChoice)
	if a.def.around {
		req = copyRequest(req)
	}
	if a.rewritten != nil {
		req = *a.rewritten
		req.Agent, req.Call = a.id, e.Call
	}
	missing := a.missing
	a.rewritten, a.missing = nil, nil
	above := messages.Hearers(a.state.Turn.Callers)
	gone := turn.ModelErred{Call: e.Call, Kind: string(providers.BadAnswer), Message: "the provider ended its goroutine"}
	var j *judging
	if a.def.judges || a.def.around {
		j = &judging{hooking: a.hooking(), def: a.def, used: a.state.Turn.CallIDs, denials: make(map[string]int)}
		for _, r := range a.state.Decisions.List {
			j.denials[r.Tool] = len(r.Text)
		}
	}
	wait, most := a.pace(), a.def.showAtMost()
	return a.run(e, gone, func(ctx context.Context) any {
		if wait(ctx) != nil {
			return gone // nobody listens any more
		}
		if missing == nil {
			req.Items, missing = a.rt.shelf.show(ctx, a.id, req.Items, most)
		}
		if missing != nil {
			return unshown(e.Call, missing)
		}
		return a.callModel(ctx, e, m.provider, req, j, above)
	})
}

// pace says when a model may be called: the first call of a turn that is recovered
// waits for its turn, so that those who were taken over together do not fall upon
// the provider together.
func (a *agent) pace() func(context.Context) error {
	if !a.recovered {
		return func(context.Context) error { return nil }
	}
	a.recovered = false
	return a.rt.pace.Wait
}

// request is what a model is sent; inputs are those that it would be the first
// to see beside the history.
func (a *agent) request(e turn.Effect, m model, inputs []string, choice string) providers.Request {
	return providers.Request{
		Model: m.name, Instructions: a.def.Instructions, Items: a.state.History.ItemsWith(inputs),
		Tools: a.def.specs, ToolChoice: choice, Agent: a.id, Call: e.Call, Settings: m.settings,
	}
}

// beginHooks asks the hooks at a point of the turn.
func (a *agent) beginHooks(e turn.Effect) func() {
	t, h := a.state.Turn, a.hooking()
	if e.Point == turn.TurnEnd {
		output, _ := a.state.Output(a.def.turn)
		gone := turn.HooksAsked{Point: turn.TurnEnd}
		return a.run(e, gone, func(ctx context.Context) any {
			if b := output.Blob; b != nil {
				var err error
				if output.Text, err = a.rt.shelf.text(ctx, a.id, *b, math.MaxInt); err != nil {
					return h.unread(turn.TurnEnd, err)
				}
			}
			return h.turnEnd(ctx, HookedEnd{Status: "completed", Output: output.Text})
		})
	}
	var seen []string
	for _, q := range a.state.Inputs.Steered {
		seen = append(seen, q.ID)
	}
	name, choice := a.state.Asks(a.def.turn)
	req := copyRequest(a.request(e, a.def.models[name], seen, choice))
	if t.Model == nil {
		h.info.Step++
	}
	a.rewritten, a.missing = nil, nil
	atStart, most := !t.Asked(), a.def.showAtMost()
	gone := hooksDone{HooksAsked: turn.HooksAsked{Point: e.Point, Decisions: []turn.HookDecision{
		{Hook: "hooks", Point: string(e.Point), Do: turn.HookFailed, Reason: errHookGone.Error()},
	}}}
	return a.run(e, gone, func(ctx context.Context) any {
		items, err := a.rt.shelf.show(ctx, a.id, req.Items, most)
		if err != nil { // the call cannot be made: that is its own failure, and no hook's
			return hooksDone{HooksAsked: turn.HooksAsked{Point: e.Point, Seen: seen}, missing: err}
		}
		req.Items = items
		done := h.beforeModel(ctx, req, atStart)
		done.Seen = seen
		return done
	})
}

// modelSilence is how long a model may say nothing before its call is given up
// and, as after a broken connection, tried again. Models that think without a
// word take minutes.
const modelSilence = 10 * time.Minute

var errSilent = fmt.Errorf("the model said nothing for %v", modelSilence)

// callModel calls the model once and gives what came of it, and what hooks and
// tools make of that; j is nil if there are none to ask.
func (a *agent) callModel(ctx context.Context, e turn.Effect, p providers.Provider, req providers.Request, j *judging, above []messages.Caller) (result any) {
	var heard heard
	defer func() {
		if p := recover(); p != nil {
			a.rt.logger.Error("a model provider panicked", a.id.LogAttr(a.epoch), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = modelErred(e.Call, &providers.Error{Kind: providers.BadAnswer, Message: "the provider panicked"}, &heard)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := &providers.Error{Kind: providers.Network, Message: errSilent.Error(), Temporary: true}
	silence := time.AfterFunc(modelSilence, func() {
		cancel(errSilent)
		time.AfterFunc(grace, func() { a.report(e, modelErred(e.Call, silent, &heard)) }) // too late if it has ended
	})
	defer silence.Stop()
	asked := ctx // a hook may give the call another
	generate := func(ctx context.Context, req providers.Request) (providers.Response, error) {
		if err := a.mayAct(asked); err != nil {
			return providers.Response{}, err
		}
		return p.Generate(ctx, req, func(d providers.Delta) {
			silence.Reset(modelSilence)
			heard.begun.Store(true)
			if d.Text == "" {
				return
			}
			heard.shown.Store(true)
			a.tell(func(o Observer) {
				o.Delta(Delta{Agent: a.id, Turn: e.Turn, Call: e.Call, Kind: string(d.Kind), Text: d.Text, Above: above})
			})
		})
	}
	if j != nil {
		generate = j.aroundModel(generate)
	}
	resp, err := generate(ctx, req)
	if err == nil && j != nil && j.def.around {
		err = sound(resp.Items)
	}
	silence.Stop()
	if context.Cause(ctx) == errSilent { // whatever came too late: nothing may be asked about it
		return modelErred(e.Call, silent, &heard)
	}
	if err != nil {
		return modelErred(e.Call, providers.AsError(err), &heard)
	}
	answered := turn.ModelAnswered{Call: e.Call, Items: resp.Items, Finish: resp.Finish, Model: resp.Model, Usage: resp.Usage.Clamped()}
	more := 0
	if j != nil {
		j.answered = &answered
		j.answer(ctx)
		more = j.remembered()
	}
	err = a.spillAnswer(ctx, &answered, more)
	if size, limit := resultSize(answered)+more, a.rt.maxResult(); err == nil && size > limit {
		err = fmt.Errorf("the answer would take %d bytes in the log: the limit is %d", size, limit)
	}
	if err != nil {
		return turn.ModelErred{Call: e.Call, Kind: "too_large", Usage: resp.Usage.Clamped(), Begun: true, Shown: heard.shown.Load(), Message: err.Error()}
	}
	return answered
}

// unshown is the failure of a model call that could not be made, because what it
// would show cannot be read.
func unshown(call messages.CallID, err error) turn.ModelErred {
	m := modelErred(call, providers.AsError(err), new(heard))
	m.Ours = true
	return m
}

// heard is whether a model's answer has begun, if only with pieces of a call, and whether any
// of it was shown.
type heard struct{ begun, shown atomic.Bool }

func modelErred(call messages.CallID, err *providers.Error, h *heard) turn.ModelErred {
	return turn.ModelErred{
		Call: call, Kind: string(err.Kind), Message: printable(err.Message, maxMessage), Status: err.Status, Temporary: err.Temporary,
		RetryAfter: err.RetryAfter, Begun: h.begun.Load(), Shown: h.shown.Load(), Usage: err.Usage.Clamped(), Ours: err.Kind == providers.NoMemory,
	}
}

// call is the state's record of the effect's tool call.
func (a *agent) call(e turn.Effect) projections.CallState {
	for _, c := range a.state.Turn.Calls {
		if c.ID == e.Call {
			return c
		}
	}
	return projections.CallState{ToolCall: projections.ToolCall{ID: e.Call}}
}

// erred is a tool's failure, with the text that the model reads.
func erred(c projections.CallState, kind, format string, args ...any) turn.ToolErred {
	return turn.ToolErred{Call: c.ID, Attempt: c.Attempt, Kind: kind, Message: printable(fmt.Sprintf(format, args...), maxMessage)}
}

// useTool runs a tool and asks the hooks about its result; h is nil if there are
// none.
func (a *agent) useTool(ctx context.Context, e turn.Effect, c projections.CallState, def *definition, h *hooking) any {
	result := a.runTool(ctx, e, c, def, h)
	if h == nil || !def.afterTool || ctx.Err() != nil {
		return result
	}
	call := HookedCall{c.ID, c.Tool, json.RawMessage(c.Arguments)}
	switch r := result.(type) {
	case turn.ToolReturned:
		seen, hooks := h.afterTool(ctx, call, HookedResult{Output: r.Output})
		r.Output, r.Hooks = seen.Output, hooks
		return r
	case turn.ToolErred:
		seen, hooks := h.afterTool(ctx, call, HookedResult{Output: r.Message, Failed: r.Kind})
		r.Message, r.Hooks = seen.Output, hooks
		return r
	}
	return result
}

// runTool runs a tool within its time limit and gives what came of it.
func (a *agent) runTool(ctx context.Context, e turn.Effect, c projections.CallState, def *definition, h *hooking) (result any) {
	t, limit := def.tools[c.Tool], def.timeout(c.Tool)
	if t == nil {
		return erred(c, "unknown_tool", "there is no tool named %q", c.Tool)
	}
	defer func() {
		if p := recover(); p != nil {
			a.rt.logger.Error("a tool panicked", a.id.LogAttr(a.epoch), "tool", c.Tool, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = erred(c, "panic", "the tool panicked: %v", p)
		}
	}()
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
	output, err := call(tool.WithCall(ctx, a.callInfo(e, c)), json.RawMessage(c.Arguments))
	most := a.rt.shelf.most
	var misfit *tool.ArgumentError
	var full *providers.Error
	var unknown *tool.UnknownError
	switch {
	case errors.As(err, &misfit):
		return erred(c, "bad_arguments", "%v", err)
	case errors.As(err, &full) && full.Kind == providers.NoMemory:
		return erred(c, string(full.Kind), "%v", err)
	case errors.Is(err, errMayNotAct):
		return erred(c, "timeout", "%v", err)
	case err != nil && ctx.Err() == context.DeadlineExceeded:
		return erred(c, "timeout", "the tool did not finish within %v", limit)
	case errors.As(err, &unknown):
		return erred(c, "unknown", "%v", err)
	case err != nil:
		return erred(c, "error", "%v", err)
	case len(output) > most:
		return erred(c, "too_large", "the result has %d bytes: the limit is %d; the call did run", len(output), most)
	}
	return turn.ToolReturned{Call: c.ID, Attempt: c.Attempt, Output: printable(output, most)}
}

// progress shows those who follow the agent how far a call is.
func (a *agent) progress(e turn.Effect, text string) {
	a.tell(func(o Observer) {
		o.Delta(Delta{Agent: a.id, Turn: e.Turn, Call: e.Call, Kind: "progress", Text: printable(text, maxMessage)})
	})
}

func (a *agent) callInfo(e turn.Effect, c projections.CallState) tool.Call {
	return tool.Call{Agent: a.id, Turn: e.Turn, ID: c.ID, Key: c.Key, Attempt: c.Attempt}
}

// reconcile asks a tool what became of a lost call.
func (a *agent) reconcile(ctx context.Context, e turn.Effect, c projections.CallState, def *definition) (result any) {
	unsure := turn.ToolReconciled{Call: c.ID}
	r, ok := def.tools[c.Tool].(tool.Reconciler)
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
		a.rt.logger.Warn("a tool could not tell what became of a call", a.id.LogAttr(a.epoch), "tool", c.Tool, "call", string(c.ID), "error", err)
		return unsure
	}
	outcomes := map[tool.Found]messages.Outcome{tool.Done: messages.OutcomeCompleted, tool.NotDone: messages.OutcomeRetry}
	return turn.ToolReconciled{Call: c.ID, Outcome: outcomes[found], Output: printable(output, a.rt.shelf.most)}
}

// maxMessage is the longest text of an error that is kept, in bytes.
const maxMessage = 16 << 10

// printable makes text that JSON and msgpack can carry, bad bytes shown, and
// cuts it where it is longer than most.
func printable(s string, most int) string {
	if s = valid(s); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " [cut]"
	}
	return s
}

// eventSize is more than an event takes beside the texts it holds.
const eventSize = 512

// resultSize estimates how many bytes an outcome adds to a frame, with the
// events that follow from it.
func resultSize(result any) int {
	switch r := result.(type) {
	case turn.ToolReturned:
		return eventSize + len(r.Output) + decisionsSize(r.Hooks)
	case turn.ToolErred:
		return eventSize + len(r.Message) + decisionsSize(r.Hooks)
	case turn.Summarized:
		return eventSize + len(r.Text)
	case turn.SummaryErred:
		return eventSize + len(r.Message)
	case turn.ToolReconciled:
		return eventSize + len(r.Output)
	case turn.HooksAsked:
		return eventSize + decisionsSize(r.Decisions)
	case hooksDone:
		return eventSize + decisionsSize(r.Decisions)
	case turn.ModelAnswered:
		size := eventSize + len(r.Model) + len(r.Finish) + 2*refsSize(r.Blob)
		for _, item := range r.Items {
			size += itemSize(item)
		}
		for _, j := range r.Judged {
			size += len(j.Misfit) + decisionsSize(j.Hooks)
		}
		return size + decisionsSize(r.Hooks)
	}
	return eventSize
}

// decisionsSize counts what hooks have said, new arguments also where their
// approval is asked and where they run.
func decisionsSize(list []turn.HookDecision) int {
	size := 0
	for _, d := range list {
		size += eventSize + len(d.Reason) + 2*len(d.Text) + 3*len(d.Arguments)
	}
	return size
}

// itemSize counts what stands in the answer and once more in what follows from
// it: the text in the turn's output, a call in its request, start and failure.
func itemSize(item messages.Item) int {
	size := 2*contentSize(item.Content) + 2*len(item.Arguments) + 3*len(item.Name) + 6*len(item.CallID) +
		len(item.Output) + len(item.Raw) + len(item.Type) + len(item.Role) + len(item.ID) + len(item.Provider) +
		refsSize(item.Blob, item.RawBlob)
	if item.Type == messages.ItemCall {
		return size + eventSize
	}
	return size + 64
}

// refsSize is what references to blobs take.
func refsSize(list ...*messages.Blob) (size int) {
	for _, b := range list {
		if b != nil {
			size += refSize
		}
	}
	return size
}

func contentSize(c messages.Content) int {
	size := 0
	for _, p := range c {
		size += len(p.Type) + len(p.Text) + len(p.ImageURL) + len(p.Detail) + 32 + refsSize(p.Blob)
	}
	return size
}
