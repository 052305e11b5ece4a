package actors_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// kept returns the types of the events that a log holds of an agent.
func kept(t *testing.T, log eventlog.Store, a messages.AgentID) (types []string) {
	t.Helper()
	for rec, err := range log.Read(context.Background(), a, eventlog.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range rec.Frame.Events {
			types = append(types, ev.EventType())
		}
	}
	return types
}

// wantNothing checks that nothing is stored of an agent but its tombstone.
// extent returns how far what is stored of an agent beside its log goes.
func extent(t *testing.T, store eventlog.Store, a messages.AgentID) (upto messages.Extent) {
	t.Helper()
	var errs [2]error
	upto.Blobs, errs[0] = store.LastBlob(t.Context(), a)
	upto.Snapshots, errs[1] = store.LastSnapshot(t.Context(), a)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return upto
}

func wantNothing(t *testing.T, log eventlog.Store, a messages.AgentID) {
	t.Helper()
	types := slices.DeleteFunc(kept(t, log, a), func(e string) bool { return e == "agent.activated" })
	if got := strings.Join(types, " "); got != "agent.deleted" {
		t.Errorf("the log: got events %s, want agent.deleted", got)
	}
	for b := range log.ListBlobs(context.Background(), a) {
		t.Errorf("got blob %s, want none", b.SHA256)
	}
	if names, err := log.ListSnapshots(context.Background(), a); len(names) > 0 || err != nil {
		t.Errorf("got snapshots %v and error %v, want none", names, err)
	}
}

// keep stores a blob and a snapshot of an agent.
func keep(t *testing.T, log eventlog.Store, a messages.AgentID) {
	t.Helper()
	if _, err := log.PutBlob(context.Background(), a, strings.NewReader("large "+a.Key)); err != nil {
		t.Fatal(err)
	}
	if err := log.PutSnapshot(context.Background(), a, "left", []byte("of "+a.Key)); err != nil {
		t.Fatal(err)
	}
}

