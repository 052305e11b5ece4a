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
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// snapshots is a store that records the snapshots stored in it. Reads and writes of them can be
// made to fail.
type snapshots struct {
	eventlog.Store

	mu       sync.Mutex
	put      map[string][]byte // the newest snapshot of each name
	more     chan struct{}     // closed when the next snapshot is stored
	scans    int               // reads of a whole log
	failRead func(name string) error
	failPut  bool
}

func newSnapshots(store eventlog.Store) *snapshots {
	return &snapshots{Store: store, put: make(map[string][]byte), more: make(chan struct{}), failRead: func(string) error { return nil }}
}

func (l *snapshots) PutSnapshot(ctx context.Context, a messages.AgentID, name string, b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failPut {
		return errDisk
	}
	err := l.Store.PutSnapshot(ctx, a, name, b)
	for errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil { // a slow server: the agent itself would not retry
		err = l.Store.PutSnapshot(ctx, a, name, b)
	}
	if err != nil {
		return err
	}
	l.put[name] = b
	close(l.more)
	l.more = make(chan struct{})
	return nil
}

func (l *snapshots) Snapshot(ctx context.Context, a messages.AgentID, name string) ([]byte, error) {
	l.mu.Lock()
	err := l.failRead(name)
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	b, err := l.Store.Snapshot(ctx, a, name)
	for errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil { // a slow server: the agent would read the whole log
		b, err = l.Store.Snapshot(ctx, a, name)
	}
	return b, err
}

// Head retries for the same reason.
func (l *snapshots) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	tail, err := l.Store.Head(ctx, a)
	for errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil {
		tail, err = l.Store.Head(ctx, a)
	}
	return tail, err
}

// Read resumes after the last frame that it read, for the same reason.
func (l *snapshots) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	whole := r.After.Last == 0 && r.Upto == nil
	return func(yield func(eventlog.Recorded, error) bool) {
		for again := true; again; {
			again = false
			for rec, err := range l.Store.Read(ctx, a, r) {
				if again = errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil; again {
					break
				}
				if r.After = rec.Position(); !yield(rec, err) {
					return // also after the first frame, which was all that was asked for
				}
				if whole {
					whole = false
					l.set(func() { l.scans++ })
				}
			}
		}
	}
}

func (l *snapshots) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// scanned returns the number of reads of a whole log since the previous call.
func (l *snapshots) scanned() (n int) {
	l.set(func() { n, l.scans = l.scans, 0 })
	return n
}

