// Package scripted is a model that plays a script: no key, no network, the same
// answers every time. Tests and benchmarks think with it.
//
// # Guarantees
//
//   - Calls of one script get its steps in order, one each, in whatever goroutine they are made.
//   - What a script says is played whatever the request forces; the script can
//     look at it with Func.
//   - A script that has ended fails the call; it never makes up an answer.
//   - Nothing waits except at a [Gate], and there no longer than ctx lasts.
package scripted

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

var _ providers.Provider = (*Model)(nil)

// Model plays scripts and records who asked what. Safe for concurrent use; make
// one with New or Func.
type Model struct {
	mu       sync.Mutex
	shared   script
	agents   map[messages.AgentID]*script
	answer   func(providers.Request) Step
	requests []providers.Request
}

type script struct{ left []Step }

// New makes a model that plays steps, one a call.
func New(steps ...Step) *Model { return &Model{shared: script{slices.Clone(steps)}} }

// Func makes a model that asks f what to do. f may be called from many
// goroutines at once.
func Func(f func(providers.Request) Step) *Model { return &Model{answer: f} }

// For adds steps to a script of agent's own, which its calls play in place of
// the shared one. It returns m.
func (m *Model) For(agent messages.AgentID, steps ...Step) *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agents == nil {
		m.agents = map[messages.AgentID]*script{}
	}
	if m.agents[agent] == nil {
		m.agents[agent] = &script{}
	}
	m.agents[agent].left = append(m.agents[agent].left, steps...)
	return m
}

// Then adds steps to the shared script. It returns m.
func (m *Model) Then(steps ...Step) *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shared.left = append(m.shared.left, steps...)
	return m
}

// Requests are the requests so far, in the order they came.
func (m *Model) Requests() []providers.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Calls is the number of requests so far.
func (m *Model) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// Left is the number of steps that no call has played, in all scripts.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.shared.left)
	for _, s := range m.agents {
		n += len(s.left)
	}
	return n
}

// Generate plays the next step. It fails with Invalid where the script has
// ended, with Canceled where ctx has, and as the step says; a nil emit is fine.
func (m *Model) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	if emit == nil {
		emit = func(providers.Delta) {}
	}
	if ctx.Err() != nil {
		return providers.Response{}, canceled(ctx)
	}
	step, n, ok := m.next(r)
	if m.answer != nil {
		step, ok = m.answer(r), true
	}
	if !ok {
		return providers.Response{}, &providers.Error{
			Kind:    providers.BadRequest,
			Message: "the script has ended: call " + strconv.Itoa(n) + ", of agent " + r.Agent.String() + ", has no step",
		}
	}
	return step.play(ctx, r, strconv.Itoa(n), emit)
}

// next records r and takes the step that answers it; n counts calls from 1.
func (m *Model) next(r providers.Request) (step Step, n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	s := &m.shared
	if own := m.agents[r.Agent]; own != nil {
		s = own
	}
	if len(s.left) > 0 {
		step, ok = s.left[0], true
		s.left = s.left[1:]
	}
	return step, len(m.requests), ok
}

// canceled says that ctx ended, and why.
func canceled(ctx context.Context) error {
	err := context.Cause(ctx)
	return &providers.Error{Kind: providers.Canceled, Message: err.Error(), Err: err}
}
