package actors_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

var yan = actorstest.Agent("test", "yan")

// lengths answers with how long what the model was shown is.
func lengths() *scripted.Model {
	return scripted.Func(func(r providers.Request) scripted.Step {
		all := 0
		for _, item := range r.Items {
			if item.Role == "user" {
				all += len(item.Content.Text())
			}
		}
		return scripted.Say(fmt.Sprint(all))
	})
}

// lastOutput returns the answer of an agent's newest turn.
func lastOutput(s *actorstest.Stage, a messages.AgentID) string {
	done := actorstest.Of[messages.TurnCompleted](s.Events(a))
	return done[len(done)-1].Output
}

// A fork that was detached continues, and so does a fork of it, once their parent is deleted and
// another agent has its address. Both have the payloads, too, also where they were encrypted with the
// parent's key.
func TestDetach(t *testing.T) { // A81
	for _, hidden := range []bool{false, true} {
		for _, every := range []int{1, -1} { // with snapshots and without
			var store *eventlog.Store
			if hidden {
				keys, err := encrypted.Open(t.Context(), &encrypted.Memory{}, encrypted.Key{1})
				if err != nil {
					t.Fatal(err)
				}
				inner := memlog.New()
				of := encrypted.New(inner.Store(), inner, keys).Store()
				store = &of
			}
			s := actorstest.New(t, store)
			cfg := config(lengths())
			cfg.SnapshotEvery = every
			cfg.Definitions[0].ShowAtMost = 1 << 20
			node := s.Start(cfg)
			node.Must(ada, say("u1", many("large ")))
			s.Until(ada, "turn.completed")
			forked(t, s, node, zoe, 0)
			node.Must(zoe, say("u2", "two"))
			s.Until(zoe, "turn.completed")
			node.Must(zoe, messages.Fork{ID: "f", Fork: yan.Full()})
			s.Until(zoe, "fork.settled")

			answer := node.Do(ada, messages.Delete{ID: "d1"})
			if wantCode(t, answer, messages.Conflict); answer.Err != nil && !strings.Contains(answer.Err.Message, "--detach") {
				t.Errorf("got %v", answer.Err)
			}
			first := node.Must(zoe, messages.Detach{ID: "x", Reason: "the parent is to be deleted"})
			if again := node.Must(zoe, messages.Detach{ID: "x"}); again.N != first.N || !again.Duplicate {
				t.Errorf("sent again: got %+v, want a duplicate of %+v", again, first)
			}
			node.Must(ada, messages.Delete{ID: "d2"})
			node.Must(ada, say("u1", "another agent"))
			s.Until(ada, "turn.completed", 2)
			for i := range 2 { // in memory, and loaded again
				for _, a := range []messages.AgentID{zoe, yan} {
					n := count(s.Events(a), "turn.completed")
					node.Must(a, say(fmt.Sprint("v", i), "12345"))
					s.Until(a, "turn.completed", n+1)
					if got, want := lastOutput(s, a), fmt.Sprint(len(many("large "))+3+5*(i+1)); got != want {
						t.Errorf("hidden %t, snapshots %d: %s was shown %s bytes, want %s", hidden, every, a, got, want)
					}
				}
				node.Stop()
				node = s.Start(cfg)
			}
			for _, a := range []messages.AgentID{zoe, yan} { // which have the names of the parent's payloads in snapshots
				if found := examineSnapshot(t, s, a); found != nil {
					t.Errorf("hidden %t, snapshots %d: the doctor found %+v of %s", hidden, every, found, a)
				}
			}
			forkAt := actorstest.Of[messages.AgentForked](s.Events(zoe))[0].At
			bea := actorstest.Agent("test", "bea")
			node.Must(zoe, messages.Fork{ID: "f3", Fork: bea.Full(), At: forkAt})
			s.Until(zoe, "fork.settled", 2)
			node.Must(bea, say("u9", "12345"))
			s.Until(bea, "turn.completed")
			if got, want := lastOutput(s, bea), fmt.Sprint(len(many("large "))+5); got != want {
				t.Errorf("a fork of the copy was shown %s bytes, want %s", got, want)
			}
		}
	}
}

