package turn_test

import (
	_ "time/tzdata" // stories name zones

	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// TestSimulation lives random lives of one agent and checks after every step
// what the package promises. A life depends on its seed alone:
//
//	REPRISE_SEED=7 go test -run Simulation ./actors/turn
//
// plays one again, and REPRISE_STEPS is how many steps there are in all.
func TestSimulation(t *testing.T) { // A2, A3, A6, A8, A9, A10, A11, A12, A13, A14, A16, A17, A20, A21, A22, A23, A24, A27, A31, A32, A33, A34, A35, A40, A41, A42, A43, A44, A46, A50, A52, A61, A62, A105
	guard(t)
	if seed, err := strconv.ParseUint(os.Getenv("REPRISE_SEED"), 10, 64); err == nil {
		live(t, seed)
		return
	}
	steps := 100_000
	if testing.Short() {
		steps = 20_000
	}
	if n, err := strconv.Atoi(os.Getenv("REPRISE_STEPS")); err == nil {
		steps = n
	}
	for part := range uint64(parts) {
		t.Run(fmt.Sprint("part", part), func(t *testing.T) {
			t.Parallel()
			lives, lived, began := 0, 0, time.Now()
			for seed := part; lived < steps/parts; seed += parts {
				lived += live(t, seed)
				lives++
			}
			t.Logf("%d lives, %d steps, %.0f steps a second", lives, lived, float64(lived)/time.Since(began).Seconds())
		})
	}
}

// parts is how many goroutines share the lives.
const parts = 4

// FuzzLife searches for seeds that break a promise.
func FuzzLife(f *testing.F) {
	guard(f)
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { live(t, seed) })
}

// live lives one life and returns the number of its steps. One that breaks a
// promise is printed in its shortest form.
func live(t *testing.T, seed uint64) int {
	l := life{seed: seed}
	s, err := l.play()
	if err == nil {
		return s.steps
	}
	short, runs := shrink(l, err)
	short.verbose = true
	s, last := short.play()
	t.Fatalf("seed %d: %v\nThe shortest such life that was found in %d tries (at most %d actions); the first one broke after %d steps.\n%sREPRISE_SEED=%d go test -run Simulation ./actors/turn plays it again.",
		seed, last, runs, short.left(), err.steps, s.story(), seed)
	return 0
}

// life is what a seed decides, but for what the shrinker has taken away.
type life struct {
	seed    uint64
	without []bool  // actions that are left out
	plain   feature // what definitions never have
	verbose bool    // the story is kept
}

// broken is a promise that was not kept.
type broken struct {
	what  string
	steps int
	acts  int // actions begun
}

func (b *broken) Error() string { return b.what }

// play lives the life to its end, or to the first promise that is not kept.
func (l life) play() (s *sim, err *broken) {
	s = newSim(l)
	defer func() {
		if p := recover(); p != nil {
			b, ok := p.(*broken)
			if !ok {
				b = &broken{what: fmt.Sprintf("step %d: panic: %v\n%s", s.root().steps, p, debug.Stack())}
			}
			b.steps, b.acts = s.root().steps, s.root().acts
			err = b
		}
	}()
	s.dice(drawLife)
	s.define()
	for n := fewestActions + s.r.IntN(mostActions-fewestActions); s.acts < n; s.acts++ {
		if s.acts >= len(l.without) || !l.without[s.acts] {
			s.dice(uint64(s.acts))
			s.step()
		}
	}
	s.anyPrefix()
	s.dice(drawDrain)
	s.drain()
	s.fromScratch()
	if s.seed%16 == 0 {
		s.fromBytes()
	}
	return s, nil
}

// How many actions a life has.
const fewestActions, mostActions = 30, 150

// Draws that belong to no action.
const (
	drawLife = 1<<32 + iota
	drawPrefix
	drawDrain
	drawForeign
)

// anyPrefix continues with a part of the log, as after a crash there (A24).
func (s *sim) anyPrefix() {
	s.dice(drawPrefix)
	cut := s.r.IntN(len(s.log) + 1)
	prefix := newSim(s.life)
	prefix.pcg, prefix.r, prefix.env, prefix.reading, prefix.parent = s.pcg, s.r, s.env, true, s
	for _, f := range s.log[:cut] {
		prefix.live.Apply(f)
		prefix.check.segment(nil, f.First, f.Events)
		prefix.append(f)
		prefix.process(f)
	}
	prefix.activate()
	prefix.drain()
	s.steps += prefix.steps
}

// sim is an agent, its log, and a world that answers as the dice fall.
type sim struct {
	life
	pcg   *rand.PCG
	r     *rand.Rand
	env   turn.Env
	live  *turn.State
	fold  *turn.State // the same life, folded from its frames alone
	log   []*messages.Frame
	kept  int // the first frame of log that was not removed
	check checker
	// seen are effects that were listed once, given what came of some of them.
	// Both may come late.
	seen      []turn.Effect
	given     []given
	ids       []string
	processed map[string]messages.EventNumber
	images    int // after so many frames the folded state goes through a snapshot
	steps     int
	acts      int
	reading   bool // the log is read, and no effect begins
	eager     bool // hooks decide something at every other point
	tame      bool // the world wants the life to end
	blind     bool // nothing is checked: the log is not the machine's own
	parent    *sim // of one that continues with a prefix
	kids      []*kid
	same      *comparer
	lines     []string // events, as text; only when verbose
}

// given is what came of an effect.
type given struct {
	of      turn.Effect
	outcome any
}

func newSim(l life) *sim {
	s := &sim{life: l, pcg: rand.NewPCG(0, 0), live: &turn.State{}, fold: &turn.State{}, same: newComparer(),
		processed: map[string]messages.EventNumber{}}
	s.r = rand.New(s.pcg)
	s.images = 1 + int(l.seed%8)*3
	s.check = newChecker(s)
	s.env = turn.Env{
		Agent: messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"},
		Now:   time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
	}
	return s
}

// dice begins a new row of dice, which depends on the seed and on what they are
// thrown for: an action taken away does not change the others'.
func (s *sim) dice(what uint64) { s.pcg.Seed(s.seed, what) }

// root is the life that s is a part of.
func (s *sim) root() *sim {
	if s.parent != nil {
		return s.parent
	}
	return s
}

// fail ends the life.
func (s *sim) fail(format string, args ...any) {
	if s.parent != nil {
		s.parent.lines, s.parent.steps = s.lines, s.parent.steps+s.steps
	}
	panic(&broken{what: fmt.Sprintf("step %d: ", s.steps) + fmt.Sprintf(format, args...)})
}

// note keeps a line of the story.
func (s *sim) note(format string, args ...any) {
	if s.verbose {
		s.lines = append(s.lines, fmt.Sprintf(format, args...))
	}
}

// one is one of the words.
func (s *sim) one(of ...string) string { return of[s.r.IntN(len(of))] }

// chance is true once in so many times.
func (s *sim) chance(in int) bool { return s.r.IntN(in) == 0 }
