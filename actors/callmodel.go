package actors

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// modelSilence is how long a model may send nothing before its call is given up and, as after a
// broken connection, tried again. Models that think without output take minutes.
const modelSilence = 10 * time.Minute

var errSilent = &providers.Error{Kind: providers.Network, Message: fmt.Sprintf("the model said nothing for %v", modelSilence), Temporary: true}

// errLost is why a model's call failed whose provider panicked or ended its goroutine.
var errLost = &providers.Error{Kind: providers.BadAnswer, Message: "the provider panicked or ended its goroutine"}

// modelCall is one call of a model. Its flags report whether the answer has begun, if only with
// pieces of a call, and whether any of it was shown.
//
// An agent that waits for its model is a goroutine with the stack of the call: the request is
// reached by pointer from here to the provider, and no function that waits has large values.
type modelCall struct {
	a            *agent
	effect       turn.Effect
	provider     providers.Provider
	request      providers.Request
	begun, shown atomic.Bool
	// failed returns the outcome of a call that failed.
	failed func(*providers.Error) any
	// shows is given the pieces of the answer. Nil: they are not shown.
	shows func(providers.Delta)
	// review is what the answer is reviewed with. Nil: it is not.
	review *review
	// silence ends the call.
	silence *time.Timer
}

// lost returns the outcome of a call that did not return.
func (c *modelCall) lost() any { return c.failed(errLost) }

// generate calls the model. A call that is silent for too long is cancelled, and if it does not
// notice, its failure is reported without it.
func (c *modelCall) generate(ctx context.Context) (*providers.Response, *providers.Error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.silence = time.AfterFunc(modelSilence, func() {
		cancel(errSilent)
		time.AfterFunc(grace, func() { c.a.report(c.effect, c.failed(errSilent)) }) // too late if it has ended
	})
	defer c.silence.Stop()
	resp, err := c.call(ctx)
	switch {
	case context.Cause(ctx) == error(errSilent): // what came too late is dropped
		return nil, errSilent
	case err != nil:
		return nil, providers.AsError(err)
	}
	return resp, nil
}

// call calls the model, with the hooks around it if there are any.
func (c *modelCall) call(ctx context.Context) (*providers.Response, error) {
	if c.review != nil && c.review.def.around() {
		return c.hooked(ctx)
	}
	return c.provide(ctx, ctx, &c.request)
}

// hooked calls the model with the hooks around it.
func (c *modelCall) hooked(ctx context.Context) (*providers.Response, error) {
	call := c.review.aroundModel(func(within context.Context, r providers.Request) (providers.Response, error) {
		resp, err := c.provide(ctx, within, &r)
		return *resp, err
	})
	resp, err := call(ctx, c.request)
	return &resp, err
}

// provide calls the provider within a context that hooks may have given the call; ctx is the
// call's own. The response is not nil.
func (c *modelCall) provide(ctx, within context.Context, r *providers.Request) (resp *providers.Response, err error) {
	resp = new(providers.Response)
	if err = c.a.mayAct(ctx); err == nil {
		*resp, err = c.provider.Generate(within, *r, c.emit)
	}
	return resp, err
}

// emit takes a piece of the answer.
func (c *modelCall) emit(d providers.Delta) {
	c.silence.Reset(modelSilence)
	c.begun.Store(true)
	if d.Text != "" && c.shows != nil {
		c.shown.Store(true)
		c.shows(d)
	}
}

// beginModel calls the model that the state names, with the request that hooks have made, if
// they have.
func (a *agent) beginModel(e turn.Effect) func() {
	asked := a.state.Turn.Model
	m := a.def.models[asked.Model]
	c := &modelCall{a: a, effect: e, provider: m.provider, request: a.request(e, m, nil, asked.ToolChoice), review: a.review()}
	if a.def.around() {
		c.request = copyRequest(c.request)
	}
	if a.rewritten != nil {
		c.request = *a.rewritten
		c.request.Agent, c.request.Call = a.id, e.Call
	}
	missing, asIs := a.missing, a.rewritten == nil && !a.state.History.HasBlobs()
	a.rewritten, a.missing = nil, nil
	above := subscribers(a.state.Turn.Callers)
	c.failed = func(err *providers.Error) any { return c.erred(err) }
	c.shows = func(d providers.Delta) {
		a.observe(func(o Observer) {
			o.Delta(Delta{Agent: a.id, Turn: e.Turn, Call: e.Call, Kind: string(d.Kind), Text: d.Text, Above: above})
		})
	}
	wait, most := a.pace(), a.def.show()
	return a.run(e, c.lost, func(ctx context.Context) any {
		if wait(ctx) != nil {
			return nil // its outcome is not awaited
		}
		if missing == nil && !asIs {
			c.request.Items, missing = a.rt.blobs.show(ctx, a.id, c.request.Items, most)
		}
		if missing != nil { // it could not be made
			return c.unmade(missing)
		}
		resp, failure := c.generate(ctx)
		if failure != nil {
			return c.failed(failure)
		}
		return c.answered(ctx, resp)
	})
}

