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

// TestEveryBoundary plays a long mixed story of an agent and its children once without a
// crash, and then again with a crash at every frame of any of them, in one of three ways.
// A snapshot is left behind every frame it can be; an activation finds any of them, or none.
// Whatever happens, the story must end as it did without. REPRISE_BOUNDARIES set, and make
// sim with it, takes all three ways at every frame.
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
		t.Fatalf("without a crash the story ends as %s\nwant %s", got, lived)
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

// The same over JetStream. go test takes a sample of the frames; REPRISE_BOUNDARIES
// set, and make sim with it, takes all.
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

// bomb is what happens at one append of a story. The zero value is nothing.
type bomb struct {
	at  int
	how string
}

// The ways. The process dies when all effects of the frames before have had
// their course and the next frame is not stored; or when it is, and nothing that
// it intends has begun; or it lives, and does not hear that the frame is stored.
const (
	diesBefore = "before"
	diesAfter  = "after"
	losesAck   = "unheard"
)

func bombs(at int) []bomb {
	return []bomb{{at, diesBefore}, {at, diesAfter}, {at, losesAck}}
}

func (b bomb) key() string { return fmt.Sprintf("%s-%d", b.how, b.at) }

// mined is a log in which a bomb waits.
type mined struct {
	eventlog.Log
	bomb bomb
	boom chan struct{} // closed when the process dies

	mu      sync.Mutex
	appends int
}

var errUnheard = errors.New("the answer was lost")

// Append appends, but for the bomb.
func (m *mined) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	m.mu.Lock()
	m.appends++
	hit := m.appends == m.bomb.at
	m.mu.Unlock()
	if !hit {
		return m.Log.Append(ctx, e)
	}
	if m.bomb.how != diesBefore {
		if _, err := m.Log.Append(ctx, e); err != nil {
			return eventlog.Tail{}, err
		}
	}
	if m.bomb.how != losesAck {
		close(m.boom)
		<-ctx.Done()
	}
	return eventlog.Tail{}, errUnheard
}

// ahead reports whether the bomb waits for a frame that has not come: what ends at the same time
// shares frames, so there may be fewer than there were.
func (m *mined) ahead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.appends < m.bomb.at || m.bomb.at == 0
}

// ending is how a story ended. The zero value is that of one that was broken off,
// because another one failed.
type ending struct {
	outline []string
	frames  int
	events  map[string]int // by type, but for those of pauses, which depend on the clock
}

// same checks that a story ended as it did without a crash.
func (e ending) same(t *testing.T, b bomb, got ending) {
	t.Helper()
	if got.frames == 0 {
		return
	}
	if !slices.Equal(e.outline, got.outline) {
		t.Errorf("crash %s frame %d: the story ended as\n%s\nwithout a crash it ends as\n%s", b.how, b.at, strings.Join(got.outline, "\n"), strings.Join(e.outline, "\n"))
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
	t.Errorf("frame %d unheard: events that are missing (or too many, below 0): %v", b.at, diff)
}

// play plays the story, through a crash if there is one, and gives its end.
func (s *tale) play(b bomb) ending {
	log := &mined{Log: s.stage.Log(), bomb: b, boom: make(chan struct{})}
	cfg := s.config()
	cfg.Log = log
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
				s.t.Errorf("%s: %s %s was refused: %v", b.key(), c.CommandType(), messages.IDOf(c), a.Err)
			}
		case <-boom:
			boom = nil
			s.bury()
			node.Crash()
			node = s.stage.Start(s.config())
			for _, of := range s.stage.Agents() {
				if a := node.Activate(of); a.Err != nil && (s.attic != nil || a.Err.Code != messages.Unavailable) { // NATS may be slow; the agent tries again
					s.t.Errorf("%s: %s: %v", b.key(), of, a.Err)
				}
			}
		case <-more:
		case <-limit:
			s.t.Errorf("%s: the story does not go on after %v", b.key(), s.stage.Types(s.agent))
		}
	}
	node.Stop()
	<-time.After(s.pace.rest)
	if !over {
		return ending{}
	}
	return s.ending()
}

// beginAnywhere checks that each agent is the same whichever of its snapshots it
// begins with: one that it has left, one as of each frame, or none.
func (s *tale) beginAnywhere() {
	node := s.stage.Start(s.config())
	defer func() {
		node.Stop()
		<-time.After(s.pace.rest)
	}()
	<-time.After(s.pace.rest) // agents receive what others had sent and not delivered
	s.attic.tidied()
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
	left := len(s.attic.versions(v.agent, name))
	if err := node.Runtime().SaveEach(s.t.Context(), v.agent); err != nil {
		s.t.Fatal(err)
	}
	versions := s.attic.versions(v.agent, name)
	if left == 0 || len(versions) != left+v.folded {
		s.t.Errorf("%s: %d snapshots were left, and %d are there of %d frames", v.agent, left, len(versions), v.folded)
	}
	for i := range versions {
		s.attic.only(v.agent, name, versions[i])
		quick, err := node.Runtime().Load(s.t.Context(), v.agent, false)
		if err != nil || !quick.Resumed {
			s.t.Fatalf("snapshot %d of %s cannot be used: %v", i, v.agent, err)
		}
		if where := differ(whole, quick); where != "" {
			s.t.Fatalf("%s began with snapshot %d and is another one\n%s", v.agent, i, where)
		}
	}
}

// ask gives a command to the node, which may die of it.
func (s *tale) ask(node *actorstest.Node, c messages.Command) <-chan messages.Answer {
	wait, answer := node.Ask(s.agent, c), make(chan messages.Answer, 1)
	go func() { answer <- wait() }()
	return answer
}

// ending holds the log and the ledger against what is promised, and gives the
// outline.
func (s *tale) ending() ending {
	frames, events := 0, make(map[string]int)
	s.look(func(*view) {
		for _, v := range s.all() {
			for _, wrong := range v.wrong {
				s.t.Error(wrong)
			}
			for id, ended := range v.inputs {
				if ended != 1 {
					s.t.Errorf("input %s of %s has %d terminal events", id, v.agent, ended)
				}
			}
			frames += v.folded
			for _, ev := range slices.DeleteFunc(s.stage.Events(v.agent), ofPause) {
				events[ev.EventType()]++
			}
		}
	})
	for key, runs := range s.runs { // a call with OnUnknown Pause by its tool, any other by its attempt
		if runs > 1 && (strings.HasPrefix(key, "mail") || strings.HasPrefix(key, "wire") || strings.Contains(key, "#")) {
			s.t.Errorf("%s ran %d times", key, runs)
		}
	}
	return ending{s.outline(), frames, events}
}

// ofPause reports whether an event is of a pause or of the clock that stops with it: an
// approval that expires before the calls beside it are over pauses nothing. What agents
// report while they wait depends on what else they have to report: only the newest is sent, and
// one that a newer one has overtaken changes nothing.
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