func TestDelete(t *testing.T) { // A108
	gate := scripted.NewGate()
	model := scripted.New(scripted.Say("hello"), scripted.Held(gate, scripted.Say("never")), scripted.Say("who?")).For(bob, scripted.Say("I stay"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(bob, say("u1", "hi"))
	node.Must(ada, say("u1", "hi"))
	s.Until(ada, "turn.completed")
	s.Until(bob, "turn.completed")
	keep(t, s.Store(), ada)
	keep(t, s.Store(), bob)
	for i := range 70 { // more than the state keeps
		node.Must(ada, messages.Resume{ID: fmt.Sprint("r", i)})
	}
	node.Must(ada, say("u2", "a secret"))
	<-gate.Reached()
	node.Must(ada, say("u3", "and another"))
	answer := node.Must(ada, messages.Delete{ID: "d1", Reason: "she asked for it"})
	all := s.Events(ada)
	ends(t, all)
	wantNothing(t, s.Store(), ada)
	if answer.Turn == "" || answer.Turn != actorstest.Of[messages.TurnAborted](all)[0].Turn {
		t.Errorf("got answer %+v, want one with the aborted turn", answer)
	}
	tombstone := s.Frames(ada)[len(s.Frames(ada))-1]
	if upto := actorstest.Of[messages.AgentDeleted](all)[0].Upto; upto.Blobs == 0 || upto.Snapshots == 0 {
		t.Errorf("the tombstone: got extent %+v, want blobs and snapshots in it", upto)
	}
	if again := node.Must(ada, messages.Delete{ID: "d1"}); !again.Duplicate || again.N != tombstone.First {
		t.Errorf("the same delete again: got %+v, want a duplicate of event %d", again, tombstone.First)
	}
	if refused := node.Do(ada, messages.Delete{ID: "d2"}); refused.Err == nil || refused.Err.Code != messages.NotFound {
		t.Errorf("a delete of a deleted agent: got %+v, want NotFound", refused)
	}
	if fresh := node.Must(ada, say("u1", "who am I?")); fresh.Duplicate || fresh.N <= tombstone.First {
		t.Errorf("an id from before the delete: got %+v, want a new input", fresh)
	}
	s.Until(ada, "turn.completed", 2)
	wantItems(t, model.Requests()[len(model.Requests())-1], "user who am I?")
	if types := kept(t, s.Store(), bob); types[0] != "agent.created" {
		t.Errorf("the other agent: got %s as its first event, want agent.created", types[0])
	}
	if blobs := slices.Collect(func(yield func(messages.Blob) bool) {
		for b := range s.Store().ListBlobs(context.Background(), bob) {
			yield(b)
		}
	}); len(blobs) != 1 {
		t.Errorf("the other agent: got blobs %v, want 1", blobs)
	}
}

// A process ends in the middle of a delete, and the next one completes it. Before the
// tombstone the delete is sent again; after it an activation is enough.
func TestDeleteInterrupted(t *testing.T) { // A108
	t.Run("before the tombstone", func(t *testing.T) {
		s := actorstest.New(t, nil)
		s.Given(ada, messages.AgentCreated{Agent: ada.Full()}, messages.InputAccepted{Input: "u1", Content: messages.TextContent("hi"), Disposition: messages.Queued})
		s.Given(ada, messages.InputDropped{Input: "u1", By: "delete"})
		keep(t, s.Store(), ada)
		node := s.Start(config(echo()))
		if a := node.Must(ada, messages.Delete{ID: "d1"}); a.Duplicate {
			t.Errorf("the delete again: got %+v, want no duplicate", a)
		}
		wantNothing(t, s.Store(), ada)
	})
	t.Run("before the removal", func(t *testing.T) {
		s := actorstest.New(t, nil)
		s.Given(ada, messages.AgentCreated{Agent: ada.Full()})
		keep(t, s.Store(), ada)
		upto := extent(t, s.Store(), ada)
		s.Given(ada, messages.AgentDeleted{Upto: upto})
		node := s.Start(config(echo()))
		if a := node.Activate(ada); a.Err != nil {
			t.Fatal(a.Err)
		}
		wantNothing(t, s.Store(), ada)
		if a := node.Must(ada, say("u1", "hi")); a.Duplicate {
			t.Errorf("an id from before the delete: got %+v, want a new input", a)
		}
	})
}

// held is a log whose purges block until free is closed.
type held struct {
	eventlog.Log
	reached, free chan struct{}
}

func (l *held) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	select {
	case l.reached <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-l.free:
		return l.Log.Purge(ctx, a, before)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fences is an observer that receives the agents that were fenced by a newer owner.
type fences chan messages.AgentID

func (fences) Committed(actors.Commit) {}
func (fences) Owed([]actors.Reply)     {}
func (fences) Delta(actors.Delta)      {}

func (fences) Streaming(messages.AgentID, map[string]messages.Stream) {}

func (f fences) Fenced(a messages.AgentID, _ messages.Epoch) {
	select {
	case f <- a:
	default:
	}
}

func TestDeleteTakenOver(t *testing.T) { // A108
	s := actorstest.New(t, nil)
	log := &held{s.Store().Log, make(chan struct{}), make(chan struct{})}
	cfg, replaced := config(echo()), make(fences, 1)
	cfg.Store.Log, cfg.Observer = log, replaced
	first := s.Start(cfg)
	first.Must(ada, say("u1", "a secret"))
	s.Until(ada, "turn.completed")
	keep(t, s.Store(), ada)
	deleting := first.Ask(ada, messages.Delete{ID: "d1"})
	<-log.reached
	second := s.Start(config(echo()))
	if a := second.Activate(ada); a.Err != nil {
		t.Fatal(a.Err)
	}
	wantNothing(t, s.Store(), ada)
	second.Must(ada, say("u1", "hello"))
	s.Until(ada, "turn.completed", 2)
	keep(t, s.Store(), ada) // of the agent after the delete
	end := len(s.Entries(ada))
	close(log.free) // the first owner continues its delete
	_ = deleting()
	if a := first.Do(ada, say("u2", "from before")); a.Err == nil || a.Err.Code != messages.Unavailable {
		t.Errorf("a stale owner: got %+v, want Unavailable", a)
	}
	<-replaced // the first owner was fenced
	if n := len(s.Entries(ada)); n != end {
		t.Errorf("got entries by a stale owner: %v", s.Types(ada))
	}
	var blobs int
	for _, err := range s.Store().ListBlobs(context.Background(), ada) {
		if blobs++; err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := s.Store().ListSnapshots(context.Background(), ada); blobs != 1 || len(names) == 0 {
		t.Errorf("after the delete by a stale owner: got %d blobs and snapshots %v, want 1 and some", blobs, names)
	}
}

// failing is a log whose first purges fail.
type failing struct {
	eventlog.Log
	times int
}

var errNotNow = errors.New("not now")

func (l *failing) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	if l.times--; l.times >= 0 {
		return errNotNow
	}
	return l.Log.Purge(ctx, a, before)
}

func TestDeleteTriesAgain(t *testing.T) { // A108
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.Store.Log = &failing{s.Store().Log, 2}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "hi"))
	s.Until(ada, "turn.completed")
	done := false
	for range 1000 {
		a := node.Do(ada, messages.Delete{ID: "d1"})
		if done = a.Err == nil; done {
			break
		}
		if a.Err.Code != messages.Unavailable {
			t.Fatalf("a delete while the log cannot be purged: got %+v, want Unavailable", a)
		}
	}
	if !done {
		t.Error("got no success after 1000 attempts")
	}
	wantNothing(t, s.Store(), ada)
}

// slowStore is a log that blocks each snapshot until let is closed, stores it, and returns
// err.
type slowStore struct {
	eventlog.Snapshots
	err      error
	put, let chan struct{}
}

func (l *slowStore) PutSnapshot(ctx context.Context, a messages.AgentID, name string, b []byte) error {
	l.put <- struct{}{}
	<-l.let
	return errors.Join(l.Snapshots.PutSnapshot(ctx, a, name, b), l.err)
}

// An owner stores a snapshot so slowly that another owner takes over meanwhile. If the agent
// was deleted, no snapshot is left once the lease has expired, even if storing it returned an
// error. If it was not, the snapshot of the next owner is kept.
func TestSnapshotOfADeposedOwner(t *testing.T) { // A27, A108
	for _, c := range []struct {
		deleted bool
		err     error
	}{{true, nil}, {true, context.DeadlineExceeded}, {false, nil}, {false, context.DeadlineExceeded}} {
		synctest.Test(t, func(t *testing.T) {
			s := actorstest.New(t, nil)
			slow := &slowStore{Snapshots: s.Store().Snapshots, err: c.err, put: make(chan struct{}, 9), let: make(chan struct{})}
			cfg := config(echo())
			cfg.Store.Snapshots, cfg.SnapshotEvery = slow, 1
			first := s.Start(cfg)
			first.Must(ada, say("u1", "a secret"))
			<-slow.put
			s.Until(ada, "turn.completed")
			next := s.Start(config(echo()))
			if c.deleted {
				next.Must(ada, messages.Delete{ID: "d1"})
			} else {
				next.Must(ada, say("u2", "and again"))
				s.Until(ada, "turn.completed", 2)
				keep(t, s.Store(), ada)
			}
			close(slow.let)
			<-time.After(2 * actors.DefaultLease)
			synctest.Wait()
			names, err := s.Store().ListSnapshots(t.Context(), ada)
			if left := slices.Contains(names, "left"); left == c.deleted || c.deleted && len(names) > 0 || err != nil {
				t.Errorf("deleted %v, storing returned %v: got snapshots %v and error %v, want none exactly if the agent was deleted", c.deleted, c.err, names, err)
			}
			end(first)
			end(next)
		})
	}
}

// A snapshot stored after a purge, by a node that was killed then, is reported and removed by
// the doctor.
func TestDoctorOfLeftSnapshots(t *testing.T) { // A108
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.Lease = time.Hour // the owner does not remove it first
	node := s.Start(cfg)
	node.Must(ada, say("u1", "hello"))
	examine := func(o doctor.Options) (found []doctor.Finding) {
		tail, err := s.Store().Head(t.Context(), ada)
		if err == nil {
			subject := doctor.Subject{Agent: ada, Tail: tail, Summary: eventlog.Summary{Phase: messages.PhaseDeleted}}
			err = actors.CheckSnapshots(s.Store())(t.Context(), subject, o, func(f doctor.Finding) { found = append(found, f) })
		}
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	keep(t, s.Store(), ada)
	if found := examine(doctor.Options{Repair: true}); found != nil {
		t.Errorf("an agent that is not deleted: got findings %+v, want none", found)
	}
	node.Must(ada, messages.Delete{ID: "d1"})
	if found := examine(doctor.Options{}); found != nil {
		t.Errorf("a deleted agent without snapshots: got findings %+v, want none", found)
	}
	keep(t, s.Store(), ada)
	if found := examine(doctor.Options{}); len(found) != 1 || found[0].Status != doctor.Fail || !strings.Contains(found[0].Detail, "left") {
		t.Errorf("a deleted agent with a snapshot: got findings %+v, want one that names it", found)
	}
	if found := examine(doctor.Options{Repair: true}); len(found) != 1 || !found[0].Repaired || examine(doctor.Options{}) != nil {
		t.Errorf("the repair: got findings %+v, want one repaired and none after it", found)
	}
}

// slowSnapshots is a log that blocks the first snapshot until free is closed.
type slowSnapshots struct {
	eventlog.Snapshots
	once          sync.Once
	reached, free chan struct{}
}

func (l *slowSnapshots) PutSnapshot(ctx context.Context, a messages.AgentID, name string, b []byte) error {
	l.once.Do(func() { close(l.reached); <-l.free })
	return l.Snapshots.PutSnapshot(ctx, a, name, b)
}

// A snapshot that is being stored when the tombstone is appended has no effect on later
// events.
func TestDeleteWhileSnapshotIsWritten(t *testing.T) { // A27, A108
	s := actorstest.New(t, nil)
	log := &slowSnapshots{Snapshots: s.Store().Snapshots, reached: make(chan struct{}), free: make(chan struct{})}
	var logged lockedBuffer
	cfg := config(echo())
	cfg.Store.Snapshots, cfg.SnapshotEvery, cfg.Logger = log, 1, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError}))
	node := s.Start(cfg)
	node.Must(ada, patch(0))
	<-log.reached
	deleted := node.Ask(ada, messages.Delete{ID: "d1"})
	close(log.free)
	if a := deleted(); a.Err != nil {
		t.Fatal(a.Err)
	}
	wantNothing(t, s.Store(), ada)
	if a := node.Must(ada, patch(0)); a.Duplicate {
		t.Errorf("an id from before the delete: got %+v, want a new event", a)
	}
	if got := logged.String(); got != "" {
		t.Errorf("got the errors %s in the log of the node, want none", got)
	}
}

