package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// review is what hooks and tools make of an answer before it is recorded.
type review struct {
	hooking
	def      *definition
	used     []messages.CallID
	answered *turn.ModelAnswered
	calls    []HookedCall // those that can run
	ended    bool         // a hook wants none of them to run
	// denials are the sizes of the texts of remembered denials, by tool.
	denials map[string]int
}

// review returns what an answer of the model is to be reviewed with; nil if no hook and no tool
// is to be asked.
func (a *agent) review() *review {
	if !a.def.reviews && !a.def.around() {
		return nil
	}
	r := &review{hooking: a.hooking(), def: a.def, used: a.state.Turn.CallIDs, denials: make(map[string]int)}
	for _, d := range a.state.Decisions.List {
		r.denials[d.Tool] = len(d.Text)
	}
	return r
}

// remembered returns what remembered denials add to the answer's frame, in bytes.
func (r *review) remembered() (size int) {
	for _, c := range r.calls {
		size += 2 * r.denials[c.Tool]
	}
	return size
}

// answer asks the hooks about an answer and its calls, and the tools which of those want
// approval.
func (r *review) answer(ctx context.Context) {
	r.afterModel(ctx)
	r.answered.Items = turn.UniqueCalls(r.answered.Items, r.used)
	if messages.CutOff(r.answered.Finish) { // none of its calls will run
		return
	}
	for _, item := range r.answered.Items {
		if item.Type == messages.ItemCall && r.def.tools[item.Name] != nil && json.Valid([]byte(item.Arguments)) {
			r.calls = append(r.calls, HookedCall{item.CallID, item.Name, json.RawMessage(item.Arguments)})
		}
	}
	for _, d := range r.answered.Hooks {
		if d.Do == Skip {
			r.each(d)
		}
	}
	if len(r.calls) == 0 || r.ended {
		return
	}
	r.beforeTools(ctx)
	for i := range r.calls {
		if !r.ended && ctx.Err() == nil {
			r.beforeTool(ctx, &r.calls[i])
		}
	}
}

func (r *review) afterModel(ctx context.Context) {
	r.ask(ctx, messages.PointAfterModel, func(hook Hook) bound {
		return bind(hook.AfterModel, r.info, func() providers.Response {
			return providers.Response{Items: copyItems(r.answered.Items), Finish: r.answered.Finish, Model: r.answered.Model, Usage: r.answered.Usage}
		})
	}, func(d turn.HookDecision, v Verdict) {
		if d.Do == Rewrite && v.Response != nil {
			if err := validAnswer(v.Response.Items); err != nil {
				d.Do, d.Reason = turn.HookFailed, err.Error()
			} else {
				r.answered.Items = copyItems(v.Response.Items)
			}
		}
		r.ended = r.ended || d.Do == Finish || d.Do == turn.HookFailed
		r.answered.Hooks = append(r.answered.Hooks, d)
	})
}

// each makes a decision about all calls one about each of them.
func (r *review) each(d turn.HookDecision) {
	for _, c := range r.calls {
		r.record(c.ID, d)
	}
	r.ended = true
}

// record adds a hook's decision about a call.
func (r *review) record(id messages.CallID, d turn.HookDecision) {
	r.change(id, func(k *turn.Review) { k.Hooks = append(k.Hooks, d) })
}

func (r *review) change(id messages.CallID, change func(*turn.Review)) {
	if r.answered.Reviewed == nil {
		r.answered.Reviewed = make(map[messages.CallID]turn.Review)
	}
	k := r.answered.Reviewed[id]
	change(&k)
	r.answered.Reviewed[id] = k
}

// beforeTools asks the hooks about all calls together.
func (r *review) beforeTools(ctx context.Context) {
	r.ask(ctx, messages.PointBeforeTools, func(hook Hook) bound {
		return bind(hook.BeforeTools, r.info, func() []HookedCall {
			calls := slices.Clone(r.calls)
			for i := range calls {
				calls[i] = calls[i].copy()
			}
			return calls
		})
	}, func(d turn.HookDecision, v Verdict) {
		switch d.Do {
		case Skip, turn.HookFailed:
			r.each(d)
		case Rewrite:
			for i := range r.calls {
				if arguments, ok := v.Calls[r.calls[i].ID]; ok {
					r.rewrite(&r.calls[i], d, arguments)
				}
			}
		default:
			r.answered.Hooks = append(r.answered.Hooks, d)
			r.ended = r.ended || d.Do == Finish
		}
	})
}

// rewrite replaces a call's arguments.
func (r *review) rewrite(c *HookedCall, d turn.HookDecision, arguments json.RawMessage) {
	switch {
	case !json.Valid(arguments):
		d.Do, d.Reason = turn.HookFailed, "its arguments for the call are not valid JSON"
	case len(arguments) > r.rt.maxResult/4:
		d.Do, d.Reason = turn.HookFailed, fmt.Sprintf("its arguments for the call have %d bytes: the limit is %d", len(arguments), r.rt.maxResult/4)
	default:
		c.Arguments, d.Arguments = slices.Clone(arguments), string(arguments)
	}
	r.record(c.ID, d)
}

// beforeTool asks the hooks about one call, then its tool whether it wants approval for what
// hooks have made of it.
func (r *review) beforeTool(ctx context.Context, c *HookedCall) {
	refused := false
	r.ask(ctx, messages.PointBeforeTool, func(hook Hook) bound {
		return bind(hook.BeforeTool, r.info, c.copy)
	}, func(d turn.HookDecision, v Verdict) {
		if d.Do == Rewrite {
			r.rewrite(c, d, v.Arguments)
			return
		}
		refused = refused || d.Do == Skip || d.Do == turn.HookFailed
		r.ended = r.ended || d.Do == Finish
		r.record(c.ID, d)
	})
	if !refused {
		r.approval(ctx, c)
	}
}

// approval asks the tool whether a call wants approval.
func (r *review) approval(ctx context.Context, c *HookedCall) {
	t := r.def.tools[c.Tool]
	gated, ok := t.(tool.Gated)
	if !ok || !asked(t) {
		return
	}
	need, err := r.askTool(ctx, gated, c)
	var misfit *tool.ArgumentError
	switch {
	case errors.As(err, &misfit):
		r.change(c.ID, func(k *turn.Review) { k.Misfit = printable(err.Error(), maxMessage) })
	case err != nil:
		r.log.Warn("a tool could not report whether a call wants approval; it waits for one", "tool", c.Tool, "call", string(c.ID), "error", err)
	case !need:
		r.change(c.ID, func(k *turn.Review) { k.Free = true })
	}
}

// askTool asks as a hook is asked: within a time, and a panic is an error.
func (r *review) askTool(ctx context.Context, t tool.Gated, c *HookedCall) (need bool, err error) {
	v, err := r.call(ctx, c.Tool, func(context.Context) (Verdict, error) {
		need, err := t.NeedsApproval(c.Arguments)
		if !need {
			return Verdict{Do: Skip}, err
		}
		return Verdict{}, err
	})
	return v.Do != Skip, err
}

// validAnswer returns an error if an answer that hooks made has items that a history cannot
// hold.
func validAnswer(items []messages.Item) error {
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

// copyRequest is a request that hooks may change in place: what it holds else
// belongs to the history.
func copyRequest(r providers.Request) providers.Request {
	r.Items, r.Settings = copyItems(r.Items), r.Settings.Clone()
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
