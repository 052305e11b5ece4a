package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// HistoryAt returns the history of an agent as of an event. Its caller may change it.
type HistoryAt func(messages.EventNumber) (*projections.History, error)

// Requested returns what a model call was sent: the definition as it was stored, the history as it
// was then, blobs as the model was shown them, and what hooks have changed. An item whose blob is
// gone or damaged is returned with the reason, as in the view history. It calls no hook, no tool and no
// model, and needs no definition of the agent's kind here. A call whose definition is not stored is
// refused with messages.NotFound.
func (r *Runtime) Requested(ctx context.Context, a messages.AgentID, call *projections.RequestedCall, history HistoryAt) (*projections.ModelRequest, error) {
	ctx, release := r.memory.With(ctx)
	defer release()
	b := &rebuilding{rt: r, agent: a, call: call, history: history, out: projections.ModelRequest{Agent: a, N: call.N, At: call.At, Hooks: call.Hooks}}
	build := b.model
	if call.Model == nil {
		build = b.summary
	}
	if err := build(ctx); err != nil {
		return nil, refusal(err)
	}
	b.finish()
	return &b.out, nil
}

// refusal returns an error about a blob as a caller is given it; any other as it is.
func refusal(err error) error {
	failed := (*providers.Error)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Kind {
	case messages.ModelFailureBlobMissing:
		return messages.Refuse(messages.NotFound, "%s", failed.Message)
	case messages.ModelFailureBlobDamaged:
		return messages.Refuse(messages.Damaged, "%s", failed.Message)
	}
	return messages.Refuse(messages.Unavailable, "the request cannot be put together now: %s", failed.Message)
}

// rebuilding is a request that is made again.
type rebuilding struct {
	rt      *Runtime
	agent   messages.AgentID
	call    *projections.RequestedCall
	history HistoryAt

	def  stored
	sent sent // the parts of it beside items
	out  projections.ModelRequest
}

// define reads the definition of the call, and begins the request of a model with it.
func (b *rebuilding) define(ctx context.Context, hash, model string) error {
	raw, err := b.rt.store.Definition(ctx, messages.Digest(hash))
	if err != nil && messages.AsError(err).Code == messages.NotFound {
		return messages.Refuse(messages.NotFound, "definition %s, which event %d of agent %s names, is not stored: put it back from a backup; the view history as of that event has the items", hash, b.call.N, b.agent)
	}
	if err == nil {
		err = json.Unmarshal(raw, &b.def)
	}
	if err != nil {
		return fmt.Errorf("definition %s of agent %s: %w", hash, b.agent, err)
	}
	_, name, _ := strings.Cut(model, "/")
	b.sent = sent{Model: name, Settings: b.def.settingsWithout(model, b.def.Refused[model])}
	b.out.Model, b.out.Definition, b.out.Around = model, hash, b.def.Around
	return nil
}

// model makes the request of a turn's model call.
func (b *rebuilding) model(ctx context.Context) error {
	ev := b.call.Model
	o := &b.out
	o.Turn, o.Step, o.Attempt, o.Call, o.Hash = ev.Turn, ev.Step, ev.Attempt, ev.Call, ev.Request
	if err := b.define(ctx, ev.Definition, ev.Model); err != nil {
		return err
	}
	b.sent.Instructions, b.sent.ToolChoice, b.sent.Tools = b.def.Instructions, ev.ToolChoice, []sentTool{}
	for _, t := range b.def.Tools {
		b.sent.Tools = append(b.sent.Tools, sentTool{t.Name, t.Description, t.Parameters})
	}
	w, err := b.rt.rewriteOf(ctx, b.agent, b.call)
	if err != nil {
		return b.asHistory(ctx, "this is the request before hooks have changed it: "+reasonOf(err))
	}
	if w == nil {
		return b.asHistory(ctx, "")
	}
	return b.rewritten(ctx, w)
}

// reasonOf returns an error's text without its kind.
func reasonOf(err error) string {
	if failed := (*providers.Error)(nil); errors.As(err, &failed) {
		return failed.Message
	}
	return err.Error()
}

// asHistory fills in the items of a request that no hook has changed, or of which that is not known,
// with why.
func (b *rebuilding) asHistory(ctx context.Context, why string) error {
	h, err := b.history(b.call.N)
	if err != nil {
		return err
	}
	if b.out.Items, err = b.show(ctx, h.View()); err != nil {
		return err
	}
	ev := b.call.Model
	switch {
	case why != "":
	case string(messages.DigestOf([]byte(b.def.Instructions))) != ev.Instructions:
		why = "the instructions of the definition are not those that were recorded"
	case turn.RequestDigest(h, ev.Definition, ev.Instructions, ev.ToolChoice) == ev.Request:
	case len(b.call.Hooks) > 0:
		why = "a hook has changed the request, and what it changed was not kept"
	default:
		why = "the history, or what it was sent with, is not what was recorded"
	}
	b.differs(why)
	return nil
}

// show returns items as the model was shown them.
func (b *rebuilding) show(ctx context.Context, view []projections.HistoryItem) ([]projections.RequestItem, error) {
	items := make([]messages.Item, len(view))
	list := make([]projections.RequestItem, len(view))
	for i := range view {
		items[i], list[i].HistoryItem = view[i].Item, view[i]
	}
	shown, err := b.rt.blobs.showEach(ctx, b.agent, items, b.def.show(), func(i int, err error) error {
		failed := providers.AsError(err)
		if failed.Kind != messages.ModelFailureBlobMissing && failed.Kind != messages.ModelFailureBlobDamaged {
			return err
		}
		list[i].Missing = failed.Message
		b.differs("a part of it cannot be read: " + failed.Message)
		return nil
	})
	for i := range shown {
		list[i].Item = shown[i]
	}
	return list, err
}

