package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// hookLimit is how long one hook may take.
const hookLimit = time.Minute

// hooking asks the hooks of one definition about one thing.
type hooking struct {
	rt    *Runtime
	hooks []Hook
	info  HookInfo
	epoch messages.Epoch
	// passed are those that have had their say here, as point/name.
	passed []string
}

func (a *agent) hooking() hooking {
	t := a.state.Turn
	info := HookInfo{Agent: a.id, Turn: t.ID, Step: t.Steps, Inputs: slices.Clone(a.state.TurnInputs())}
	return hooking{rt: a.rt, hooks: a.def.hooks, info: info, epoch: a.epoch, passed: t.Hooked}
}

// ask asks every hook at a point until one stops the others: by ending the
// turn, by pausing it, by failing. take is told of each verdict that wants
// something.
func (h hooking) ask(ctx context.Context, point string, one func(Hook) func(context.Context) (Verdict, error), take func(turn.HookDecision, Verdict)) {
	for _, hook := range h.hooks {
		f := one(hook)
		if f == nil || slices.Contains(h.passed, point+"/"+hook.Name) {
			continue
		}
		v, err := h.guard(ctx, hook.Name, f)
		if ctx.Err() != nil {
			return // nobody waits for it
		}
		d := turn.HookDecision{Hook: hook.Name, Point: point, Do: v.Do, Reason: printable(v.Reason, maxMessage), Text: printable(v.Text, h.rt.maxResult()/4)}
		if err != nil {
			d.Do, d.Reason, d.Text = turn.HookFailed, printable(err.Error(), maxMessage), ""
		}
		take(d, v)
		if stops(d) {
			return
		}
	}
}

// stops says that a hook that wants this is the last that is asked. Behind a
// pause the others are asked once the turn comes back, where it does.
func stops(d turn.HookDecision) bool {
	switch d.Do {
	case Skip, Finish, turn.HookFailed:
		return d.Point != atTurnEnd
	case Pause:
		return d.Point == atTurnStart || d.Point == atBeforeModel
	}
	return false
}

var errHookGone = errors.New("it ended its goroutine")

