// Package actorstest runs agents without a node, so that a test reads as a
// story: given what happened, when this is asked, then these events follow.
//
//	s := actorstest.New(t, nil)
//	node := s.Start(actors.Config{Providers: …, Definitions: …})
//	node.Do(ada, messages.Input{ID: "u1", Content: messages.TextContent("hi")})
//	s.Until(ada, "turn.completed")
//
// # Guarantees
//
//   - Whatever waits here waits for a fact in the log, never for time to pass;
//     a test that waits for a minute in vain fails.
//   - After [Node.Crash] nothing of that node reaches the log or its observer.
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

// patience is how long anything here waits before it fails the test.
const patience = 3 * time.Minute

// Agent is the agent of that kind and key in the default tenant.
func Agent(kind, key string) messages.AgentID {
	return messages.AgentID{Tenant: messages.DefaultTenant, Kind: kind, Key: key}
}

// Say is an input of plain text.
func Say(id, text string) messages.Input {
	return messages.Input{ID: id, Content: messages.TextContent(text)}
}

// Stage is one log and the nodes that come and go on it. Make it with New.
// Safe for concurrent use.
type Stage struct {
	t     testing.TB
	log   *recorder
	post  post
	mu    sync.Mutex
	epoch messages.Epoch
}

// New makes a stage on log; nil is a new one in memory.
func New(t testing.TB, log eventlog.Log) *Stage {
	if log == nil {
		log = memlog.New()
	}
	return &Stage{t: t, log: newRecorder(log)}
}

// Start starts a node under the next epoch. Its log is the stage's, or, if cfg
// has one, that: wrap [Stage.Log] to make it fail. It ends with the test.
func (s *Stage) Start(cfg actors.Config) *Node {
	s.t.Helper()
	s.mu.Lock()
	s.epoch++
	epoch := s.epoch
	s.mu.Unlock()
	if cfg.Log == nil {
		cfg.Log = s.log
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	n := &Node{t: s.t, epoch: epoch, partitions: make(map[messages.Partition]*actor.PID)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.log = newMortal(cfg.Log)
	if cfg.Send == nil {
		cfg.Send = func(_ context.Context, to messages.AgentID, c messages.Command) error { return s.post.send(n, to, c) }
	}
	cfg.Log = n.log
	if cfg.Observer != nil {
		cfg.Observer = &witness{cfg.Observer, n.log}
	}
	var err error
	if n.runtime, err = actors.NewRuntime(context.Background(), cfg); err != nil {
		s.t.Fatal(err)
	}
	n.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		actor.WithDeadLetterRequestLogging(false))
	s.t.Cleanup(n.Stop)
	s.post.open(n)
	return n
}

// Log is the stage's log.
func (s *Stage) Log() eventlog.Log { return s.log }

// Given appends events to an agent's log as one frame, as if a node before the
// first had written it.
func (s *Stage) Given(a messages.AgentID, events ...messages.Event) {
	s.t.Helper()
	ctx := context.Background()
	tail, err := s.log.Tail(ctx, a)
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

// Entries are the agent's frames so far, as they were appended.
func (s *Stage) Entries(a messages.AgentID) []eventlog.Entry {
	entries, _ := s.log.entries(a)
	return entries
}

// Agents are those that have a frame, sorted.
func (s *Stage) Agents() []messages.AgentID {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.log.stored), func(a, b messages.AgentID) int { return cmp.Compare(a.Full(), b.Full()) })
}

// Owing are the agents whose newest frame says that they owe work: an owner wakes
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
	late := time.After(patience)
	for {
		more := s.More()
		owing := s.Owing()
		if len(owing) == 0 {
			return
		}
		select {
		case <-more:
		case <-late:
			s.t.Fatalf("%v still owe work", owing)
		}
	}
}

// More is closed when the next frame is stored.
func (s *Stage) More() <-chan struct{} {
	_, more := s.log.entries(messages.AgentID{})
	return more
}

// Frames are the agent's frames so far.
func (s *Stage) Frames(a messages.AgentID) []*messages.Frame { return frames(s.Entries(a)) }

func frames(entries []eventlog.Entry) []*messages.Frame {
	list := make([]*messages.Frame, len(entries))
	for i, e := range entries {
		list[i] = e.Frame
	}
	return list
}

// Events are the agent's events so far.
func (s *Stage) Events(a messages.AgentID) []messages.Event { return events(s.Frames(a)) }

func events(frames []*messages.Frame) (all []messages.Event) {
	for _, f := range frames {
		all = append(all, f.Events...)
	}
	return all
}

// Types are the types of the agent's events so far.
func (s *Stage) Types(a messages.AgentID) (types []string) {
	for _, ev := range s.Events(a) {
		types = append(types, ev.EventType())
	}
	return types
}

// Await waits until the agent's events satisfy ok, and gives them.
func (s *Stage) Await(a messages.AgentID, ok func([]messages.Event) bool) []messages.Event {
	s.t.Helper()
	late := time.After(patience)
	for {
		entries, more := s.log.entries(a)
		all := events(frames(entries))
		if ok(all) {
			return all
		}
		select {
		case <-more:
		case <-late:
			s.t.Fatalf("agent %s did not come to where it should; its events are %v", a, s.Types(a))
		}
	}
}

// Until waits until the agent's events hold n of the type, n being 1 unless
// given, and gives all events.
func (s *Stage) Until(a messages.AgentID, eventType string, n ...int) []messages.Event {
	s.t.Helper()
	want := 1
	if len(n) > 0 {
		want = n[0]
	}
	return s.Await(a, func(all []messages.Event) bool { return Count(all, eventType) >= want })
}

// Count is how many events are of the type.
func Count(all []messages.Event, eventType string) int {
	n := 0
	for _, ev := range all {
		if ev.EventType() == eventType {
			n++
		}
	}
	return n
}

// Of are the events of type E, in order.
func Of[E messages.Event](all []messages.Event) (list []E) {
	for _, ev := range all {
		if e, ok := ev.(E); ok {
			list = append(list, e)
		}
	}
	return list
}
