package actors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// sideLimit is how long one piece of work beside the mailbox may take: a hook, the reading of a
// first answer, the writing of a snapshot.
const sideLimit = time.Minute

// hooking asks the hooks of one definition about one thing.
type hooking struct {
	rt    *Runtime
	hooks []Hook
	info  HookInfo
	log   *slog.Logger
	// passed are those that have decided here before, as point/name.
	passed []string
}

func (a *agent) hooking() hooking {
	t := a.state.Turn
	info := HookInfo{Agent: a.id, Turn: t.ID, Step: t.Steps, Inputs: slices.Clone(a.state.TurnInputs())}
	return hooking{rt: a.rt, hooks: a.def.hooks, info: info, log: a.log(), passed: t.Hooked}
}

// bound is a hook's function with its arguments.
type bound func(context.Context) (Verdict, error)

// bind returns f with its arguments; nil if f is nil.
func bind[T any](f func(context.Context, HookInfo, T) (Verdict, error), in HookInfo, argument func() T) bound {
	if f == nil {
		return nil
	}
	return func(ctx context.Context) (Verdict, error) { return f(ctx, in, argument()) }
}

// ask asks every hook at a point until one stops the others: by ending the turn, by pausing it,
// by failing. take is given each decision.
func (h hooking) ask(ctx context.Context, point messages.HookPoint, of func(Hook) bound, take func(turn.HookDecision, Verdict)) {
	for _, hook := range h.hooks {
		f := of(hook)
		if f == nil || slices.Contains(h.passed, string(point)+"/"+hook.Name) {
			continue
		}
		v, err := h.call(ctx, hook.Name, f)
		if ctx.Err() != nil {
			return // it is not awaited
		}
		d := turn.HookDecision{Hook: hook.Name, Point: point, Do: v.Do, Reason: printable(v.Reason, maxMessage), Text: printable(v.Text, h.rt.maxResult/4)}
		if err != nil {
			d.Do, d.Reason, d.Text = turn.HookFailed, printable(err.Error(), maxMessage), ""
		}
		take(d, v)
		if stops(d) {
			return
		}
	}
}

// stops reports whether a hook with this decision is the last that is asked. Behind a pause the
// others are asked once the turn comes back, where it does.
func stops(d turn.HookDecision) bool {
	switch d.Do {
	case Skip, Finish, turn.HookFailed:
		return d.Point != messages.PointTurnEnd
	case Pause:
		return d.Point == messages.PointTurnStart || d.Point == messages.PointBeforeModel
	}
	return false
}

var errHookGone = errors.New("it ended its goroutine")

// call runs a hook on a goroutine of its own, so that one that does not return delays no one.
func (h hooking) call(ctx context.Context, name string, f bound) (Verdict, error) {
	type result struct {
		v   Verdict
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, sideLimit)
	defer cancel()
	done := make(chan result, 1)
	h.rt.dispatcher.run(func() {
		r := result{err: errHookGone}
		defer func() { done <- r }()
		v, err := protect(func() *slog.Logger { return h.log.With("hook", name) }, func() (Verdict, error) { return f(ctx) })
		if panicked := (*panicError)(nil); errors.As(err, &panicked) {
			err = fmt.Errorf("it %w", err)
		}
		r = result{v, err}
	})
	select {
	case r := <-done:
		return validVerdict(r.v, r.err)
	case <-ctx.Done():
	}
	select {
	case r := <-done: // in time after all
		return validVerdict(r.v, r.err)
	default:
		return Verdict{}, fmt.Errorf("it did not finish within %v", sideLimit)
	}
}

// validVerdict refuses an action that is none.
func validVerdict(v Verdict, err error) (Verdict, error) {
	v.Do = cmp.Or(v.Do, Continue)
	if slices.Contains([]Action{Continue, Rewrite, Skip, Pause, Finish}, v.Do) {
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
		if d.Do == Rewrite && v.Request != nil && d.Point == messages.PointBeforeModel {
			req = copyRequest(*v.Request)
			o.request = &req
		}
		o.Decisions = append(o.Decisions, d)
		stop = stop || stops(d)
	}
	if atStart {
		h.ask(ctx, messages.PointTurnStart, func(hook Hook) bound {
			if hook.TurnStart == nil {
				return nil
			}
			return func(ctx context.Context) (Verdict, error) { return hook.TurnStart(ctx, h.info) }
		}, note)
	}
	if !stop {
		h.ask(ctx, messages.PointBeforeModel, func(hook Hook) bound {
			return bind(hook.BeforeModel, h.info, func() providers.Request { return copyRequest(req) })
		}, note)
	}
	o.Decisions = h.fit(o.Decisions, 0)
	return o
}