// guard runs a hook beside, so that one that does not end is left to itself.
func (h hooking) guard(ctx context.Context, name string, f func(context.Context) (Verdict, error)) (Verdict, error) {
	type result struct {
		v   Verdict
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
	defer cancel()
	done := make(chan result, 1)
	h.rt.dispatcher.run(func() {
		r := result{err: errHookGone}
		defer func() {
			if p := recover(); p != nil {
				h.rt.logger.Error("a hook panicked", h.info.Agent.LogAttr(h.epoch), "hook", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				r = result{err: fmt.Errorf("it panicked: %v", p)}
			}
			done <- r
		}()
		v, err := f(ctx)
		r = result{v, err}
	})
	select {
	case r := <-done:
		return known(r.v, r.err)
	case <-ctx.Done():
		select {
		case r := <-done: // in time after all
			return known(r.v, r.err)
		default:
		}
		return Verdict{}, fmt.Errorf("it did not finish within %v", hookLimit)
	}
}

// known refuses an action that is none.
func known(v Verdict, err error) (Verdict, error) {
	switch v.Do {
	case "":
		v.Do = Continue
		return v, err
	case Continue, Rewrite, Skip, Pause, Finish:
		return v, err
	}
	return Verdict{}, errors.Join(err, fmt.Errorf("it wants %q, which is no action", v.Do))
}

// beforeModel asks the hooks before a model call, at the turn's start those of
// the start first.
func (h hooking) beforeModel(ctx context.Context, req providers.Request, atStart bool) (o hooksDone) {
	o.Point = turn.BeforeModel
	stop := false
	note := func(d turn.HookDecision, v Verdict) {
		if d.Do == Rewrite && v.Request != nil && d.Point == atBeforeModel {
			req = copyRequest(*v.Request)
			o.request = &req
		}
		o.Decisions = append(o.Decisions, d)
		stop = stop || stops(d)
	}
	if atStart {
		h.ask(ctx, atTurnStart, func(hook Hook) func(context.Context) (Verdict, error) {
			return bind1(hook.TurnStart, h.info)
		}, note)
	}
	if !stop {
		h.ask(ctx, atBeforeModel, func(hook Hook) func(context.Context) (Verdict, error) {
			if hook.BeforeModel == nil {
				return nil
			}
			return func(ctx context.Context) (Verdict, error) { return hook.BeforeModel(ctx, h.info, copyRequest(req)) }
		}, note)
	}
	o.Decisions = h.fit(o.Decisions, 0)
	if o.request != nil {
		o.Request = digestRequest(*o.request)
	}
	return o
}

// fit is the decisions as far as their texts fit into a frame together, beside
// what else takes so many bytes there; a hook whose text does not has failed.
func (h hooking) fit(list []turn.HookDecision, taken int) []turn.HookDecision {
	room := max(h.rt.maxResult()-taken, 0)
	for i := range list {
		d := &list[i]
		if room -= len(d.Text) + len(d.Reason) + eventSize; room < 0 {
			*d = turn.HookDecision{Hook: d.Hook, Point: d.Point, Do: turn.HookFailed, Reason: "what it says does not fit into the log with what others say"}
		}
	}
	return list
}

func bind1(f func(context.Context, HookInfo) (Verdict, error), in HookInfo) func(context.Context) (Verdict, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context) (Verdict, error) { return f(ctx, in) }
}

// hooksDone is turn.HooksAsked with the request that the hooks have made; nil
// if they have made none.
type hooksDone struct {
	turn.HooksAsked
	request *providers.Request
	// missing is why the request cannot be made: nobody was asked about it.
	missing error
}

// digestRequest is a hash of everything that a rewritten request sends.
func digestRequest(r providers.Request) string {
	r.Agent, r.Call = messages.AgentID{}, ""
	b, err := json.Marshal(r)
	if err != nil {
		b = fmt.Append(nil, r)
	}
	return string(messages.DigestOf(b))
}

// unread is what comes of hooks that cannot be asked, because what they would be
// shown cannot be read.
func (h hooking) unread(point turn.Point, err error) turn.HooksAsked {
	return turn.HooksAsked{Point: point, Decisions: []turn.HookDecision{
		{Hook: "hooks", Point: string(point), Do: turn.HookFailed, Reason: printable(err.Error(), maxMessage)},
	}}
}

// turnEnd asks the hooks at the end of a turn; every one is asked.
func (h hooking) turnEnd(ctx context.Context, end HookedEnd) turn.HooksAsked {
	o := turn.HooksAsked{Point: turn.TurnEnd}
	h.ask(ctx, atTurnEnd, func(hook Hook) func(context.Context) (Verdict, error) {
		if hook.TurnEnd == nil {
			return nil
		}
		return func(ctx context.Context) (Verdict, error) { return hook.TurnEnd(ctx, h.info, end) }
	}, func(d turn.HookDecision, _ Verdict) { o.Decisions = append(o.Decisions, d) })
	o.Decisions = h.fit(o.Decisions, 0)
	return o
}

// judging is what is made of an answer before it is recorded.
type judging struct {
	hooking
	def      *definition
	used     []messages.CallID
	answered *turn.ModelAnswered
	calls    []HookedCall // those that can run
	ended    bool         // a hook wants none of them to run
	// denials are the texts of remembered denials, by tool.
	denials map[string]int
}

// remembered counts what remembered denials add to the answer's frame.
func (j *judging) remembered() (size int) {
	for _, c := range j.calls {
		size += 2 * j.denials[c.Tool]
	}
	return size
}

// answer asks the hooks about an answer and its calls, and the tools which of
// those want approval.
func (j *judging) answer(ctx context.Context) {
	j.afterModel(ctx)
	j.answered.Items = turn.UniqueCalls(j.answered.Items, j.used)
	if messages.CutOff(j.answered.Finish) { // none of its calls will run
		return
	}
	for _, item := range j.answered.Items {
		if item.Type == messages.ItemCall && j.def.tools[item.Name] != nil && json.Valid([]byte(item.Arguments)) {
			j.calls = append(j.calls, HookedCall{item.CallID, item.Name, json.RawMessage(item.Arguments)})
		}
	}
	for _, d := range j.answered.Hooks {
		if d.Do == Skip {
			j.each(d)
		}
	}
	if len(j.calls) == 0 || j.ended {
		return
	}
	j.beforeTools(ctx)
	for i := range j.calls {
		if !j.ended && ctx.Err() == nil {
			j.beforeTool(ctx, &j.calls[i])
		}
	}
}

func (j *judging) afterModel(ctx context.Context) {
	j.ask(ctx, atAfterModel, func(hook Hook) func(context.Context) (Verdict, error) {
		if hook.AfterModel == nil {
			return nil
		}
		resp := providers.Response{Items: copyItems(j.answered.Items), Finish: j.answered.Finish, Model: j.answered.Model, Usage: j.answered.Usage}
		return func(ctx context.Context) (Verdict, error) { return hook.AfterModel(ctx, j.info, resp) }
	}, func(d turn.HookDecision, v Verdict) {
		if d.Do == Rewrite && v.Response != nil {
			if err := sound(v.Response.Items); err != nil {
				d.Do, d.Reason = turn.HookFailed, err.Error()
			} else {
				j.answered.Items = copyItems(v.Response.Items)
			}
		}
		j.ended = j.ended || d.Do == Finish || d.Do == turn.HookFailed
		j.answered.Hooks = append(j.answered.Hooks, d)
	})
}

// each makes a decision about all calls one about each of them.
func (j *judging) each(d turn.HookDecision) {
	for _, c := range j.calls {
		j.judge(c.ID, func(k *turn.Judgement) { k.Hooks = append(k.Hooks, d) })
	}
	j.ended = true
}

func (j *judging) judge(id messages.CallID, change func(*turn.Judgement)) {
	if j.answered.Judged == nil {
		j.answered.Judged = make(map[messages.CallID]turn.Judgement)
	}
	k := j.answered.Judged[id]
	change(&k)
	j.answered.Judged[id] = k
}

func (j *judging) beforeTools(ctx context.Context) {
	j.ask(ctx, atBeforeTools, func(hook Hook) func(context.Context) (Verdict, error) {
		if hook.BeforeTools == nil {
			return nil
		}
		return func(ctx context.Context) (Verdict, error) {
			calls := slices.Clone(j.calls)
			for i := range calls {
				calls[i] = calls[i].copy()
			}
			return hook.BeforeTools(ctx, j.info, calls)
		}
	}, func(d turn.HookDecision, v Verdict) {
		switch d.Do {
		case Skip, turn.HookFailed:
			j.each(d)
		case Rewrite:
			for i := range j.calls {
				if arguments, ok := v.Calls[j.calls[i].ID]; ok {
					j.rewrite(&j.calls[i], d, arguments)
				}
			}
		default:
			j.answered.Hooks = append(j.answered.Hooks, d)
			j.ended = j.ended || d.Do == Finish
		}
	})
}

// rewrite gives a call other arguments.
func (j *judging) rewrite(c *HookedCall, d turn.HookDecision, arguments json.RawMessage) {
	switch {
	case !json.Valid(arguments):
		d.Do, d.Reason = turn.HookFailed, "its arguments for the call are not valid JSON"
	case len(arguments) > j.rt.maxResult()/4:
		d.Do, d.Reason = turn.HookFailed, fmt.Sprintf("its arguments for the call have %d bytes: the limit is %d", len(arguments), j.rt.maxResult()/4)
	default:
		c.Arguments, d.Arguments = slices.Clone(arguments), string(arguments)
	}
	j.judge(c.ID, func(k *turn.Judgement) { k.Hooks = append(k.Hooks, d) })
}

// beforeTool asks the hooks about one call, then its tool whether it wants
// approval for what has become of it.
func (j *judging) beforeTool(ctx context.Context, c *HookedCall) {
	settled := false
	j.ask(ctx, atBeforeTool, func(hook Hook) func(context.Context) (Verdict, error) {
		if hook.BeforeTool == nil {
			return nil
		}
		return func(ctx context.Context) (Verdict, error) { return hook.BeforeTool(ctx, j.info, c.copy()) }
	}, func(d turn.HookDecision, v Verdict) {
		if d.Do == Rewrite {
			j.rewrite(c, d, v.Arguments)
			return
		}
		settled = settled || d.Do == Skip || d.Do == turn.HookFailed
		j.ended = j.ended || d.Do == Finish
		j.judge(c.ID, func(k *turn.Judgement) { k.Hooks = append(k.Hooks, d) })
	})
	if !settled {
		j.approval(ctx, c)
	}
}

// approval asks a gated tool about a call.
func (j *judging) approval(ctx context.Context, c *HookedCall) {
	t := j.def.tools[c.Tool]
	gated, ok := t.(tool.Gated)
	_, child := t.(*AgentTool) // whose arguments nobody else looks at
	if !ok || t.Spec().Approval == tool.Never && !t.Spec().ApproveRepeats && !child {
		return
	}
	need, err := j.askTool(ctx, gated, c)
	var misfit *tool.ArgumentError
	switch {
	case errors.As(err, &misfit):
		j.judge(c.ID, func(k *turn.Judgement) { k.Misfit = printable(err.Error(), maxMessage) })
	case err != nil:
		j.rt.logger.Warn("a tool cannot tell whether a call wants approval; it waits for one", j.info.Agent.LogAttr(j.epoch), "tool", c.Tool, "call", string(c.ID), "error", err)
	case !need:
		j.judge(c.ID, func(k *turn.Judgement) { k.Free = true })
	}
}

// askTool asks as a hook is asked: within a time, and a panic is an error.
func (j *judging) askTool(ctx context.Context, t tool.Gated, c *HookedCall) (need bool, err error) {
	v, err := j.guard(ctx, c.Tool, func(context.Context) (Verdict, error) {
		need, err := t.NeedsApproval(c.Arguments)
		if !need {
			return Verdict{Do: Skip}, err
		}
		return Verdict{}, err
	})
	return v.Do != Skip, err
}

// copyRequest is a request that hooks may change in place: what it holds else
// belongs to the history.
func copyRequest(r providers.Request) providers.Request {
	r.Items = copyItems(r.Items)
	r.Tools = slices.Clone(r.Tools)
	for i := range r.Tools {
		r.Tools[i].Parameters = slices.Clone(r.Tools[i].Parameters)
	}
	return r
}

func (c HookedCall) copy() HookedCall {
	c.Arguments = slices.Clone(c.Arguments)
	return c
}

func copyItems(items []messages.Item) []messages.Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].Content = slices.Clone(items[i].Content)
		items[i].Raw = slices.Clone(items[i].Raw)
	}
	return items
}