// A deleted agent stores no snapshot, however many events it had, neither while it is in
// memory nor when it is passivated. The snapshot would outlive the purge, and an encrypted
// agent would get a key for it alone.
func TestDeletedLeavesNoSnapshot(t *testing.T) { // A27, A108
	for name, every := range map[string]int{"one with each frame": 1, "one at the end": 64} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := actorstest.New(t, nil)
				cfg := config(echo())
				cfg.SnapshotEvery, cfg.IdleAfter = every, time.Second
				node := s.Start(cfg)
				for i := range 40 {
					node.Must(ada, patch(i))
				}
				node.Must(ada, messages.Delete{ID: "d1"})
				leave := func() {
					<-time.After(3 * actors.DefaultLease)
					synctest.Wait()
					if n := node.Runtime().InMemory(); n != 0 {
						t.Fatalf("got %d agents in memory, want 0", n)
					}
				}
				leave()
				wantNothing(t, s.Store(), ada)
				for i := range 40 { // a new agent under the same key
					node.Must(ada, patch(i))
				}
				leave()
				if names, err := s.Store().ListSnapshots(t.Context(), ada); len(names) == 0 || err != nil {
					t.Errorf("the new agent: got snapshots %v and error %v, want some", names, err)
				}
				end(node)
			})
		})
	}
}

