package actors_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// shelves is a log that tells what becomes of snapshots, and holds up or loses
// what it is told to.
type shelves struct {
	eventlog.Log

	mu     sync.Mutex
	put    map[string][]byte // the newest of each name
	more   chan struct{}     // closed with the next one
	scans  int               // reads of a whole log
	lose   func(name string) error
	noRoom bool
}

func newShelves(log eventlog.Log) *shelves {
	return &shelves{Log: log, put: make(map[string][]byte), more: make(chan struct{}), lose: func(string) error { return nil }}
}

func (l *shelves) PutSnapshot(ctx context.Context, a messages.AgentID, name string, b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noRoom {
		return errDisk
	}
	err := l.Log.PutSnapshot(ctx, a, name, b)
	for errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil { // it was slow: the agent would not try again
		err = l.Log.PutSnapshot(ctx, a, name, b)
	}
	if err != nil {
		return err
	}
	l.put[name] = b
	close(l.more)
	l.more = make(chan struct{})
	return nil
}

func (l *shelves) Snapshot(ctx context.Context, a messages.AgentID, name string) ([]byte, error) {
	l.mu.Lock()
	err := l.lose(name)
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	b, err := l.Log.Snapshot(ctx, a, name)
	for errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil { // it was slow: the whole log would be read
		b, err = l.Log.Snapshot(ctx, a, name)
	}
	return b, err
}

// Tail asks again for the same reason.
func (l *shelves) Tail(ctx context.Context, a messages.AgentID) (eventlog.Tail, error) {
	tail, err := l.Log.Tail(ctx, a)
	for errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil {
		tail, err = l.Log.Tail(ctx, a)
	}
	return tail, err
}

// ReadFrom continues behind what it has read, for the same reason.
func (l *shelves) ReadFrom(ctx context.Context, a messages.AgentID, after eventlog.Tail) iter.Seq2[eventlog.Recorded, error] {
	if after.Frame == "" {
		l.set(func() { l.scans++ })
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for again := true; again; {
			again = false
			for rec, err := range l.Log.ReadFrom(ctx, a, after) {
				if again = errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil; again {
					break
				}
				if after = rec.Tail(); !yield(rec, err) {
					return
				}
			}
		}
	}
}

func (l *shelves) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// scanned gives the reads of whole logs since it was asked last.
func (l *shelves) scanned() (n int) {
	l.set(func() { n, l.scans = l.scans, 0 })
	return n
}

// await waits for a snapshot of the agent as of its newest event.
func (l *shelves) await(a messages.AgentID, s *actorstest.Stage) {
	last := messages.EventNumber(len(s.Events(a)))
	for {
		l.mu.Lock()
		b, more := l.put[turn.SnapshotName()], l.more
		l.mu.Unlock()
		if actors.SnapshotOf(a, b) == last {
			return
		}
		<-more
	}
}

// patch is a command that is one event.
func patch(i int) messages.SetState {
	return messages.SetState{ID: fmt.Sprint("p", i), Patch: []byte(fmt.Sprintf(`{"n":%d}`, i))}
}

// manyIDs is how many commands an aged agent has processed.
const manyIDs = 80

// aged is an agent that has processed many commands, and left a snapshot.
func aged(t *testing.T, on eventlog.Log) (*actorstest.Stage, *shelves, actors.Config) {
	log := newShelves(on)
	s := actorstest.New(t, log)
	cfg := config(echo())
	cfg.SnapshotEvery = 1
	node := s.Start(cfg)
	for i := range manyIDs {
		node.Must(ada, patch(i))
	}
	log.await(ada, s)
	node.Stop()
	return s, log, cfg
}

// wantAgain checks that the ids were processed where they were, and a new one was not.
func wantAgain(t *testing.T, s *actorstest.Stage, node *actorstest.Node) {
	t.Helper()
	before := len(s.Events(ada))
	for _, i := range []int{0, 1, manyIDs / 2, manyIDs - 1} {
		want := messages.EventNumber(i + 3)
		if i == 0 {
			want = 1 // agent.created and agent.configured stand in its frame
		}
		if a := node.Must(ada, patch(i)); !a.Duplicate || a.N != want {
			t.Errorf("p%d is answered with %+v, want event %d", i, a, want)
		}
	}
	another := node.Do(ada, messages.Abort{ID: "p0"})
	for end := time.Now().Add(3 * time.Minute); another.Err != nil && another.Err.Code == messages.Unavailable && time.Now().Before(end); { // a log that was slow
		another = node.Do(ada, messages.Abort{ID: "p0"})
	}
	wantCode(t, another, messages.Conflict)
	if now := len(s.Events(ada)); now > before+1 { // but for agent.activated
		t.Errorf("%d new events", now-before)
	}
	if a := node.Must(ada, patch(before+1000)); a.Duplicate {
		t.Errorf("a new id is answered with %+v", a)
	}
}