// fit returns the decisions as far as their texts fit into a frame together, beside what else
// takes so many bytes there; a hook whose text does not has failed.
func (h hooking) fit(list []turn.HookDecision, taken int) []turn.HookDecision {
	left := max(h.rt.maxResult-taken, 0)
	for i := range list {
		d := &list[i]
		if left -= len(d.Text) + len(d.Reason) + eventSize; left < 0 {
			*d = turn.HookDecision{Hook: d.Hook, Point: d.Point, Do: turn.HookFailed, Reason: "its text and reason do not fit into the log beside those of others"}
		}
	}
	return list
}

// hooksDone is turn.HooksAsked with the request that the hooks have made; nil if they have made
// none.
type hooksDone struct {
	turn.HooksAsked
	request *providers.Request
	// missing is why the request cannot be made: no hook was asked about it.
	missing error
}

// hooksFailed is the outcome of hooks that cannot be asked.
func hooksFailed(point turn.Point, err error) turn.HooksAsked {
	return turn.HooksAsked{Point: point, Decisions: []turn.HookDecision{
		{Hook: "hooks", Point: point, Do: turn.HookFailed, Reason: printable(err.Error(), maxMessage)},
	}}
}

// turnEnd asks the hooks at the end of a turn; every one is asked.
func (h hooking) turnEnd(ctx context.Context, end HookedEnd) turn.HooksAsked {
	o := turn.HooksAsked{Point: turn.TurnEnd}
	h.ask(ctx, messages.PointTurnEnd, func(hook Hook) bound {
		return bind(hook.TurnEnd, h.info, func() HookedEnd { return end })
	}, func(d turn.HookDecision, _ Verdict) { o.Decisions = append(o.Decisions, d) })
	o.Decisions = h.fit(o.Decisions, 0)
	return o
}

// afterTool asks the hooks about a result, and returns it as they want it.
func (h hooking) afterTool(ctx context.Context, c HookedCall, r HookedResult) (HookedResult, []turn.HookDecision) {
	var list []turn.HookDecision
	h.ask(ctx, messages.PointAfterTool, func(hook Hook) bound {
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
	if taken > h.rt.maxResult/2 {
		taken = 0 // it leaves the frame, if it must
	}
	return r, h.fit(list, taken)
}

// calling is what a hook may wrap: a model's or a tool's call with its argument.
type calling[A, R any] = func(context.Context, A) (R, error)

// layer returns next with the hooks around it, the first outermost. around calls one hook's
// function; of reports whether a hook has it.
func layer[A, R any](hooks []Hook, next calling[A, R], of func(Hook) bool, around func(context.Context, Hook, A, func(context.Context) (R, error)) (R, error)) calling[A, R] {
	for _, hook := range slices.Backward(hooks) {
		if inner := next; of(hook) {
			next = func(ctx context.Context, argument A) (R, error) {
				r, err := protect(nil, func() (R, error) {
					return around(ctx, hook, argument, func(c context.Context) (r R, err error) {
						if err := ctx.Err(); err != nil { // what was stopped is not begun
							return r, err
						}
						return inner(c, argument)
					})
				})
				if panicked := (*panicError)(nil); errors.As(err, &panicked) {
					err = fmt.Errorf("hook %s %v", hook.Name, err)
				}
				return r, err
			}
		}
	}
	return next
}

// aroundModel puts the hooks around a model call.
func (h hooking) aroundModel(next calling[providers.Request, providers.Response]) calling[providers.Request, providers.Response] {
	return layer(h.hooks, next, func(hook Hook) bool { return hook.AroundModel != nil },
		func(ctx context.Context, hook Hook, r providers.Request, next func(context.Context) (providers.Response, error)) (providers.Response, error) {
			return hook.AroundModel(ctx, h.info, copyRequest(r), next)
		})
}

// aroundTool puts the hooks around a tool's call.
func (h hooking) aroundTool(c projections.CallState, next calling[json.RawMessage, string]) calling[json.RawMessage, string] {
	return layer(h.hooks, next, func(hook Hook) bool { return hook.AroundTool != nil },
		func(ctx context.Context, hook Hook, arguments json.RawMessage, next func(context.Context) (string, error)) (string, error) {
			return hook.AroundTool(ctx, h.info, HookedCall{c.ID, c.Tool, arguments}.copy(), next)
		})
}

// notifyEnded calls the hooks for turns in the frame that have failed or were aborted.
func (a *agent) notifyEnded(f *messages.Frame) {
	if !a.def.turn.HooksAt(turn.TurnEnd) {
		return
	}
	for _, t := range projections.EndedBy(f) {
		if t.Phase == projections.Completed { // its hooks were asked before
			continue
		}
		info := HookInfo{Agent: a.id, Turn: t.ID, Step: t.Steps, Inputs: t.Inputs}
		h := hooking{rt: a.rt, hooks: a.def.hooks, log: a.log(), info: info}
		end := HookedEnd{Status: string(t.Phase), Reason: t.Why()}
		a.rt.dispatcher.run(func() { h.turnEnd(context.Background(), end) })
	}
}
