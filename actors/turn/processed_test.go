package turn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// processing is an agent that processes a command at each time, with the ids c0, c1 and so on.
func processing(t *testing.T, times ...time.Time) *turn.State {
	s := &turn.State{}
	for i, at := range times {
		process(t, s, messages.SetState{ID: fmt.Sprint("c", i), Patch: []byte(`{}`)}, at)
	}
	return s
}

func process(t *testing.T, s *turn.State, c messages.Command, at time.Time) {
	t.Helper()
	first := s.Last + 1
	events, err := s.Decide(turn.Env{Now: at}, c)
	if err != nil {
		t.Fatal(err)
	}
	s.Record(&messages.Frame{First: first, Time: at, Cause: messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: "ctl"}, Events: events})
}

// A fork that is asked to begin once more knows that it has, also when it has processed so many commands
// since that the id is forgotten: a refusal would have its parent forget the fork.
func TestForkBegunOnceMore(t *testing.T) {
	self := messages.AgentID{Tenant: "default", Kind: "test", Key: "zoe"}
	s := processing(t, make([]time.Time, 7)...)
	begin := messages.BeginFork{ID: "begin", Parent: "default/test/ada", At: s.Last}
	process(t, s, begin, time.Time{})
	var first *turn.ProcessedError
	if err := s.RefuseFork(self, begin); !errors.As(err, &first) || first.N != begin.At+1 {
		t.Fatalf("got %v", err)
	}
	for i := range 4200 {
		process(t, s, messages.SetState{ID: fmt.Sprint("z", i), Patch: []byte(`{}`)}, time.Time{}.Add(time.Duration(i)*time.Hour))
	}
	var again *turn.ProcessedError
	if err := s.RefuseFork(self, begin); !errors.As(err, &again) || again.N != first.N {
		t.Errorf("got %v", err)
	}
	var refused *messages.Error
	for _, other := range []messages.BeginFork{{ID: "b2", Parent: "default/test/bob", At: begin.At}, {ID: "b3", Parent: begin.Parent, At: begin.At - 1}} {
		if err := s.RefuseFork(self, other); !errors.As(err, &refused) || refused.Code != messages.Conflict {
			t.Errorf("another fork: got %v", err)
		}
	}
}

// The window holds the newest 4,096 ids, those of the last 15 minutes, and at most 16,384; a
// snapshot holds the same.
func TestDeduplicationWindow(t *testing.T) { // A8
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		commands int
		apart    time.Duration
		oldest   int // that is still known
	}{
		"few and slow":    {100, time.Hour, 0},
		"many and slow":   {5000, time.Hour, 5000 - 4096},
		"many in a while": {6000, 200 * time.Millisecond, 1495}, // from 299 s on; the newest is at 1199.8 s
		"too many":        {17000, time.Millisecond, 17000 - 16384},
	} {
		t.Run(name, func(t *testing.T) {
			var times []time.Time
			for i := range c.commands {
				times = append(times, start.Add(time.Duration(i)*c.apart))
			}
			s := processing(t, times...)
			image, err := s.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			again, err := image.State()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*turn.State{s, again} {
				if _, known := s.Processed(fmt.Sprint("c", c.oldest-1)); known {
					t.Errorf("c%d is still in the window", c.oldest-1)
				}
				for _, i := range []int{c.oldest, c.commands - 1} {
					want := messages.EventNumber(i + 2) // the first frame has agent.configured, too
					if i == 0 {
						want = 1
					}
					if n, known := s.Processed(fmt.Sprint("c", i)); !known || n != want {
						t.Errorf("c%d: event %d, %v; want %d", i, n, known, want)
					}
				}
			}
		})
	}
}

