package main

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// eventsEach is how many events an agent of framesOf has.
	eventsEach = 9
	// longTurns is how many turns the agent with a long log has at most: 100,000 events.
	longTurns = 12_500
	// fillers is how many agents' frames are appended at the same time.
	fillers = 64
)

// kinds are those of the agents of framesOf.
var kinds = []string{"support", "billing", "sales", "ops"}

// fill appends the frames of many agents, and those of one with a long log, whose last call it returns.
func (w *work) fill(l *bench.Lab, ctx context.Context, s *bench.Store) (long messages.EventNumber, err error) {
	agents := w.storedAgents()
	turns := min(longTurns, agents)
	l.Say("find: append %d events", agents*eventsEach+turns*eventsOfTurn)
	log, err := natslog.Open(ctx, natslog.Config{Conns: s.Conns, Logger: s.Logger})
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	err = bench.Deal(ctx, fillers, 1+agents, func(ctx context.Context, _, i int) error {
		if i == 0 {
			frames := longFrames(turns, now)
			long = frames[len(frames)-1].First - 2
			return appendAll(ctx, log, longAgent, frames)
		}
		a, frames := framesOf(i-1, now)
		return appendAll(ctx, log, a, frames)
	})
	return long, err
}

// appendAll appends frames as those of an agent that has none.
func appendAll(ctx context.Context, log eventlog.Log, a messages.AgentID, frames []*messages.Frame) error {
	var at eventlog.Position
	for i, frame := range frames {
		f := *frame
		f.ID, f.Prev, f.PrevDigest = messages.FrameID(fmt.Sprintf("%026d", i+1)), at.Frame, at.Digest
		b, err := messages.EncodeFrame(a, &f)
		if err != nil {
			return err
		}
		if at, err = eventlog.Commit(ctx, log, eventlog.Entry{Agent: a, Expect: at, Frame: &f, Bytes: b, Summary: eventlog.Summary{Phase: messages.PhaseIdle}}); err != nil {
			return err
		}
	}
	return nil
}

// longAgent has a long log.
var longAgent = messages.AgentID{Tenant: messages.DefaultTenant, Kind: "support", Key: "long"}

// eventsOfTurn is how many events a turn of longFrames has.
const eventsOfTurn = 8

// longFrames are turns of an agent with one call each. Each call is equal to one of a hundred turns before.
func longFrames(turns int, at time.Time) (frames []*messages.Frame) {
	for i := range turns {
		n := messages.EventNumber(i * eventsOfTurn)
		turn, input, model := messages.TurnID(fmt.Sprint("t", n+2)), fmt.Sprint("u", i), messages.CallID(fmt.Sprint("m", i))
		call, arguments := messages.CallID(fmt.Sprint("long_", i)), fmt.Sprintf(`{"order":%d}`, i%100)
		at = at.Add(time.Millisecond)
		frames = append(frames, &messages.Frame{Epoch: 1, First: n + 1, Time: at, Events: []messages.Event{
			messages.InputAccepted{Input: input, Disposition: messages.Started, Turn: turn, Content: messages.TextContent(fmt.Sprint("order ", i, " came late"))},
			messages.TurnStarted{Turn: turn, Inputs: []string{input}, MaxSteps: 20},
			messages.ModelRequested{Turn: turn, Step: 1, Attempt: 1, Call: model, Model: bench.ModelName, Inputs: []string{input}},
			messages.ModelCompleted{Turn: turn, Step: 1, Call: model, Items: []messages.Item{{Type: messages.ItemCall, CallID: call, Name: "refund", Arguments: arguments}}},
			messages.ToolRequested{Turn: turn, Step: 1, Call: call, Tool: "refund", Arguments: arguments},
			messages.ToolStarted{Turn: turn, Call: call, Tool: "refund", OnUnknown: messages.Pause, Key: string(call), Attempt: 1},
		}}, &messages.Frame{Epoch: 1, First: n + 7, Time: at, Events: []messages.Event{
			messages.ToolCompleted{Turn: turn, Call: call, Output: "done"},
			messages.TurnCompleted{Turn: turn, Inputs: []string{input}, Output: "It is on its way.", Steps: 1},
		}})
	}
	return frames
}

// storedAgents returns how many agents with few events the store has.
func (w *work) storedAgents() int { return max(1, w.stored/eventsEach) }