// A node that may not act any more has an agent in memory that the next owner has deleted. It
// stores no snapshot of it.
func TestFormerOwnerLeavesNoSnapshot(t *testing.T) { // A27, A108
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.IdleAfter = time.Minute
		var lapsed atomic.Bool
		deposed := cfg
		deposed.MayAct = func() bool { return !lapsed.Load() }
		former := s.Start(deposed)
		for i := range 40 {
			former.Must(ada, patch(i))
		}
		lapsed.Store(true)
		owner := s.Start(cfg)
		owner.Must(ada, messages.Delete{ID: "d1"})
		synctest.Wait()
		wantNothing(t, s.Store(), ada)
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if n := former.Runtime().InMemory(); n != 0 {
			t.Fatalf("got %d agents in memory, want 0", n)
		}
		wantNothing(t, s.Store(), ada)
		end(owner)
		end(former)
	})
}

// slowFrames is a log in which reads that start behind the first event block until free is
// closed.
type slowFrames struct {
	eventlog.Log
	reached, free chan struct{}
}

func (l *slowFrames) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	if r.After.Last > 0 && r.After.Frame == "" {
		close(l.reached)
		<-l.free
	}
	return l.Log.Read(ctx, a, r)
}

// The first answer to a command was purged while it was being read. No other frame is used in
// its place.
func TestFirstAnswerIsPurged(t *testing.T) { // A8, A108
	s := actorstest.New(t, nil)
	log := &slowFrames{s.Store(), make(chan struct{}), make(chan struct{})}
	cfg := config(echo())
	cfg.Store.Log = log
	node := s.Start(cfg)
	for n, id := range []string{"d1", "d2"} {
		node.Must(ada, say("u1", "hi"))
		s.Until(ada, "turn.completed", n+1)
		var again func() messages.Answer
		if n == 1 {
			again = node.Ask(ada, messages.Delete{ID: "d1"})
			<-log.reached
		}
		node.Must(ada, messages.Delete{ID: id})
		if n == 1 {
			close(log.free)
			wantCode(t, again(), messages.Unavailable)
		}
	}
}