// examineSnapshot returns what the doctor finds of an agent's snapshot when it looks deep.
func examineSnapshot(t *testing.T, s *actorstest.Stage, a messages.AgentID) (found []doctor.Finding) {
	t.Helper()
	tail, err := s.Store().Head(t.Context(), a)
	if err == nil {
		err = actors.CheckSnapshots(prefix.New(s.Store()))(t.Context(), doctor.Subject{Agent: a, Tail: tail}, doctor.Options{Deep: true}, func(f doctor.Finding) { found = append(found, f) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A turn is not disturbed by a detach.
func TestDetachInATurn(t *testing.T) {
	gate := scripted.NewGate()
	s := actorstest.New(t, nil)
	node := s.Start(config(scripted.New(scripted.Say("one"), scripted.Held(gate, scripted.Say("two")))))
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	forked(t, s, node, zoe, 0)
	node.Must(zoe, say("u2", "two"))
	<-gate.Reached()
	node.Must(zoe, messages.Detach{ID: "x"})
	gate.Release()
	s.Until(zoe, "turn.completed")
	node.Must(ada, messages.Delete{ID: "d"})
	if got := count(s.Events(zoe), "model.requested"); got != 1 {
		t.Errorf("the model was called %d times, want once", got)
	}
	if got, want := wholeLog(t, s.Store(), zoe), "one, one, two, two"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A node that crashes at any write of a detach leaves a fork that can be read, and a parent that is not
// deleted before the fork has its events. Sent again, it continues.
func TestCrashWhileDetaching(t *testing.T) {
	for writes := range 4 { // two payloads, the frames, none
		s := actorstest.New(t, nil)
		cfg := config(lengths())
		node := s.Start(cfg)
		node.Must(ada, say("u1", many("one ")))
		node.Must(ada, say("u2", many("two ")))
		s.Until(ada, "turn.completed", 2)
		forked(t, s, node, zoe, 0)
		node.Stop()

		stopped, left := make(chan struct{}), writes
		failing := cfg
		failing.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, put: func(ctx context.Context, store func() (messages.Blob, error)) (messages.Blob, error) {
			if left--; left >= 0 {
				return store()
			}
			close(stopped)
			<-ctx.Done()
			return messages.Blob{}, ctx.Err()
		}}
		node = s.Start(failing)
		wait := node.Ask(zoe, messages.Detach{ID: "x"})
		if writes < 3 {
			<-stopped
			node.Crash()
		}
		wait()
		node = s.Start(cfg)
		if answer := node.Do(ada, messages.Delete{ID: "d1"}); (answer.Err == nil) != (writes == 3) {
			t.Errorf("after %d writes: the delete of the parent got %v", writes, answer.Err)
		}
		if node.Must(zoe, messages.Detach{ID: "x"}); writes < 3 {
			node.Must(ada, messages.Delete{ID: "d2"})
		}
		node.Must(zoe, say("u3", "12345"))
		s.Until(zoe, "turn.completed")
		if got := len(blobsOf(t, s, zoe)); got != 3 {
			t.Errorf("after %d writes: the fork has %d blobs, want 3", writes, got)
		}
	}
}

// A fork is not detached where a part of what it has of its parent is missing.
func TestDetachOfWhatIsMissing(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(lengths())
	node := s.Start(cfg)
	node.Must(ada, say("u1", many("large ")))
	s.Until(ada, "turn.completed")
	forked(t, s, node, zoe, 0)
	if err := s.Store().RemoveBlobs(t.Context(), ada, eventlog.All); err != nil {
		t.Fatal(err)
	}
	answer := node.Do(zoe, messages.Detach{ID: "x"})
	if wantCode(t, answer, messages.Damaged); answer.Err != nil && !strings.Contains(answer.Err.Message, "restore that from a backup") {
		t.Errorf("got %v", answer.Err)
	}
	wantCode(t, node.Do(ada, messages.Delete{ID: "d"}), messages.Conflict)
	node.Stop()
	cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, get: func(messages.Blob) error { return errors.New("away") }}
	node = s.Start(cfg)
	wantCode(t, node.Do(zoe, messages.Detach{ID: "x"}), messages.Unavailable)
}

// stopping is a log in which what is behind the first frame of a read cannot be read for one agent.
type stopping struct {
	eventlog.Log
	agent messages.AgentID
	why   *atomic.Value // an error
}

func (l stopping) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for rec, err := range l.Log.Read(ctx, a, r) {
			if !yield(rec, err) || a == l.agent && !yield(eventlog.Recorded{}, l.why.Load().(error)) {
				return
			}
		}
	}
}

// A parent whose detached fork cannot be read now is deleted later. It does not ask for the fork to be
// detached: that may have been done.
func TestDeleteWhileAForkCannotBeRead(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(echo())
	node := s.Start(cfg)
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	forked(t, s, node, zoe, 0)
	node.Must(zoe, messages.Detach{ID: "x"})
	node.Stop()
	away := cfg
	why := new(atomic.Value)
	why.Store(fmt.Errorf("%w", errDisk))
	away.Store.Log = stopping{s.Store().Log, zoe, why}
	node = s.Start(away)
	wantCode(t, node.Do(ada, messages.Delete{ID: "d1"}), messages.Unavailable)
	node.Stop()
	node = s.Start(cfg)
	node.Must(ada, messages.Delete{ID: "d1"})
}

// A damaged parent is not deleted while its log cannot be read for its forks, up to the damage.
func TestDeleteOfADamagedParentThatCannotBeRead(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.SnapshotEvery = -1
	node := s.Start(cfg)
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	forked(t, s, node, zoe, 0)
	node.Stop()
	why := new(atomic.Value)
	why.Store(fmt.Errorf("%w", &eventlog.DamageError{Agent: ada, Event: 2, Err: errDisk}))
	cfg.Store.Log = stopping{s.Store().Log, ada, why}
	node = s.Start(cfg)
	wantCode(t, node.Do(ada, say("u2", "two")), messages.Damaged)
	why.Store(fmt.Errorf("%w", errDisk))
	answer := node.Do(ada, messages.Delete{ID: "d"})
	if wantCode(t, answer, messages.Unavailable); answer.Err != nil && !strings.Contains(answer.Err.Message, "whether agent test/ada has forks") {
		t.Errorf("got %v", answer.Err)
	}
}

// An event that a detached fork has of its parent is forked there as long as the parent has it, and then
// from the copy: each can be read when the parent has been deleted.
func TestForkOfACopiedEvent(t *testing.T) {
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "one"))
	at := messages.EventNumber(len(s.Until(ada, "turn.completed")))
	forked(t, s, node, zoe, 0)
	node.Must(zoe, messages.Detach{ID: "x"})
	answer := node.Do(zoe, messages.Fork{ID: "f1", Fork: yan.Full(), At: at})
	if wantCode(t, answer, messages.Conflict); answer.Err != nil && !strings.Contains(answer.Err.Message, fmt.Sprintf("fork test/ada at %d", at)) {
		t.Errorf("got %v", answer.Err)
	}
	node.Must(zoe, messages.Fork{ID: "f2", Fork: yan.Full()})
	s.Until(zoe, "fork.settled")
	node.Must(ada, messages.Delete{ID: "d"})
	bea := actorstest.Agent("test", "bea")
	node.Must(zoe, messages.Fork{ID: "f3", Fork: bea.Full(), At: at})
	s.Until(zoe, "fork.settled", 2)
	for _, a := range []messages.AgentID{yan, bea} {
		if got, want := wholeLog(t, s.Store(), a), "one, heard one"; got != want {
			t.Errorf("%s: got %s, want %s", a, got, want)
		}
	}
}