// A processed id is known whatever became of snapshots, and a snapshot saves the reading of
// the whole log.
func TestIDsWithSnapshots(t *testing.T) { // A8, A27, A87
	for name, c := range map[string]struct {
		harm  func(ctx context.Context, l *shelves)
		scans int
	}{
		"whole": {func(context.Context, *shelves) {}, 0},
		"a damaged snapshot": {func(ctx context.Context, l *shelves) {
			_ = l.Log.PutSnapshot(ctx, ada, turn.SnapshotName(), []byte("x"))
		}, 1},
		"no snapshot": {func(ctx context.Context, l *shelves) { _ = l.RemoveSnapshots(ctx, ada) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, log, cfg := aged(t, memlog.New())
			log.scanned()
			log.set(func() { c.harm(t.Context(), log) })
			node := s.Start(cfg)
			wantAgain(t, s, node)
			node.Crash()
			wantAgain(t, s, s.Start(cfg))
			if n := log.scanned(); n < c.scans || c.scans == 0 && n > 0 {
				t.Errorf("the whole log was read %d times", n)
			}
		})
	}
}

// The same over JetStream, where a snapshot is read by sequence.
func TestIDsWithSnapshotsOnNATS(t *testing.T) { // A8, A27
	s, log, cfg := aged(t, openNATS(t))
	log.scanned()
	node := s.Start(cfg)
	wantAgain(t, s, node)
	if n := log.scanned(); n > 0 {
		t.Errorf("the whole log was read %d times", n)
	}
	node.Stop()
	log.await(ada, s)
	if err := log.RemoveSnapshots(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	wantAgain(t, s, s.Start(cfg))
	if log.scanned() == 0 {
		t.Error("the whole log was not read")
	}
}

// An agent that leaves memory leaves a snapshot if enough has come since the last
// one.
func TestSnapshotAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the agent is never idle for long before its last event
		log := newShelves(memlog.New())
		s := actorstest.New(t, log)
		cfg := config(echo())
		cfg.IdleAfter = time.Second
		node := s.Start(cfg)
		for i := range 15 { // with its creation 17 events
			node.Must(ada, patch(i))
		}
		log.await(ada, s)
		for i := range 3 {
			node.Must(bob, patch(i))
		}
		end(node)
		if node.Runtime().InMemory() != 0 {
			t.Errorf("%d agents are in memory", node.Runtime().InMemory())
		}
		if all, err := log.ListSnapshots(t.Context(), bob); err != nil || len(all) > 0 {
			t.Errorf("an agent of 5 events has left %v, %v", all, err)
		}
	})
}

var errDisk = errors.New("no such disk")

// A foreign message behind the newest frame does not make a snapshot useless.
func TestSnapshotBeforeForeignMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlog.New()
		log := newShelves(store)
		log.lose = func(string) error { return errDisk }
		s := actorstest.New(t, log)
		cfg := config(echo())
		cfg.IdleAfter = time.Second
		node := s.Start(cfg)
		log.set(func() { log.noRoom = true })
		for i := range 40 {
			node.Must(ada, patch(i))
		}
		leave := func() {
			<-time.After(5 * time.Second)
			synctest.Wait()
			if n := node.Runtime().InMemory(); n != 0 {
				t.Fatalf("%d agents are in memory", n)
			}
		}
		leave()
		store.Inject(eventlog.Entry{Agent: ada, Bytes: []byte("hello")}, true)
		log.set(func() { log.noRoom = false })
		node.Activate(ada)
		leave()
		log.set(func() { log.lose = func(string) error { return nil } })
		log.scanned()
		if a := node.Must(ada, patch(100)); a.Duplicate || log.scanned() != 0 {
			t.Errorf("answered with %+v, and the whole log was read", a)
		}
		end(node)
	})
}

// What was owed to a sender is sent again after a takeover, though a snapshot has
// told of the frame and the log's tail need not be read.
func TestRepliesAreOwedBehindSnapshot(t *testing.T) {
	for want, in := range map[string]messages.Input{
		"turn.completed": say("u1", "hi"),
		"timer.set":      later("u1", "hi", after(time.Hour)),
	} {
		t.Run(want, func(t *testing.T) {
			log := newShelves(memlog.New())
			s := actorstest.New(t, log)
			cfg := config(scripted.New(scripted.Say("hello")))
			cfg.SnapshotEvery = 1
			node := s.Start(cfg)
			in.Reply = "box.1"
			node.Must(ada, in)
			s.Until(ada, want)
			log.await(ada, s)
			node.Stop()
			log.scanned()
			heard := newEar()
			cfg.Observer = heard
			s.Start(cfg).Must(ada, patch(1))
			if got := heard.heard(); len(got) == 0 || log.scanned() != 0 || got[0].Subject != "box.1" || got[0].Event.EventType() != want {
				t.Errorf("owed %+v", got)
			}
		})
	}
}