// TestWindowOfRandomCommands compares the window with a list of the commands, over events and
// times that are a random distance apart, and across snapshots.
func TestWindowOfRandomCommands(t *testing.T) { // A8, A27
	type command struct {
		id, digest string
		n          messages.EventNumber
		at         time.Time
	}
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for seed := range uint64(3) {
		dice := rand.New(rand.NewPCG(seed, 0))
		apart := []int{20, 150, 400}[seed] // milliseconds, at most: the bound of the window is their number, or their age
		var want []command
		check := func(s *turn.State, id string, list []command) {
			t.Helper()
			i := slices.IndexFunc(list, func(c command) bool { return c.id == id })
			var again *turn.ProcessedError
			_, err := s.Decide(turn.Env{}, messages.SetState{ID: id, Patch: []byte(`{}`)})
			switch known := errors.As(err, &again); {
			case known != (i >= 0):
				t.Fatalf("seed %d, %d commands: %s is in the window: %v, want %v", seed, len(list), id, known, i >= 0)
			case known && (again.N != list[i].n || !again.Same(list[i].digest) || again.Same("00"+list[i].digest[2:])):
				t.Fatalf("seed %d, %d commands: %+v, want %+v", seed, len(list), again, list[i])
			}
		}
		s, now := &turn.State{}, start
		for i := range 24_000 {
			now = now.Add(time.Duration(dice.IntN(apart)-apart/20) * time.Millisecond) // at times back
			if dice.IntN(5000) == 0 {
				now = now.Add(5 * time.Minute)
			}
			var branch *turn.State
			switch dice.IntN(200) {
			case 0:
				image, err := s.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				if branch, err = image.State(); err != nil {
					t.Fatal(err)
				}
			case 1:
				var err error
				if s, err = imaged(s); err != nil {
					t.Fatal(err)
				}
			}
			c := command{fmt.Sprint("c", i), fmt.Sprintf("%016x", dice.Uint64()|1<<63), s.Last + 1, now}
			apply := func(s *turn.State, n messages.EventNumber, id, digest string) {
				s.Apply(&messages.Frame{
					First: n, Time: now, Events: slices.Repeat([]messages.Event{messages.CommandNoop{}}, 1+dice.IntN(3)*dice.IntN(40)),
					Cause: messages.Cause{Type: "interrupt", ID: id, Endpoint: "ctl", Digest: digest},
				})
			}
			apply(s, c.n, c.id, c.digest)
			want = append(want, c)
			for len(want) > 4096 && (want[0].at.Unix() < now.Add(-15*time.Minute).Unix() || len(want) > 16384) {
				want = want[1:]
			}
			if branch != nil { // it shares no command with s that comes later
				apply(branch, c.n+1000, "other", "")
				check(branch, c.id, nil)
				check(branch, want[0].id, want)
				check(s, c.id, want)
			}
			if i%97 == 0 {
				check(s, want[len(want)-1].id, want)
				check(s, want[0].id, want)
				check(s, fmt.Sprint("c", dice.IntN(i+2)), want)
			}
		}
	}
}