// damaged is a log in which every frame of an agent is damaged.
type damaged struct {
	eventlog.Log
	agent messages.AgentID
}

func (l damaged) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	if a != l.agent {
		return l.Log.Read(ctx, a, r)
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		yield(eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Event: r.Event(), Err: errors.New("a flipped bit")})
	}
}

// A copied event whose original is damaged is not forked, and the refusal names what can be: an event of the
// fork's own.
func TestForkOfACopiedEventThatIsDamaged(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(echo())
	node := s.Start(cfg)
	node.Must(ada, say("u1", "one"))
	at := messages.EventNumber(len(s.Until(ada, "turn.completed")))
	forked(t, s, node, zoe, 0)
	node.Must(zoe, messages.Detach{ID: "x"})
	node.Stop()
	cfg.Store.Log = damaged{s.Store().Log, ada}
	node = s.Start(cfg)
	answer := node.Do(zoe, messages.Fork{ID: "f1", Fork: yan.Full(), At: at})
	want := fmt.Sprintf("fork test/zoe at one of its own events, from %d on", at+1)
	if wantCode(t, answer, messages.Damaged); answer.Err != nil && !strings.Contains(answer.Err.Message, want) {
		t.Errorf("got %v, want %q", answer.Err, want)
	}
	if answer := node.Do(zoe, messages.Fork{ID: "f2", Fork: yan.Full(), At: at + 1}); answer.Err != nil {
		t.Fatal(answer.Err)
	}
	s.Until(zoe, "fork.settled")
}

// An event that a fork has of its parent is forked there, also where the parent is a fork, too, so that
// no number of such forks is too deep to be read.
func TestForkAtTheSameEvent(t *testing.T) {
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "one"))
	at := messages.EventNumber(len(s.Until(ada, "turn.completed")))
	forked(t, s, node, zoe, 0)
	answer := node.Do(zoe, messages.Fork{ID: "f", Fork: yan.Full(), At: at})
	if wantCode(t, answer, messages.Conflict); answer.Err != nil && !strings.Contains(answer.Err.Message, fmt.Sprintf("fork test/ada at %d", at)) {
		t.Errorf("got %v", answer.Err)
	}
	for i := range messages.MaxPrefixes + 2 {
		forked(t, s, node, actorstest.Agent("test", fmt.Sprint("fork", i)), at)
	}
	last := actorstest.Agent("test", fmt.Sprint("fork", messages.MaxPrefixes+1))
	if got, want := wholeLog(t, s.Store(), last), "one, heard one"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