// afterTool asks the hooks about a result, and gives it back as they want it.
func (h hooking) afterTool(ctx context.Context, c HookedCall, r HookedResult) (HookedResult, []turn.HookDecision) {
	var list []turn.HookDecision
	h.ask(ctx, atAfterTool, func(hook Hook) func(context.Context) (Verdict, error) {
		if hook.AfterTool == nil {
			return nil
		}
		return func(ctx context.Context) (Verdict, error) { return hook.AfterTool(ctx, h.info, c.copy(), r) }
	}, func(d turn.HookDecision, _ Verdict) {
		if d.Do == Rewrite {
			r.Output, d.Text = d.Text, ""
		}
		list = append(list, d)
	})
	taken := 2 * len(r.Output)
	if taken > h.rt.maxResult()/2 {
		taken = 0 // it leaves the frame, if it must
	}
	return r, h.fit(list, taken)
}

// aroundModel puts the hooks around a model call, the first outermost.
func (h hooking) aroundModel(next func(context.Context, providers.Request) (providers.Response, error)) func(context.Context, providers.Request) (providers.Response, error) {
	for _, hook := range slices.Backward(h.hooks) {
		if inner := next; hook.AroundModel != nil {
			next = func(ctx context.Context, r providers.Request) (providers.Response, error) {
				return around(hook.Name, func() (providers.Response, error) {
					return hook.AroundModel(ctx, h.info, copyRequest(r), func(c context.Context) (providers.Response, error) {
						if ctx.Err() != nil { // what was stopped is not begun
							return providers.Response{}, ctx.Err()
						}
						return inner(c, r)
					})
				})
			}
		}
	}
	return next
}