// unmade returns the outcome of a call whose request could not be made.
func (c *modelCall) unmade(err error) any {
	failed := c.erred(providers.AsError(err))
	failed.Ours = true
	return failed
}

// answered returns what came of an answer, and what hooks and tools make of that.
func (c *modelCall) answered(ctx context.Context, resp *providers.Response) any {
	r := c.review
	if r != nil && r.def.around() {
		if err := validAnswer(resp.Items); err != nil {
			return c.failed(providers.AsError(err))
		}
	}
	answered := turn.ModelAnswered{Call: c.effect.Call, Items: resp.Items, Finish: resp.Finish, Model: resp.Model, Usage: resp.Usage.Clamped()}
	more := 0
	if r != nil {
		r.answered = &answered
		r.answer(ctx)
		more = r.remembered()
	}
	err := c.a.offloadAnswer(ctx, &answered, more)
	if size, limit := resultSize(answered)+more, c.a.rt.maxResult; err == nil && size > limit {
		err = fmt.Errorf("the answer would take %d bytes in the log: the limit is %d", size, limit)
	}
	if err != nil {
		return turn.ModelErred{Call: c.effect.Call, Kind: messages.ModelFailureTooLarge, Usage: resp.Usage.Clamped(), Unknown: true, Shown: c.shown.Load(), Message: err.Error()}
	}
	return answered
}

func (c *modelCall) erred(err *providers.Error) turn.ModelErred {
	return turn.ModelErred{
		Call: c.effect.Call, Kind: messages.ModelFailure(printable(string(err.Kind), maxKind)), Message: printable(err.Message, maxMessage), Status: err.Status, Temporary: err.Temporary,
		RetryAfter: err.RetryAfter, Unknown: c.begun.Load(), Shown: c.shown.Load(), Usage: err.Usage.Clamped(), Ours: err.Kind == providers.NoMemory,
	}
}

// pace returns what waits until a model may be called: the first call of a turn that is
// recovered is delayed, so that agents that were taken over together do not call the provider
// all at once.
func (a *agent) pace() func(context.Context) error {
	if !a.recovered {
		return func(context.Context) error { return nil }
	}
	a.recovered = false
	return a.rt.pace.Wait
}

// request returns what a model is sent; inputs are those that it would be the first to see
// beside the history.
func (a *agent) request(e turn.Effect, m model, inputs []string, choice string) providers.Request {
	return providers.Request{
		Model: m.name, Instructions: a.def.Instructions, Items: a.state.History.ItemsWith(inputs),
		Tools: a.def.specs, ToolChoice: choice, Agent: a.id, Call: e.Call, Settings: m.settings,
	}
}

// beginHooks asks the hooks at a point of the turn.
func (a *agent) beginHooks(e turn.Effect) func() {
	h := a.hooking()
	if e.Point == turn.TurnEnd {
		output, _ := a.state.Output(a.def.turn)
		return a.run(e, func() any { return turn.HooksAsked{Point: turn.TurnEnd} }, func(ctx context.Context) any {
			if b := output.Blob; b != nil {
				var err error
				if output.Text, err = a.rt.blobs.text(ctx, a.id, *b, math.MaxInt); err != nil {
					return hooksFailed(turn.TurnEnd, err)
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
	if a.state.Turn.Model == nil {
		h.info.Step++
	}
	a.rewritten, a.missing = nil, nil
	atStart, most, at := !a.state.Turn.Asked(), a.def.show(), a.state.Last
	lost := func() any { return hooksDone{HooksAsked: hooksFailed(e.Point, errHookGone)} }
	return a.run(e, lost, func(ctx context.Context) any {
		items, err := a.rt.blobs.show(ctx, a.id, req.Items, most)
		if err != nil { // the call cannot be made: that is its own failure, and no hook's
			return hooksDone{HooksAsked: turn.HooksAsked{Point: e.Point, Seen: seen}, missing: err}
		}
		req.Items = items
		done := h.beforeModel(ctx, req, atStart)
		done.Seen = seen
		a.keepRewrite(ctx, &done, req, at)
		return done
	})
}

// subscribers returns the callers of a chain that receive the deltas of the agent at its end, the
// nearest last: those below the last detached call.
func subscribers(chain []messages.Caller) []messages.Caller {
	for i := len(chain) - 1; i >= 0; i-- {
		if chain[i].Detached {
			return chain[i+1:]
		}
	}
	return chain
}
