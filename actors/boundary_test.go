package actors_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// TestEveryBoundary plays a long mixed story of an agent and its children without a crash, and
// then once for each frame and each kind of crash. A snapshot is stored behind every frame
// where one can be; an activation finds any of them, or none. Every run must end as the one
// without a crash. By default each frame has one kind of crash; with REPRISE_BOUNDARIES set,
// as in make sim, it has all three.
func TestEveryBoundary(t *testing.T) { // A24, A6, A2, A10, A13, A20, A21, A22, A23, A25, A27, A40, A41, A42, A43, A46
	var whole ending
	synctest.Test(t, func(t *testing.T) {
		s := newTale(t, nil, "whole", slowly)
		whole = s.play(bomb{})
		s.beginAnywhere()
	})
	if t.Failed() {
		return
	}
	if got := "\n" + strings.Join(whole.outline, "\n"); got != lived {
		t.Fatalf("without a crash: got %s\nwant %s", got, lived)
	}
	for part := range 4 {
		t.Run(fmt.Sprint("part", part), func(t *testing.T) {
			t.Parallel()
			for at := part + 1; at <= whole.frames; at += 4 {
				ways := bombs(at)
				if !everyBoundary() {
					ways = ways[at/4%len(ways):][:1]
				}
				for _, b := range ways {
					synctest.Test(t, func(t *testing.T) { whole.same(t, b, newTale(t, nil, b.key(), slowly).play(b)) })
					if t.Failed() {
						return
					}
				}
			}
		})
	}
	t.Logf("%d frames", whole.frames)
}

// TestEveryBoundaryOnNATS does the same over JetStream. It crashes at a sample of the frames;
// with REPRISE_BOUNDARIES set, as in make sim, at all.
func TestEveryBoundaryOnNATS(t *testing.T) { // A24
	log := openNATS(t)
	whole := newTale(t, log, "whole", quickly).play(bomb{})
	every := 8
	if everyBoundary() {
		every = 1
	}
	var tales sync.WaitGroup
	turns := make(chan struct{}, 16)
	for at := 1; at <= whole.frames && !t.Failed(); at += every {
		for _, b := range bombs(at) {
			turns <- struct{}{}
			tales.Go(func() {
				defer func() { <-turns }()
				whole.same(t, b, newTale(t, log, b.key(), quickly).play(b))
			})
		}
	}
	tales.Wait()
	t.Logf("every %d. of %d frames", every, whole.frames)
}

func everyBoundary() bool { return os.Getenv("REPRISE_BOUNDARIES") != "" }

// bomb is the fault at one append of a story. The zero value is no fault.
type bomb struct {
	at  int
	how string
}

// The kinds of fault. The process dies after all effects of earlier frames have ended, before
// the frame is stored; or once it is stored, before any of its effects starts; or it keeps running,
// and the acknowledgement of the frame is lost.
const (
	diesBefore = "before"
	diesAfter  = "after"
	losesAck   = "unheard"
)

func bombs(at int) []bomb {
	return []bomb{{at, diesBefore}, {at, diesAfter}, {at, losesAck}}
}

func (b bomb) key() string { return fmt.Sprintf("%s-%d", b.how, b.at) }

// mined is a log with a bomb at one append.
type mined struct {
	eventlog.Log
	bomb bomb
	boom chan struct{} // closed when the process crashes

	mu      sync.Mutex
	appends int
}

var errAckLost = errors.New("the answer was lost")

// Append appends an entry, or fails as the bomb decides.
func (m *mined) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	m.mu.Lock()
	m.appends++
	hit := m.appends == m.bomb.at
	m.mu.Unlock()
	if !hit {
		return m.Log.Append(ctx, e)
	}
	if m.bomb.how != diesBefore {
		if _, err := m.Log.Append(ctx, e); err != nil {
			return eventlog.Position{}, err
		}
	}
	if m.bomb.how != losesAck {
		close(m.boom)
		<-ctx.Done()
	}
	return eventlog.Position{}, errAckLost
}

// ahead reports whether the append of the bomb has not come yet. Effects that end at the same
// time share frames, so a run may have fewer frames than the one before it.
func (m *mined) ahead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.appends < m.bomb.at || m.bomb.at == 0
}

// ending is the result of a story. The zero value is that of a story that was cut off because
// another one failed.
type ending struct {
	outline []string
	frames  int
	events  map[string]int // by type, without those of pauses, which depend on the clock
}

// same checks that a story ended as the one without a crash.
func (e ending) same(t *testing.T, b bomb, got ending) {
	t.Helper()
	if got.frames == 0 {
		return
	}
	if !slices.Equal(e.outline, got.outline) {
		t.Errorf("crash %s frame %d: got\n%s\nwant, as without a crash,\n%s", b.how, b.at, strings.Join(got.outline, "\n"), strings.Join(e.outline, "\n"))
	}
	if b.how != losesAck || maps.Equal(e.events, got.events) {
		return
	}
	diff := maps.Clone(e.events)
	for of, n := range got.events {
		if diff[of] -= n; diff[of] == 0 {
			delete(diff, of)
		}
	}
	t.Errorf("frame %d with its acknowledgement lost: want %v more events (fewer below 0)", b.at, diff)
}

