package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// eventsPerTurn is how many events an ordinary turn has.
const eventsPerTurn = 10

// history writes turns of an agent without running them: the turn machine
// decides, and what it decides is appended as the runtime would.
type history struct {
	log    eventlog.Log
	agent  messages.AgentID
	def    turn.Definition
	epoch  messages.Epoch
	state  turn.State
	tail   eventlog.Position
	more   int // messages that each answer has beside its usual one
	frames int // that a replay has found
}

// definitionOf is what the machine knows of the node's agents, as the agent's
// own log tells it.
func definitionOf(ctx context.Context, log eventlog.Log, a messages.AgentID) (turn.Definition, error) {
	def := turn.Definition{
		Model: modelName, Instructions: string(messages.DigestOf([]byte(instructions))),
		MaxSteps: actors.DefaultMaxSteps, MaxQueue: actors.DefaultMaxQueue, MaxAttempts: actors.DefaultMaxAttempts,
		Parallel: actors.DefaultParallel, Tools: map[string]turn.Tool{toolName: {OnUnknown: echo.Spec().OnUnknown}},
	}
	var life projections.Life
	for rec, err := range log.Read(ctx, a, eventlog.Range{}) {
		if err != nil {
			return def, err
		}
		projections.Fold(rec.Frame, 0, &life)
	}
	def.Digest = life.Definition
	if def.Digest == "" {
		return def, fmt.Errorf("the log of %s tells of no definition", a)
	}
	return def, nil
}

// itemsPerTurn is how many items an ordinary turn adds to the history.
const itemsPerTurn = 4

// longest is how many turns a history shows at most.
var longest = 250 // fewer in tests

// turns appends n ordinary turns, after which the history shows 1,000 items,
// however many turns there are. Where they are more than the longest history has,
// the agent is cleared now and then, so that the last ones fill it; where they are
// fewer, their answers have more messages.
func (h *history) turns(ctx context.Context, n int) error {
	h.more = itemsPerTurn * (max(n, longest) - n) / n
	for i := range n {
		if i > 0 && (n-i)%longest == 0 {
			c := messages.Clear{ID: "clear-" + strconv.Itoa(i)}
			if err := h.append(ctx, messages.Cause{Type: c.CommandType(), ID: c.ID, Endpoint: messages.EndpointCtl}, c); err != nil {
				return err
			}
		}
		in := messages.Input{ID: "history-" + strconv.Itoa(i), Content: messages.TextContent(userInput)}
		if err := h.append(ctx, messages.Cause{Type: "input", ID: in.ID, Endpoint: messages.EndpointPrompt}, in); err != nil {
			return err
		}
		for len(h.state.Effects()) > 0 {
			e := h.state.Effects()[0]
			result, err := h.outcome(ctx, e)
			if err != nil {
				return err
			}
			if err := h.append(ctx, messages.Cause{Type: messages.CauseEffect, ID: string(e.Call)}, result); err != nil {
				return err
			}
		}
	}
	return nil
}

// commands appends n commands that change nothing; each has an id of its own.
func (h *history) commands(ctx context.Context, n int) error {
	for i := range n {
		c := messages.Interrupt{ID: "command-" + strconv.Itoa(i)}
		if err := h.append(ctx, messages.Cause{Type: c.CommandType(), ID: c.ID, Endpoint: messages.EndpointCtl}, c); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what the model or the tool would have said.
func (h *history) outcome(ctx context.Context, e turn.Effect) (any, error) {
	switch e.Do {
	case turn.RunTool:
		return turn.ToolReturned{Call: e.Call, Attempt: e.Attempt, Output: "hi"}, nil
	case turn.CallModel:
		req := providers.Request{Model: "two", Agent: h.agent, Call: e.Call}
		if h.state.Turn.Steps > 1 {
			req.Items = []messages.Item{{Type: messages.ItemCallOutput}}
		}
		resp, err := twoStep.Generate(ctx, req, nil)
		for range h.more {
			if h.state.Turn.Steps > 1 {
				resp.Items = append(resp.Items[:len(resp.Items):len(resp.Items)], messages.Text(messages.RoleAssistant, userInput))
			}
		}
		return turn.ModelAnswered{Call: e.Call, Items: resp.Items, Finish: resp.Finish, Model: resp.Model, Usage: resp.Usage}, err
	}
	return nil, fmt.Errorf("an ordinary turn wants effect %d", e.Do)
}

// append decides what follows from a command or an outcome and stores it.
func (h *history) append(ctx context.Context, cause messages.Cause, cmd any) error {
	now := time.Now().UTC()
	events, err := h.state.Decide(turn.Env{Agent: h.agent, Definition: h.def, Now: now}, cmd)
	if err != nil {
		return err
	}
	f := &messages.Frame{
		ID: messages.FrameID(ulid.Make().String()), Epoch: h.epoch, First: h.tail.Last + 1,
		Prev: h.tail.Frame, PrevDigest: h.tail.Digest, Time: now, Cause: cause, Events: events,
	}
	h.state.Record(f)
	b, err := messages.EncodeFrame(h.agent, f)
	if err != nil {
		return err
	}
	h.tail, err = eventlog.Commit(ctx, h.log, eventlog.Entry{Agent: h.agent, Expect: h.tail, Frame: f, Bytes: b, Summary: actors.Summarize(&h.state)})
	return err
}
