// Package actorstest runs agents without a node, so that a test reads as a story: given these
// events, when this command is sent, then these events follow.
//
//	s := actorstest.New(t, nil)
//	node := s.Start(actors.Config{Providers: …, Definitions: …})
//	node.Do(ada, messages.Input{ID: "u1", Content: messages.TextContent("hi")})
//	s.Until(ada, "turn.completed")
//
// # Guarantees
//
//   - Functions that wait, wait for events in the log, never for time to pass. A test
//     fails after three minutes of waiting.
//   - After [Node.Crash] nothing from that node reaches the log or its observer.
package actorstest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// timeout is how long a function of this package waits before it fails the test.
const timeout = 3 * time.Minute

// Agent returns the agent of that kind and key in the default tenant.
func Agent(kind, key string) messages.AgentID {
	return messages.AgentID{Tenant: messages.DefaultTenant, Kind: kind, Key: key}
}

// Say returns an input of plain text.
func Say(id, text string) messages.Input {
	return messages.Input{ID: id, Content: messages.TextContent(text)}
}

// Stage is one log and the nodes that start and end on it. Make it with New. Safe for
// concurrent use.
type Stage struct {
	t        testing.TB
	log      *recorder
	store    eventlog.Store // of log
	delivery delivery
	mu       sync.Mutex
	epoch    messages.Epoch
}

// New returns a stage on a store. The parts of the store that are nil are new ones in memory;
// nil is a store without any.
func New(t testing.TB, store *eventlog.Store) *Stage {
	on := memlog.NewStore()
	if store != nil {
		on = with(on, *store)
	}
	log := newRecorder(on.Log)
	on.Log = log
	return &Stage{t: t, log: log, store: on}
}

// with returns the store with the parts that are not nil in place of its own.
func with(store, parts eventlog.Store) eventlog.Store {
	if parts.Log != nil {
		store.Log = parts.Log
	}
	if parts.Blobs != nil {
		store.Blobs = parts.Blobs
	}
	if parts.Snapshots != nil {
		store.Snapshots = parts.Snapshots
	}
	if parts.Definitions != nil {
		store.Definitions = parts.Definitions
	}
	return store
}

// Start starts a node under the next epoch. The parts of cfg.Store that are nil are those of
// the stage: wrap one of [Stage.Store] to make it fail. The node stops when the test ends.
func (s *Stage) Start(cfg actors.Config) *Node {
	s.t.Helper()
	s.mu.Lock()
	s.epoch++
	epoch := s.epoch
	s.mu.Unlock()
	discard := slog.New(slog.NewTextHandler(io.Discard, nil))
	if cfg.Logger == nil {
		cfg.Logger = discard
	}
	n := &Node{t: s.t, epoch: epoch, partitions: make(map[messages.Partition]*actor.PID)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.log = newNodeLog(with(s.store, cfg.Store))
	if cfg.Send == nil {
		cfg.Send = func(_ context.Context, to messages.AgentID, c messages.Command) error {
			return s.delivery.send(n, to, c)
		}
	}
	cfg.Store = n.log.store()
	if cfg.Observer != nil {
		cfg.Observer = &nodeObserver{cfg.Observer, n.log}
	}
	var err error
	if n.runtime, err = actors.NewRuntime(context.Background(), cfg); err != nil {
		s.t.Fatal(err)
	}
	n.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return discard }),
		actor.WithDeadLetterRequestLogging(false))
	s.t.Cleanup(n.Stop)
	s.delivery.start(n)
	return n
}

// Store returns the store of the stage.
func (s *Stage) Store() eventlog.Store { return s.store }