// A snapshot that does not fit the log is not believed. One that is ahead of the log
// shows that the log has lost its end: the agent is damaged and left untouched, until
// a person accepts the loss.
func TestSnapshotOfAnotherLog(t *testing.T) { // A27, A29, A87
	_, old, cfg := aged(t, memlog.New())
	log := newShelves(memlog.New())
	put := func() {
		for name, b := range old.put {
			if err := log.Log.PutSnapshot(t.Context(), ada, name, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	put()
	s := actorstest.New(t, log)
	node := s.Start(cfg)
	if a := node.Do(ada, patch(0)); a.Err == nil || a.Err.Code != messages.Damaged {
		t.Errorf("answered with %+v though a snapshot is ahead of the log", a)
	}
	node.Stop()
	cfg.Evidence = &evidence{accepted: time.Now()}
	node = s.Start(cfg)
	if a := node.Must(ada, patch(0)); a.Duplicate || a.N != 1 {
		t.Errorf("answered with %+v", a)
	}
	for i := range 2 * manyIDs {
		node.Must(ada, messages.SetState{ID: fmt.Sprint("other", i), Patch: []byte(`{}`)})
	}
	node.Crash()
	put()
	cfg.Evidence = nil
	if a := s.Start(cfg).Must(ada, patch(3)); a.Duplicate {
		t.Errorf("answered with %+v", a)
	}
}

// evidence is what a test knows of its agents.
type evidence struct {
	whole    error
	seen     messages.EventNumber
	at       time.Time
	accepted time.Time
}

func (e *evidence) Whole(messages.AgentID, uint64) error { return e.whole }

func (e *evidence) Seen(messages.AgentID) (messages.EventNumber, time.Time) { return e.seen, e.at }

func (e *evidence) Counts(_ messages.AgentID, _ uint64, at time.Time) bool {
	return at.After(e.accepted)
}

// An agent of which more was seen than its log holds, or whose log cannot be relied
// on, is left untouched.
func TestShortenedLog(t *testing.T) { // A29
	log := memlog.New()
	s := actorstest.New(t, log)
	cfg := config(echo())
	node := s.Start(cfg)
	node.Must(ada, patch(0))
	node.Stop()
	soon := time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		evidence evidence
		code     messages.Code
	}{
		"more was seen":         {evidence{seen: 7, at: soon}, messages.Damaged},
		"it is accepted":        {evidence{seen: 7, at: soon, accepted: soon}, ""},
		"no more was seen":      {evidence{seen: 1, at: soon}, ""},
		"the stream lost more":  {evidence{whole: &eventlog.DamageError{Agent: ada, Err: errors.New("lost")}}, messages.Damaged},
		"the stream is checked": {evidence{whole: messages.Refuse(messages.Unavailable, "wait")}, messages.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Evidence = &test.evidence
			node := s.Start(cfg)
			defer node.Stop()
			var code messages.Code
			if a := node.Do(ada, patch(0)); a.Err != nil {
				code = a.Err.Code
			} else if !a.Duplicate {
				t.Errorf("answered with %+v", a)
			}
			if code != test.code {
				t.Errorf("refused with %q, want %q", code, test.code)
			}
		})
	}
}

// What cannot be stored harms nobody, and no snapshots are written or read where
// none are wanted.
func TestWithoutSnapshots(t *testing.T) {
	for name, every := range map[string]int{"off": -1, "failing": 1} {
		t.Run(name, func(t *testing.T) {
			log := newShelves(noRoom{memlog.New()})
			s := actorstest.New(t, log)
			cfg := config(echo())
			cfg.SnapshotEvery = every
			node := s.Start(cfg)
			for i := range manyIDs {
				node.Must(ada, patch(i))
			}
			wantAgain(t, s, node)
			node.Crash()
			wantAgain(t, s, s.Start(cfg))
			if len(log.put) > 0 {
				t.Errorf("%d snapshots", len(log.put))
			}
		})
	}
}

// noRoom is a log that takes no snapshots.
type noRoom struct{ eventlog.Log }

func (noRoom) PutSnapshot(context.Context, messages.AgentID, string, []byte) error {
	return errors.New("no space left on device")
}

// What is written of snapshots stays in proportion to the log, however large they
// have become.
func TestSnapshotsAreProportional(t *testing.T) {
	for _, events := range []int{1_000, 10_000, 100_000, 1_000_000} {
		const log = 400
		if share := float64(actors.SnapshotBytes(events, log, log)) / float64(events*log); share > 6 {
			t.Errorf("%d events: snapshots take %.1f times the log", events, share)
		}
		if share := float64(actors.SnapshotBytes(events, log, log/100)) / float64(events*log); share > 4.5 {
			t.Errorf("%d events of little consequence: snapshots take %.1f times the log", events, share)
		}
	}
}