// await waits for a snapshot of the agent as of its newest event.
func (l *snapshots) await(a messages.AgentID, s *actorstest.Stage) {
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

// patch returns a command that appends one event.
func patch(i int) messages.SetState {
	return messages.SetState{ID: fmt.Sprint("p", i), Patch: []byte(fmt.Sprintf(`{"n":%d}`, i))}
}

// manyIDs is how many commands agedAgent sends.
const manyIDs = 80

// agedAgent returns a stage whose agent has processed many commands and stored a snapshot.
func agedAgent(t *testing.T, on eventlog.Store) (*actorstest.Stage, *snapshots, actors.Config) {
	log := newSnapshots(on)
	s := actorstest.New(t, &eventlog.Store{Log: log, Snapshots: log})
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

// wantDuplicates checks that processed ids are answered with their events, and that a new id
// is not a duplicate.
func wantDuplicates(t *testing.T, s *actorstest.Stage, node *actorstest.Node) {
	t.Helper()
	before := len(s.Events(ada))
	for _, i := range []int{0, 1, manyIDs / 2, manyIDs - 1} {
		want := messages.EventNumber(i + 3)
		if i == 0 {
			want = 1 // its frame also holds agent.created and agent.configured
		}
		if a := node.Must(ada, patch(i)); !a.Duplicate || a.N != want {
			t.Errorf("p%d: got answer %+v, want a duplicate of event %d", i, a, want)
		}
	}
	another := node.Do(ada, messages.Abort{ID: "p0"})
	for end := time.Now().Add(3 * time.Minute); another.Err != nil && another.Err.Code == messages.Unavailable && time.Now().Before(end); { // a slow server
		another = node.Do(ada, messages.Abort{ID: "p0"})
	}
	wantCode(t, another, messages.Conflict)
	if now := len(s.Events(ada)); now > before+1 { // except for agent.activated
		t.Errorf("got %d new events, want none", now-before)
	}
	if a := node.Must(ada, patch(before+1000)); a.Duplicate {
		t.Errorf("a new id: got answer %+v, want no duplicate", a)
	}
}

// Processed ids are found with or without snapshots. With a valid one, the whole log is not
// read.
func TestIDsWithSnapshots(t *testing.T) { // A8, A27, A87
	for name, c := range map[string]struct {
		harm  func(ctx context.Context, l *snapshots)
		scans int
	}{
		"whole": {func(context.Context, *snapshots) {}, 0},
		"a damaged snapshot": {func(ctx context.Context, l *snapshots) {
			_ = l.Store.PutSnapshot(ctx, ada, turn.SnapshotName(), []byte("x"))
		}, 1},
		"no snapshot": {func(ctx context.Context, l *snapshots) { _ = l.RemoveSnapshots(ctx, ada, eventlog.All) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, log, cfg := agedAgent(t, memlog.NewStore())
			log.scanned()
			log.set(func() { c.harm(t.Context(), log) })
			node := s.Start(cfg)
			wantDuplicates(t, s, node)
			node.Crash()
			wantDuplicates(t, s, s.Start(cfg))
			if n := log.scanned(); n < c.scans || c.scans == 0 && n > 0 {
				t.Errorf("got %d reads of the whole log, want %d", n, c.scans)
			}
		})
	}
}

// The same on JetStream, where a snapshot is read by its sequence.
func TestIDsWithSnapshotsOnNATS(t *testing.T) { // A8, A27
	s, log, cfg := agedAgent(t, *openNATS(t))
	log.scanned()
	node := s.Start(cfg)
	wantDuplicates(t, s, node)
	if n := log.scanned(); n > 0 {
		t.Errorf("got %d reads of the whole log, want none", n)
	}
	node.Stop()
	log.await(ada, s)
	if err := log.RemoveSnapshots(t.Context(), ada, eventlog.All); err != nil {
		t.Fatal(err)
	}
	wantDuplicates(t, s, s.Start(cfg))
	if log.scanned() == 0 {
		t.Error("got no read of the whole log, want one")
	}
}

// An agent that is passivated stores a snapshot if enough events follow the last one.
func TestSnapshotAtPassivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that the agent is not idle before its last event
		log := newSnapshots(memlog.NewStore())
		s := actorstest.New(t, &eventlog.Store{Log: log, Snapshots: log})
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
			t.Errorf("got %d agents in memory, want none", node.Runtime().InMemory())
		}
		if all, err := log.ListSnapshots(t.Context(), bob); err != nil || len(all) > 0 {
			t.Errorf("got snapshots %v, %v of an agent of 5 events, want none", all, err)
		}
	})
}

var errDisk = errors.New("no such disk")

// A snapshot can be used although a foreign message follows the newest frame.
func TestSnapshotBeforeForeignMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlog.New()
		log := newSnapshots(store.Store())
		log.failRead = func(string) error { return errDisk }
		s := actorstest.New(t, &eventlog.Store{Log: log, Snapshots: log})
		cfg := config(echo())
		cfg.IdleAfter = time.Second
		node := s.Start(cfg)
		log.set(func() { log.failPut = true })
		for i := range 40 {
			node.Must(ada, patch(i))
		}
		passivate := func() {
			<-time.After(5 * time.Second)
			synctest.Wait()
			if n := node.Runtime().InMemory(); n != 0 {
				t.Fatalf("got %d agents in memory, want none", n)
			}
		}
		passivate()
		store.Inject(eventlog.Entry{Agent: ada, Bytes: []byte("hello")}, true)
		log.set(func() { log.failPut = false })
		node.Activate(ada)
		passivate()
		log.set(func() { log.failRead = func(string) error { return nil } })
		log.scanned()
		if a := node.Must(ada, patch(100)); a.Duplicate || log.scanned() != 0 {
			t.Errorf("got answer %+v, want no duplicate and no read of the whole log", a)
		}
		end(node)
	})
}

// A reply that may not have been sent is sent again after a takeover, also if the frame of
// its event is part of the snapshot and is not read, and if it is encrypted.
func TestRepliesAreOwedBehindSnapshot(t *testing.T) {
	for name, open := range map[string]func(*testing.T) eventlog.Store{
		"plain": func(*testing.T) eventlog.Store { return memlog.NewStore() },
		"encrypted": func(t *testing.T) eventlog.Store {
			keys, err := encrypted.Open(t.Context(), &encrypted.Memory{}, encrypted.Key{1})
			if err != nil {
				t.Fatal(err)
			}
			inner := memlog.New()
			return encrypted.New(inner.Store(), inner, keys).Store()
		},
	} {
		for want, in := range map[string]messages.Input{
			"turn.completed": say("u1", "hi"),
			"timer.set":      later("u1", "hi", after(time.Hour)),
		} {
			t.Run(name+"/"+want, func(t *testing.T) {
				log := newSnapshots(open(t))
				s := actorstest.New(t, &eventlog.Store{Log: log, Snapshots: log})
				cfg := config(scripted.New(scripted.Say("hello")))
				cfg.SnapshotEvery = 1
				node := s.Start(cfg)
				in.Reply = "box.1"
				node.Must(ada, in)
				s.Until(ada, want)
				log.await(ada, s)
				node.Stop()
				log.scanned()
				observer := newObserver()
				cfg.Observer = observer
				s.Start(cfg).Must(ada, patch(1))
				if got := observer.received(); len(got) == 0 || log.scanned() != 0 || got[0].Subject != "box.1" || got[0].Event.EventType() != want {
					t.Errorf("got replies %+v, want %s to box.1 and no read of the whole log", got, want)
				}
			})
		}
	}
}