// Given appends events to an agent's log as one frame, as if a node before the first had
// appended it.
func (s *Stage) Given(a messages.AgentID, events ...messages.Event) {
	s.t.Helper()
	ctx := context.Background()
	tail, err := s.log.Head(ctx, a)
	if err != nil {
		s.t.Fatal(err)
	}
	var state turn.State
	for _, f := range s.Frames(a) {
		state.Apply(f)
	}
	f := &messages.Frame{
		ID: messages.FrameID(fmt.Sprintf("given-%d", tail.Last+1)), Epoch: tail.Epoch, First: tail.Last + 1,
		Prev: tail.Frame, PrevDigest: tail.Digest, Time: time.Now().UTC(), Events: events,
	}
	state.Apply(f)
	b, err := messages.EncodeFrame(a, f)
	if err != nil {
		s.t.Fatal(err)
	}
	e := eventlog.Entry{Agent: a, Expect: tail, Frame: f, Bytes: b, Summary: actors.Summarize(&state)}
	if _, err := s.log.Append(ctx, e); err != nil {
		s.t.Fatal(err)
	}
}

// Entries returns the agent's frames so far, as they were appended.
func (s *Stage) Entries(a messages.AgentID) []eventlog.Entry {
	entries, _ := s.log.entries(a)
	return entries
}

// Agents returns the agents that have a frame, sorted.
func (s *Stage) Agents() []messages.AgentID {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.log.stored), func(a, b messages.AgentID) int { return cmp.Compare(a.Full(), b.Full()) })
}

// Owing returns the agents whose newest frame reports that they owe work. An owner activates
// them.
func (s *Stage) Owing() (list []messages.AgentID) {
	for _, a := range s.Agents() {
		if all := s.Entries(a); all[len(all)-1].Summary.Open {
			list = append(list, a)
		}
	}
	return list
}

// Rest waits until no agent owes work.
func (s *Stage) Rest() {
	s.t.Helper()
	deadline := time.After(timeout)
	for {
		more := s.More()
		open := s.Owing()
		if len(open) == 0 {
			return
		}
		select {
		case <-more:
		case <-deadline:
			s.t.Fatalf("agents %v still owe work", open)
		}
	}
}

// More returns a channel that is closed when the next frame is stored.
func (s *Stage) More() <-chan struct{} {
	_, more := s.log.entries(messages.AgentID{})
	return more
}

// Frames returns the agent's frames so far.
func (s *Stage) Frames(a messages.AgentID) []*messages.Frame { return frames(s.Entries(a)) }

func frames(entries []eventlog.Entry) []*messages.Frame {
	list := make([]*messages.Frame, len(entries))
	for i, e := range entries {
		list[i] = e.Frame
	}
	return list
}

// Events returns the agent's events so far.
func (s *Stage) Events(a messages.AgentID) []messages.Event { return events(s.Frames(a)) }

func events(frames []*messages.Frame) (all []messages.Event) {
	for _, f := range frames {
		all = append(all, f.Events...)
	}
	return all
}

// Types returns the types of the agent's events so far.
func (s *Stage) Types(a messages.AgentID) (types []string) {
	for _, ev := range s.Events(a) {
		types = append(types, ev.EventType())
	}
	return types
}

// Await waits until the agent's events satisfy ok, and returns them.
func (s *Stage) Await(a messages.AgentID, ok func([]messages.Event) bool) []messages.Event {
	s.t.Helper()
	deadline := time.After(timeout)
	for {
		entries, more := s.log.entries(a)
		all := events(frames(entries))
		if ok(all) {
			return all
		}
		select {
		case <-more:
		case <-deadline:
			s.t.Fatalf("timeout: agent %s has events %v", a, s.Types(a))
		}
	}
}

// Until waits until the agent's events contain n of the type, and returns all events. The
// default of n is 1.
func (s *Stage) Until(a messages.AgentID, eventType string, n ...int) []messages.Event {
	s.t.Helper()
	want := 1
	if len(n) > 0 {
		want = n[0]
	}
	return s.Await(a, func(all []messages.Event) bool { return Count(all, eventType) >= want })
}

// Count returns how many events are of the type.
func Count(all []messages.Event, eventType string) int {
	n := 0
	for _, ev := range all {
		if ev.EventType() == eventType {
			n++
		}
	}
	return n
}

// Of returns the events of type E, in order.
func Of[E messages.Event](all []messages.Event) (list []E) {
	for _, ev := range all {
		if e, ok := ev.(E); ok {
			list = append(list, e)
		}
	}
	return list
}