// lockedBuffer holds the log output of a node. It is safe for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A damaged agent is deleted. A log keeps entries that it cannot read, and may drop the
// tombstone with them, so a second one is written.
func TestDeleteDamaged(t *testing.T) { // A29, A108
	s := actorstest.New(t, nil)
	s.Given(ada, messages.AgentCreated{Agent: ada.Full()}, messages.StatePatched{Patch: []byte(`{}`)})
	keep(t, s.Store(), ada)
	cfg := config(echo())
	cfg.Store.Log = &flipped{Log: s.Store().Log}
	node := s.Start(cfg)
	wantCode(t, node.Do(ada, say("u1", "hello")), messages.Damaged)
	deleted := node.Must(ada, messages.Delete{ID: "d1", Reason: "it is damaged"})
	for range 1000 { // until the damaged activation has stopped
		if a := node.Activate(ada); a.Err == nil {
			break
		}
	}
	wantNothing(t, s.Store(), ada)
	if n := actorstest.Count(s.Events(ada), "agent.deleted"); n != 2 || deleted.N != 4 {
		t.Errorf("got %d tombstones and the delete at event %d, want 2 and 4", n, deleted.N)
	}
	if a := node.Do(ada, messages.Abort{ID: "a1"}); a.Err == nil || a.Err.Code != messages.NotFound || !strings.Contains(a.Err.Message, fmt.Sprintf("deleted (event %d)", deleted.N)) {
		t.Errorf("an abort of the deleted agent: got %+v, want NotFound with the event of the tombstone", a.Err)
	}
	if a := node.Must(ada, say("u1", "who am I?")); a.Duplicate || a.N <= deleted.N {
		t.Errorf("the new agent: got %+v, want a new input after the tombstone", a)
	}
}

// torn is a log that reports damage in an agent's third frame.
type torn struct {
	eventlog.Log
	agent messages.AgentID
}

func (l *torn) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		n := 0
		for rec, err := range l.Log.Read(ctx, a, r) {
			if n++; a == l.agent && n == 3 {
				yield(eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Event: rec.Frame.First, Err: errors.New("a flipped bit")})
				return
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// A damaged agent is not deleted before a fork of it that can be read.
func TestDeleteDamagedParent(t *testing.T) {
	s := actorstest.New(t, nil)
	begin := messages.ForkRequested{Fork: zoe.Full(), At: 2, Begin: "fork:x"}
	s.Given(ada, messages.AgentCreated{Agent: ada.Full()}, messages.StatePatched{Patch: []byte(`{}`)})
	s.Given(ada, begin)
	s.Given(ada, messages.ForkSettled{Fork: zoe.Full(), Begin: begin.Begin, N: 3}) // cannot be read
	cfg := config(echo())
	node := s.Start(cfg)
	node.Must(zoe, messages.BeginFork{ID: begin.Begin, Parent: ada.Full(), At: begin.At})
	node.Stop()
	cfg.Store = s.Store()
	cfg.Store.Log = &torn{s.Store().Log, ada}
	node = s.Start(cfg)
	wantCode(t, node.Do(ada, say("u1", "hello")), messages.Damaged)
	wantCode(t, node.Do(ada, messages.Delete{ID: "d1"}), messages.Conflict)
	node.Must(zoe, messages.Delete{ID: "d2"})
	node.Must(ada, messages.Delete{ID: "d1"})
}

// flipped is a log that reports damage in an agent's first frame until the frame is purged.
// Its first purge has no effect.
type flipped struct {
	eventlog.Log
	purged atomic.Bool
}

func (l *flipped) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	if l.purged.Load() || r.After.Last > 0 {
		return l.Log.Read(ctx, a, r)
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		yield(eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Event: 1, Err: errors.New("a flipped bit")})
	}
}

