package rerun

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// answerLimit is how long an agent may take for the answer to a command. It waits for memory only.
const answerLimit = time.Minute

// host runs one agent in memory.
type host struct {
	agent     messages.AgentID
	store     eventlog.Store
	system    *actor.ActorSystem
	partition *actor.PID
	cancel    func()

	mu     sync.Mutex
	frames []*messages.Frame
	state  turn.State
	more   chan struct{} // closed when there is another frame
}

// begin returns a host for an agent of a kind that cfg defines.
func begin(ctx context.Context, cfg actors.Config, agent messages.AgentID) (*host, error) {
	h := &host{agent: agent, store: memlog.NewStore(), more: make(chan struct{})}
	cfg.Store, cfg.Observer, cfg.Send, cfg.Purger, cfg.Evidence, cfg.MayAct = h.store, h, nil, nil, nil, nil
	rt, err := actors.NewRuntime(ctx, cfg)
	if err != nil {
		return nil, err
	}
	discard := slog.New(slog.DiscardHandler)
	h.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return discard }),
		actor.WithDeadLetterRequestLogging(false))
	ctx, h.cancel = context.WithCancel(ctx)
	h.partition = h.system.Root.Spawn(rt.Partition(ctx, agent.Partition(), 1))
	return h, nil
}

// end stops the agent.
func (h *host) end() {
	h.cancel()
	_ = h.system.Root.StopFuture(h.partition).Wait() // a tool that does not end is left
	h.system.Shutdown()
}

// do sends the agent a command and returns the event that records its outcome.
func (h *host) do(c messages.Command) (messages.EventNumber, error) {
	d := &actors.Deliver{Agent: h.agent, Command: c, Cause: messages.Cause{Endpoint: messages.EndpointClient}, Received: time.Now()}
	got, err := h.system.Root.RequestFuture(h.partition, d, answerLimit).Result()
	answer, ok := got.(*messages.Answer)
	switch {
	case err != nil || !ok:
		return 0, messages.Refuse(messages.Unavailable, "the agent that runs again did not answer: %v", err)
	case answer.Err != nil:
		return 0, answer.Err
	}
	return answer.N, nil
}

// now calls look with the agent's state, and returns a channel that is closed when it has changed.
func (h *host) now(look func(*turn.State)) (changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	look(&h.state)
	return h.more
}

// Committed folds a frame.
func (h *host) Committed(c actors.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frames = append(h.frames, c.Frame)
	h.state.Apply(c.Frame)
	close(h.more)
	h.more = make(chan struct{})
}

// Owed is not used: no input names a subject for its answer.
func (h *host) Owed([]actors.Reply) {}

// Delta is not used: answers are read whole.
func (h *host) Delta(actors.Delta) {}

// Streaming is not used: there are no callers.
func (h *host) Streaming(messages.AgentID, map[string]messages.Stream) {}

// Fenced is not used: there is no other owner.
func (h *host) Fenced(messages.AgentID, messages.Epoch) {}

// committed returns the frames so far.
func (h *host) committed() []*messages.Frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.frames)
}