// A task that is sent again has no second effect, however many commands came in between, and
// after its end; one that was taken back before it came never begins.
func TestTaskIsGivenOnce(t *testing.T) { // A8
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	parent := messages.Parent{Caller: messages.Caller{Agent: "default/boss/b", Turn: "t1", Call: "c1"}}
	task := messages.Task{ID: "task:1", Content: messages.TextContent("do it"), Parent: parent}
	later := messages.Task{ID: "task:2", Content: messages.TextContent("not this"), Parent: parent}
	s := &turn.State{}
	at := start
	decide := func(c messages.Command) ([]messages.Event, error) {
		at = at.Add(200 * time.Millisecond)
		first := s.Last + 1
		events, err := s.Decide(turn.Env{Now: at, Agent: messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"}, Definition: turn.Definition{Digest: "d1", Model: "m", MaxSteps: 1, MaxQueue: 9}}, c)
		if err == nil {
			s.Record(&messages.Frame{First: first, Time: at, Cause: messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: "ctl"}, Events: events})
		}
		return events, err
	}
	if _, err := decide(task); err != nil {
		t.Fatal(err)
	}
	came := s.Outbox.Task(task.ID).N
	if _, err := decide(messages.CancelChild{ID: "recall:2", Input: later.ID, Parent: parent}); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if _, err := decide(messages.SetState{ID: fmt.Sprint("s", i), Patch: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, known := s.Processed(task.ID); known {
		t.Fatal("the task is still in the window: the test shows nothing")
	}
	again := func() {
		t.Helper()
		var processed *turn.ProcessedError
		if events, err := decide(task); !errors.As(err, &processed) || processed.N != came || came == 0 {
			t.Errorf("the task again: %v, %v; want it processed at event %d", events, err, came)
		}
	}
	again()
	if _, err := decide(messages.Abort{ID: "a1"}); err != nil {
		t.Fatal(err)
	}
	again()
	for _, c := range []messages.Command{later, messages.CancelChild{ID: "recall:1", Input: task.ID, Parent: parent}} {
		events, err := decide(c)
		if err != nil || len(events) != 1 || events[0].EventType() != "command.noop" {
			t.Errorf("%s of what is over: %v, %v", c.CommandType(), events, err)
		}
	}
}

// An input whose id has left the window, and which has not ended, is the only one with its id:
// as a sender's it was processed, and a timer's is refused. So no two inputs share an end.
func TestInputsThatWaitAreUnique(t *testing.T) { // A8
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	due := start.Add(72 * time.Hour)
	s, at := &turn.State{}, start
	decide := func(what any) ([]messages.Event, error) {
		first := s.Last + 1
		events, err := s.Decide(turn.Env{Now: at, Agent: messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"}, Definition: turn.Definition{Digest: "d1", Model: "m", MaxSteps: 1, MaxQueue: 9}}, what)
		if err == nil {
			cause := messages.Cause{Type: "effect"}
			if c, ok := what.(messages.Command); ok {
				cause = messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: "ctl"}
			}
			s.Record(&messages.Frame{First: first, Time: at, Cause: cause, Events: events})
		}
		return events, err
	}
	must := func(what any) []messages.Event {
		t.Helper()
		events, err := decide(what)
		if err != nil {
			t.Fatal(err)
		}
		return events
	}
	forget := func(id string) { // pass the window
		t.Helper()
		at = at.Add(16 * time.Minute)
		for i := range 4096 {
			must(messages.SetState{ID: fmt.Sprint(s.Last, "s", i), Patch: []byte(`{}`)})
		}
		if _, known := s.Processed(id); known {
			t.Fatalf("%s is still in the window: the test shows nothing", id)
		}
	}
	scheduled := sayAs("later")
	scheduled.At = &due
	must(scheduled)
	must(sayAs("runs"))
	forget("later")
	n := s.Last + 1
	must(sayAs("later"))
	forget("later")

	var processed *turn.ProcessedError
	if events, err := decide(sayAs("later")); !errors.As(err, &processed) || processed.N != n {
		t.Errorf("an input that waits, again: %v, %v; want it processed at event %d", events, err, n)
	}
	var refused *messages.Error
	if events, err := decide(sayAs("runs")); !errors.As(err, &refused) || refused.Code != messages.Conflict {
		t.Errorf("an input of the running turn, again: %v, %v; want a conflict", events, err)
	}
	at = due
	events := must(turn.TimerDue{Timer: "later", At: due})
	if fired, ok := events[0].(messages.TimerFired); len(events) != 1 || !ok || fired.Refused == "" || !slices.Equal(s.Inputs.QueuedIDs(), []string{"later"}) {
		t.Errorf("a timer of the id of an input that waits: %+v, and %v wait; want it refused", events, s.Inputs.QueuedIDs())
	}
	must(messages.Abort{ID: "a1"})
	must(messages.Abort{ID: "a2"})
	forget("later")
	if n := s.Last + 1; s.Turn != nil || must(sayAs("later"))[0].EventType() != "input.accepted" {
		t.Errorf("an id whose input has ended, again: it was not accepted as event %d", n)
	}
}
