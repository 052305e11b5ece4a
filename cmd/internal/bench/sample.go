package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// PerTurn is how many frames an ordinary turn has.
const PerTurn = 4

// sample lets an agent do two turns and keeps the frames of the second: those
// of the first hold the agent's creation, too.
func (s *Store) sample(ctx context.Context) error {
	node, err := s.Node(ctx, TwoStep)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	a := AgentID(0, 0)
	for range 2 {
		if err := Ask(ctx, node.Client(), a); err != nil {
			return err
		}
	}
	stream, err := s.JS.Stream(ctx, s.Names.Log(a.Partition()))
	if err != nil {
		return err
	}
	last := stream.CachedInfo().State.LastSeq
	if last != 2*PerTurn {
		return fmt.Errorf("two turns made %d frames, want %d", last, 2*PerTurn)
	}
	for seq := last - PerTurn + 1; seq <= last; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			return err
		}
		delete(m.Header, headerFence)
		delete(m.Header, jetstream.ExpectedStreamHeader)
		s.frames = append(s.frames, nats.Msg{Header: m.Header, Data: m.Data})
	}
	return nil
}

// headerFence is set for each append.
const headerFence = jetstream.ExpectedLastSubjSeqHeader

// TwoStep is the model of an ordinary turn.
var TwoStep = scripted.TwoStep(ToolName, ToolInput)

// Ask asks an agent through the prompt endpoint and waits for the end of its turn.
func Ask(ctx context.Context, c *client.Client, a messages.AgentID) error {
	end := ""
	for ev, err := range c.Ask(ctx, a.String(), UserInput) {
		if err != nil {
			return fmt.Errorf("ask %s: %w", a, err)
		}
		if ev.Terminal() {
			end = ev.Type
		}
	}
	if end != (messages.TurnCompleted{}).EventType() {
		return fmt.Errorf("ask %s: its turn ended with %q", a, end)
	}
	return nil
}

// Clock is a model that notes when each worker's agent made the first call of
// its turn: turn.started and model.requested are in the log by then.
type Clock struct {
	providers.Provider
	started []atomic.Int64 // by worker, since epoch
	epoch   time.Time
}

// NewClock makes one for so many workers.
func NewClock(workers int) *Clock {
	return &Clock{TwoStep, make([]atomic.Int64, workers), time.Now()}
}

// Generate notes the time and answers.
func (c *Clock) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	if n := len(r.Items); n > 0 && r.Items[n-1].Type != messages.ItemCallOutput {
		if w := workerOf(r.Agent.Key); w >= 0 && w < len(c.started) {
			c.started[w].Store(int64(time.Since(c.epoch)))
		}
	}
	return c.Provider.Generate(ctx, r, emit)
}

// Since is the time from then to the worker's newest start.
func (c *Clock) Since(worker int, then time.Time) time.Duration {
	return time.Duration(c.started[worker].Load()) - then.Sub(c.epoch)
}