func (l *flipped) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	err := l.Log.Purge(ctx, a, before)
	if err == nil && !l.purged.Swap(true) {
		err = eventlog.ErrStays
	}
	return err
}

// uncertain is a log whose first Extent fails.
type uncertain struct {
	eventlog.Blobs
	asked atomic.Bool
}

func (l *uncertain) LastBlob(ctx context.Context, a messages.AgentID) (uint64, error) {
	if !l.asked.Swap(true) {
		return 0, errNotNow
	}
	return l.Blobs.LastBlob(ctx, a)
}

// A delete is cut off after it has ended the turn. Its id is not recorded as processed: the
// same delete can be sent again.
func TestDeleteAgain(t *testing.T) { // A108
	gate := scripted.NewGate()
	s := actorstest.New(t, nil)
	cfg := config(scripted.New(scripted.Held(gate, scripted.Say("never"))))
	cfg.Store.Blobs = &uncertain{Blobs: s.Store().Blobs}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "hi"))
	<-gate.Reached()
	wantCode(t, node.Do(ada, messages.Delete{ID: "d1"}), messages.Unavailable)
	if n := actorstest.Count(s.Events(ada), "turn.aborted"); n != 1 {
		t.Errorf("got %d aborted turns, want 1", n)
	}
	if a := node.Must(ada, messages.Delete{ID: "d1"}); a.Duplicate {
		t.Errorf("the delete again: got %+v, want no duplicate", a)
	}
	wantNothing(t, s.Store(), ada)
}

// A prompt that its endpoint gave up before the agent was deleted arrives after the delete, as
// from a node that was frozen. It does not create the agent again; a prompt sent again does.
func TestCommandPastItsDeadline(t *testing.T) { // A108
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		node := s.Start(config(echo()))
		prompt := &actors.Deliver{Agent: ada, Command: say("u1", "hello"), Cause: messages.Cause{Endpoint: "prompt"}, Deadline: time.Now().Add(30 * time.Second)}
		if a := node.Deliver(prompt); a.Err != nil {
			t.Fatal(a.Err)
		}
		s.Until(ada, "turn.completed")
		node.Must(ada, messages.Delete{ID: "d1"})
		<-time.After(30 * time.Second)
		if a := node.Deliver(prompt); a.Err == nil || a.Err.Code != messages.Unavailable || !strings.Contains(a.Err.Message, "ask again with the same id") {
			t.Errorf("a prompt past its deadline: got %+v, want Unavailable", a)
		}
		wantNothing(t, s.Store(), ada)
		again := *prompt
		again.Deadline = time.Now().Add(30 * time.Second)
		if a := node.Deliver(&again); a.Err != nil || a.Duplicate {
			t.Errorf("the prompt sent again: got %+v, want a new input", a)
		}
		end(node)
	})
}

// A command that an endpoint accepted before its agent was deleted is refused afterwards, also
// once a new agent has the key.
func TestCommandOfAnEarlierLife(t *testing.T) { // A108
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		node := s.Start(config(echo()))
		prompt := func(id, text string, sent time.Time) messages.Answer {
			return node.Deliver(&actors.Deliver{Agent: ada, Command: say(id, text), Cause: messages.Cause{Endpoint: "prompt"}, Sent: sent, Deadline: sent.Add(30 * time.Second)})
		}
		early := time.Now()
		if a := prompt("u1", "one", early); a.Err != nil {
			t.Fatal(a.Err)
		}
		s.Until(ada, "turn.completed")
		<-time.After(time.Second)
		node.Must(ada, messages.Delete{ID: "d1"})
		refused := func(when string) {
			t.Helper()
			if a := prompt("u1", "one", early); a.N == 0 || a.Err == nil || a.Err.Code != messages.Unavailable || !strings.Contains(a.Err.Message, "was deleted") {
				t.Errorf("%s: got %+v, want Unavailable", when, a)
			}
		}
		refused("after the deletion")
		wantNothing(t, s.Store(), ada)
		if a := prompt("u2", "two", time.Now()); a.Err != nil {
			t.Error(a.Err)
		}
		refused("in the next life")
		s.Until(ada, "turn.completed")
		node.Stop()
		node = s.Start(config(echo()))
		refused("after a restart")
		if a := prompt("u1", "three", time.Now()); a.Err != nil || a.Duplicate {
			t.Errorf("the id after the delete: got %+v, want a new input", a)
		}
		end(node)
	})
}