// play plays the story with a fault, if there is one, and returns its ending.
func (s *tale) play(b bomb) ending {
	log := &mined{Log: s.stage.Store().Log, bomb: b, boom: make(chan struct{})}
	cfg := s.config()
	cfg.Store.Log = log
	node := s.stage.Start(cfg)
	boom, over := log.boom, false
	for limit := time.After(s.pace.limit); !s.t.Failed(); {
		more := s.stage.More()
		c, done := s.next()
		if over = done && len(s.stage.Owing()) == 0 && (boom == nil || b.how == losesAck || log.ahead()); over {
			break
		}
		var answer <-chan messages.Answer
		if c != nil {
			answer = s.ask(node, c)
		}
		select {
		case a := <-answer:
			if a.Err != nil && a.Err.Code == messages.Busy {
				s.refused = messages.IDOf(c)
			} else if a.Err != nil && a.Err.Code != messages.Unavailable {
				s.t.Errorf("%s: %s %s: got refusal %v, want none", b.key(), c.CommandType(), messages.IDOf(c), a.Err)
			}
		case <-boom:
			boom = nil
			s.endProcess()
			node.Crash()
			node = s.stage.Start(s.config())
			for _, of := range s.stage.Agents() {
				if a := node.Activate(of); a.Err != nil && (s.snapshots != nil || a.Err.Code != messages.Unavailable) { // NATS may be slow; the agent retries
					s.t.Errorf("%s: activate %s: %v", b.key(), of, a.Err)
				}
			}
		case <-more:
		case <-limit:
			s.t.Errorf("%s: got no end of the story, the events so far: %v", b.key(), s.stage.Types(s.agent))
		}
	}
	node.Stop()
	<-time.After(s.pace.rest)
	if !over {
		return ending{}
	}
	return s.ending()
}

// beginAnywhere checks that each agent has the same state whether it is loaded from a snapshot
// that it stored, from one as of each frame, or from none.
func (s *tale) beginAnywhere() {
	node := s.stage.Start(s.config())
	defer func() {
		node.Stop()
		<-time.After(s.pace.rest)
	}()
	<-time.After(s.pace.rest) // agents receive what was sent and not delivered
	s.snapshots.tidied()
	s.look(func(*view) {
		for _, v := range s.all() {
			s.beginWithAny(node, v)
		}
	})
}

func (s *tale) beginWithAny(node *actorstest.Node, v *view) {
	name := turn.SnapshotName()
	whole, err := node.Runtime().Load(s.t.Context(), v.agent, true)
	if err != nil {
		s.t.Fatal(err)
	}
	left := len(s.snapshots.versions(v.agent, name))
	if err := node.Runtime().SaveEach(s.t.Context(), v.agent); err != nil {
		s.t.Fatal(err)
	}
	versions := s.snapshots.versions(v.agent, name)
	if left == 0 || len(versions) != left+v.folded {
		s.t.Errorf("%s: got %d snapshots stored by the agent and %d in all, want some and one more for each of %d frames", v.agent, left, len(versions), v.folded)
	}
	for i := range versions {
		s.snapshots.only(v.agent, name, versions[i])
		quick, err := node.Runtime().Load(s.t.Context(), v.agent, false)
		if err != nil || !quick.Resumed {
			s.t.Fatalf("load snapshot %d of %s: %v", i, v.agent, err)
		}
		if where := differ(whole, quick); where != "" {
			s.t.Fatalf("%s: snapshot %d: got another state than from the whole log:\n%s", v.agent, i, where)
		}
	}
}

// ask sends a command to the node, which may crash on it.
func (s *tale) ask(node *actorstest.Node, c messages.Command) <-chan messages.Answer {
	wait, answer := node.Ask(s.agent, c), make(chan messages.Answer, 1)
	go func() { answer <- wait() }()
	return answer
}

// ending checks the log and the ledger against the guarantees and returns the outline.
func (s *tale) ending() ending {
	frames, events := 0, make(map[string]int)
	s.look(func(*view) {
		for _, v := range s.all() {
			for _, wrong := range v.wrong {
				s.t.Error(wrong)
			}
			for id, ended := range v.inputs {
				if ended != 1 {
					s.t.Errorf("input %s of %s has %d terminal events, want 1", id, v.agent, ended)
				}
			}
			frames += v.folded
			for _, ev := range slices.DeleteFunc(s.stage.Events(v.agent), ofPause) {
				events[ev.EventType()]++
			}
		}
	})
	for key, runs := range s.runs { // counted by tool for OnUnknown Pause, else by attempt
		if runs > 1 && (strings.HasPrefix(key, "mail") || strings.HasPrefix(key, "wire") || strings.Contains(key, "#")) {
			s.t.Errorf("%s: got %d runs, want at most 1", key, runs)
		}
	}
	return ending{s.outline(), frames, events}
}

// ofPause reports whether an event belongs to a pause or to its timer. An approval that
// expires before the calls beside it have ended pauses nothing. Of the reports of a paused
// child only the newest is sent, and an older one that arrives later changes nothing.
func ofPause(ev messages.Event) bool {
	switch ev := ev.(type) {
	case messages.TurnPaused, messages.TurnResumed, messages.ChildReported, messages.ChildWaiting, messages.ChildResumed:
		return true
	case messages.CommandNoop:
		return ev.Command == messages.Report{}.CommandType()
	case messages.TimerSet:
		return ev.For == "duration"
	case messages.TimerCancelled:
		return ev.Timer == "duration"
	}
	return false
}