// A snapshot that does not match the log is not used. One that is ahead of the log shows that
// the log lost its end: the agent is damaged, and nothing is appended to it until a person
// accepts the loss.
func TestSnapshotOfAnotherLog(t *testing.T) { // A27, A29, A87
	_, old, cfg := agedAgent(t, memlog.NewStore())
	log := newSnapshots(memlog.NewStore())
	put := func() {
		for name, b := range old.put {
			if err := log.Store.PutSnapshot(t.Context(), ada, name, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	put()
	s := actorstest.New(t, &eventlog.Store{Log: log, Snapshots: log})
	node := s.Start(cfg)
	if a := node.Do(ada, patch(0)); a.Err == nil || a.Err.Code != messages.Damaged {
		t.Errorf("got answer %+v, want damaged: the snapshot is ahead of the log", a)
	}
	node.Stop()
	cfg.Evidence = &evidence{accepted: time.Now()}
	node = s.Start(cfg)
	if a := node.Must(ada, patch(0)); a.Duplicate || a.N != 1 {
		t.Errorf("got answer %+v, want event 1", a)
	}
	for i := range 2 * manyIDs {
		node.Must(ada, messages.SetState{ID: fmt.Sprint("other", i), Patch: []byte(`{}`)})
	}
	node.Crash()
	put()
	cfg.Evidence = nil
	if a := s.Start(cfg).Must(ada, patch(3)); a.Duplicate {
		t.Errorf("got answer %+v, want no duplicate", a)
	}
}

// evidence is an actors.Evidence with fixed answers.
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

// An agent is damaged if more of its events were seen than its log holds, or if its stream
// lost messages. Nothing is appended to it.
func TestShortenedLog(t *testing.T) { // A29
	s := actorstest.New(t, nil)
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
				t.Errorf("got answer %+v, want a duplicate", a)
			}
			if code != test.code {
				t.Errorf("got code %q, want %q", code, test.code)
			}
		})
	}
}

// An agent works without snapshots, whether they are off or cannot be stored.
func TestWithoutSnapshots(t *testing.T) {
	for name, every := range map[string]int{"off": -1, "failing": 1} {
		t.Run(name, func(t *testing.T) {
			log := newSnapshots(eventlog.Store{Log: memlog.New(), Snapshots: rejectsSnapshots{memlog.New()}, Definitions: memlog.New()})
			s := actorstest.New(t, &eventlog.Store{Log: log, Snapshots: log})
			cfg := config(echo())
			cfg.SnapshotEvery = every
			node := s.Start(cfg)
			for i := range manyIDs {
				node.Must(ada, patch(i))
			}
			wantDuplicates(t, s, node)
			node.Crash()
			wantDuplicates(t, s, s.Start(cfg))
			if len(log.put) > 0 {
				t.Errorf("got %d snapshots, want none", len(log.put))
			}
		})
	}
}

// rejectsSnapshots is a store that stores no snapshots.
type rejectsSnapshots struct{ eventlog.Snapshots }

func (rejectsSnapshots) PutSnapshot(context.Context, messages.AgentID, string, []byte) error {
	return errors.New("no space left on device")
}

// The bytes written for snapshots stay in proportion to the log, however large snapshots
// become.
func TestSnapshotsAreProportional(t *testing.T) {
	for _, events := range []int{1_000, 10_000, 100_000, 1_000_000} {
		const log = 400
		if share := float64(actors.SnapshotBytes(events, log, log)) / float64(events*log); share > 6 {
			t.Errorf("%d events: got snapshots of %.1f times the log, want at most 6", events, share)
		}
		if share := float64(actors.SnapshotBytes(events, log, log/100)) / float64(events*log); share > 4.5 {
			t.Errorf("%d events that change little state: got snapshots of %.1f times the log, want at most 4.5", events, share)
		}
	}
}