// differs records why the request is not known to be what was sent, unless another reason is known. An
// empty why is none.
func (b *rebuilding) differs(why string) {
	if b.out.Why == "" {
		b.out.Why = why
	}
}

// rewritten fills in what hooks have made of the request.
func (b *rebuilding) rewritten(ctx context.Context, w *rewrite) error {
	h, err := b.history(w.At)
	if err != nil {
		return err
	}
	view := h.View()
	for _, item := range h.ItemsWith(w.Seen)[len(view):] {
		view = append(view, projections.HistoryItem{Item: item, N: b.call.N, Turn: b.call.Model.Turn})
	}
	asked, err := b.show(ctx, view)
	if err != nil {
		return err
	}
	if err := b.apply(w, asked); err != nil {
		return b.asHistory(ctx, "this is the request before hooks have changed it: what they changed cannot be read: "+err.Error())
	}
	s := b.sent
	for i := range b.out.Items {
		s.Items = append(s.Items, b.out.Items[i].Item)
	}
	if hash, err := s.digest(); err == nil && hash == b.out.Hash {
		b.out.Why = "" // what could not be read was left out
	} else {
		b.differs("what hooks have made of the request is not what was recorded")
	}
	return b.showNew(ctx)
}

// apply changes the request as the hooks have, which were shown these items. After an error nothing is
// changed.
func (b *rebuilding) apply(w *rewrite, asked []projections.RequestItem) (err error) {
	s, o := b.sent, b.out
	if s.Instructions, err = w.Instructions.of(s.Instructions); err != nil {
		return err
	}
	was := s.Tools
	s.Tools = []sentTool{}
	err = applyRuns(w.Tools, len(was), func(i int) {
		s.Tools, o.Tools = append(s.Tools, was[i]), append(o.Tools, toolOf(was[i], false))
	}, func(t sentTool) {
		s.Tools, o.Tools = append(s.Tools, t), append(o.Tools, toolOf(t, true))
	})
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	kept := make(map[int]bool)
	o.Items = []projections.RequestItem{}
	err = applyRuns(w.Items, len(asked), func(i int) {
		o.Items, kept[i] = append(o.Items, asked[i]), true
	}, func(it messages.Item) {
		o.Items = append(o.Items, projections.RequestItem{HistoryItem: projections.HistoryItem{Item: it}, ByHook: true})
	})
	if err != nil {
		return fmt.Errorf("items: %w", err)
	}
	if w.Model != nil {
		s.Model, o.SentAs = *w.Model, *w.Model
	}
	if w.ToolChoice != nil {
		s.ToolChoice = *w.ToolChoice
	}
	if w.Settings != nil {
		s.Settings = *w.Settings
	}
	o.LeftOut, o.Changed = len(asked)-len(kept), w.changes()
	b.sent, b.out = s, o
	return nil
}

// changes returns the names of what has changed.
func (w *rewrite) changes() (names []string) {
	for _, c := range []struct {
		name string
		is   bool
	}{
		{"model", w.Model != nil}, {"instructions", w.Instructions != nil}, {"tool_choice", w.ToolChoice != nil},
		{"settings", w.Settings != nil}, {"tools", w.Tools != nil}, {"items", w.Items != nil},
	} {
		if c.is {
			names = append(names, c.name)
		}
	}
	return names
}

func toolOf(t sentTool, byHook bool) projections.ModelTool {
	return projections.ModelTool{Name: t.Name, Description: t.Description, Parameters: t.Parameters, ByHook: byHook}
}

// showNew shows what items of hooks refer to: a hook may have kept a reference of an earlier item.
func (b *rebuilding) showNew(ctx context.Context) error {
	view := make([]projections.HistoryItem, len(b.out.Items))
	for i, item := range b.out.Items {
		view[i] = item.HistoryItem
	}
	shown, err := b.show(ctx, view)
	for i := range shown {
		b.out.Items[i].HistoryItem = shown[i].HistoryItem
	}
	return err
}

// summary makes the request of a call for a summary.
func (b *rebuilding) summary(ctx context.Context) error {
	ev := b.call.Summary
	o := &b.out
	o.Summary, o.Turn, o.Attempt, o.Call, o.Hash = true, ev.Turn, ev.Attempt, ev.Call, ev.Digest
	if err := b.define(ctx, ev.Definition, ev.Model); err != nil {
		return err
	}
	b.sent.Instructions, b.sent.Settings, o.Around = b.def.summaryInstructions(), forSummary(b.sent.Settings), nil
	h, err := b.history(b.call.N)
	if err != nil {
		return err
	}
	items, err := b.rt.blobs.show(ctx, b.agent, texts(h.Before(ev.Upto)), projections.MaxSummarized-leftOut)
	if err != nil {
		return err
	}
	text := messages.Text(messages.RoleUser, transcript(items))
	o.Items = []projections.RequestItem{{HistoryItem: projections.HistoryItem{Item: text, N: b.call.N, Turn: ev.Turn}}}
	b.differs("the recorded hash is that of the part of the history to sum up, which is the same; its form is that of this version")
	if h.DigestBefore(ev.Upto) != messages.Digest(ev.Digest) {
		o.Why = "the part of the history to sum up is not what was recorded"
	}
	return nil
}

// finish fills in what the request has beside its items.
func (b *rebuilding) finish() {
	o := &b.out
	o.Instructions, o.ToolChoice, o.Matches = b.sent.Instructions, b.sent.ToolChoice, o.Why == ""
	o.Settings, _ = json.Marshal(b.sent.Settings) // they came as JSON
	if o.Tools == nil {
		for _, t := range b.sent.Tools {
			o.Tools = append(o.Tools, toolOf(t, false))
		}
	}
}