// aroundTool puts the hooks around a tool's call, the first outermost.
func (h hooking) aroundTool(c projections.CallState, next func(context.Context, json.RawMessage) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	for _, hook := range slices.Backward(h.hooks) {
		if inner := next; hook.AroundTool != nil {
			next = func(ctx context.Context, arguments json.RawMessage) (string, error) {
				call := HookedCall{c.ID, c.Tool, arguments}.copy()
				return around(hook.Name, func() (string, error) {
					return hook.AroundTool(ctx, h.info, call, func(c context.Context) (string, error) {
						if ctx.Err() != nil { // what was stopped is not begun
							return "", ctx.Err()
						}
						return inner(c, arguments)
					})
				})
			}
		}
	}
	return next
}

// around calls a hook; its panic is an error that names it.
func around[R any](name string, f func() (R, error)) (r R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("hook %s panicked: %v", name, p)
		}
	}()
	return f()
}

// sound says what of an answer that hooks have made cannot stand in a history.
func sound(items []messages.Item) error {
	for i, item := range items {
		switch item.Type {
		case messages.ItemMessage, messages.ItemReasoning, messages.ItemRefusal, messages.ItemCall:
			continue
		}
		if item.Type == messages.ItemCallOutput || item.Raw == nil {
			return fmt.Errorf("item %d of its answer has type %q: an answer holds messages, reasoning, refusals and calls", i, item.Type)
		}
	}
	return nil
}

// tellEnded tells the hooks of turns in the frame that have failed or were aborted.
func (a *agent) tellEnded(f *messages.Frame) {
	if !a.def.turn.HooksAt(turn.TurnEnd) {
		return
	}
	for _, ev := range f.Events {
		h := hooking{rt: a.rt, hooks: a.def.hooks, epoch: a.epoch}
		var end HookedEnd
		switch ev := ev.(type) {
		case messages.TurnFailed:
			h.info = HookInfo{Agent: a.id, Turn: ev.Turn, Step: ev.Steps, Inputs: ev.Inputs}
			end = HookedEnd{Status: "failed", Reason: ev.Why()}
		case messages.TurnAborted:
			h.info = HookInfo{Agent: a.id, Turn: ev.Turn, Step: ev.Steps, Inputs: ev.Inputs}
			end = HookedEnd{Status: "aborted", Reason: ev.Reason}
		default:
			continue
		}
		a.rt.dispatcher.run(func() { h.turnEnd(context.Background(), end) })
	}
}
