package actors_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// TestSimulation lives random lives of two agents on nodes that come and go, over
// a log that fails, and checks at every rest what the package promises. What is
// done in a life depends on its seed alone; what meets at the same moment does
// not.
//
//	REPRISE_SEED=7 go test -run Simulation ./actors      one life again
//	REPRISE_LIVES=20000 go test -run Simulation ./actors  more of them, as make sim
func TestSimulation(t *testing.T) { // A6, A8, A13, A14, A20, A21, A22, A23, A26, A27, A30, A42, A46, A105, A107
	if seed, err := strconv.ParseUint(os.Getenv("REPRISE_SEED"), 10, 64); err == nil {
		report(t, live(t, seed, plan(seed)))
		return
	}
	lives := uint64(120)
	if n, err := strconv.ParseUint(os.Getenv("REPRISE_LIVES"), 10, 64); err == nil {
		lives = n
	} else if testing.Short() {
		lives = 40
	}
	var sum census
	t.Run("lives", func(t *testing.T) {
		for part := range uint64(4) {
			t.Run(fmt.Sprint("part", part), func(t *testing.T) {
				t.Parallel()
				for seed := part; seed < lives && !t.Failed(); seed += 4 {
					l := live(t, seed, plan(seed))
					report(t, l)
					sum.add(l)
				}
			})
		}
	})
	sum.check(t, lives)
}

// mostlyAll is how many lives see whatever can happen; make sim takes more.
const mostlyAll = 240

// census is what many lives have seen.
type census struct {
	mu    sync.Mutex
	acts  int
	types map[string]int
}

func (c *census) add(l *life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acts += len(l.acts)
	if c.types == nil {
		c.types = make(map[string]int)
	}
	for name, n := range l.types {
		c.types[name] += n
	}
}

// check says how many lives there were, and fails if there were many and some of
// what can happen to an agent has happened to none.
func (c *census) check(t *testing.T, lives uint64) {
	for _, name := range strings.Fields(`
		agent.activated agent.cleared agent.deleted approval.denied approval.forgotten approval.granted approval.requested
		compaction.failed compaction.requested history.compacted
		budget.exhausted budget.raised budget.reserved budget.settled command.noop hook.decided
		input.accepted input.dropped input.requeued input.cancelled
		model.completed model.failed model.requested model.restarted model.switched state.patched
		timer.cancelled timer.fired timer.set tool.completed tool.denied tool.failed tool.flagged tool.requested tool.skipped tool.started tool.unknown
		turn.aborted turn.completed turn.failed turn.paused turn.resumed turn.started`) {
		if lives >= mostlyAll && c.types[name] == 0 && !t.Failed() {
			t.Errorf("no life has seen %s", name)
		}
	}
	if name := "a snapshot of a state"; lives >= mostlyAll && c.types[name] == 0 && !t.Failed() {
		t.Errorf("no life has begun with %s", name)
	}
	t.Logf("%d lives, %d acts; events: %v", lives, c.acts, c.types)
}

// life is what became of a plan.
type life struct {
	seed  uint64
	acts  []act
	wrong []string // nil: all is well
	types map[string]int
	log   string
}

// live lives a life.
func live(t *testing.T, seed uint64, acts []act) *life {
	l := &life{seed: seed, acts: acts, types: make(map[string]int)}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		w.start()
		for _, a := range acts {
			w.play(acts, a)
			if !a.hasty {
				synctest.Wait()
				w.check()
			}
			if w.failed() {
				break
			}
		}
		w.finish()
		l.wrong = w.wrong
		l.types["a snapshot of a state"] = w.attic.given["turn"]
		for _, v := range w.views {
			for name, n := range v.types {
				l.types[name] += n
			}
		}
		if l.wrong != nil {
			l.log = w.print()
		}
	})
	return l
}

// finish brings a life to its end: all comes to rest, the last nodes die, and
// a fresh one finds the same agents and goes on with them.
func (w *world) finish() {
	broken := w.failed()
	close(w.calmed)
	w.faulty.Heal()
	if !broken {
		w.drain()
		w.agree()
		w.reload()
		<-time.After(2 * actors.DefaultLease)
		w.buried()
		for _, h := range w.living() {
			h.end(true)
		}
		w.start()
		for _, a := range w.agents {
			w.insist(a, messages.Input{ID: "last", Content: messages.TextContent("still there?")})
		}
		w.drain()
	}
	for _, h := range w.living() {
		h.end(false)
	}
	<-time.After(2 * time.Minute) // whoever still waits for an answer, and protoactor's count of dead letters
	w.asking.Wait()
	if !broken {
		w.judge()
	}
}

// agree checks that the agents, at rest, are where their logs are.
func (w *world) agree() {
	for _, a := range w.agents {
		if answer := w.newest().node.Activate(a); answer.Err == nil {
			w.mu.Lock()
			if last := w.fold(a).state.Last; last != answer.N {
				w.fail("%s takes event %d for its newest, its log ends with %d", a, answer.N, last)
			}
			w.mu.Unlock()
		}
	}
}

// reload checks that an agent that begins with a snapshot is the one that its
// whole log makes, processed ids included.
func (w *world) reload() {
	rt := w.newest().node.Runtime()
	for _, a := range w.agents {
		whole, err := rt.Load(w.t.Context(), a, true)
		quick, qerr := rt.Load(w.t.Context(), a, false)
		if err = errors.Join(err, qerr); err != nil {
			w.lost("%s cannot be loaded: %v", a, err)
		} else if where := differ(whole, quick); where != "" {
			w.lost("%s is another one with a snapshot\n%s", a, where)
		}
	}
}

// buried checks that nothing is stored of a deleted agent, when the lease time has passed.
func (w *world) buried() {
	for _, a := range w.agents {
		w.mu.Lock()
		d := w.fold(a).state.Life.Deleted
		w.mu.Unlock()
		if d == nil {
			continue
		}
		for b, err := range w.attic.ListBlobs(w.t.Context(), a) {
			w.lost("%s was deleted, and blob %s is stored, %v", a, b.SHA256, err)
		}
		if names := w.attic.left(a, w.newest()); len(names) > 0 {
			w.lost("%s was deleted, and snapshots %v are stored", a, names)
		}
	}
}

// lost is fail for who does not hold mu.
func (w *world) lost(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(format, args...)
}

// insist gives a command to the newest node until it is applied: requests of
// nodes that have died may still arrive.
func (w *world) insist(a messages.AgentID, c messages.Command) {
	for range 5 {
		w.ask(w.newest(), a, c)
		synctest.Wait()
		if w.applied(a, c) {
			return
		}
		w.pass(time.Second)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.asks[a.Key+"/"+messages.IDOf(c)] {
		w.fail("%s does not work any more: %+v", a, s.answer)
	}
}

func (w *world) applied(a messages.AgentID, c messages.Command) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.fold(a).spent[messages.IDOf(c)]
	return ok
}

// print is the log of all agents.
func (w *world) print() string {
	var b strings.Builder
	for _, a := range w.agents {
		for _, f := range w.stage.Frames(a) {
			fmt.Fprintf(&b, "%s epoch %d %s %s\n", a.Key, f.Epoch, f.Cause.Type, f.Cause.ID)
			for i, ev := range f.Events {
				text := fmt.Sprintf("%+v", ev)
				fmt.Fprintf(&b, "    %d %s %.200s\n", f.First+messages.EventNumber(i), ev.EventType(), text)
			}
		}
	}
	return b.String()
}

// report fails the test for a life that broke a promise, cut as short as it
// still breaks one.
func report(t *testing.T, l *life) {
	t.Helper()
	if l.wrong == nil {
		return
	}
	short := shrink(t, l)
	for _, a := range short.acts {
		t.Log(a)
	}
	t.Logf("the log:\n%s", short.log)
	t.Fatalf("seed %d broke a promise: %s\nthe acts above suffice (%d of %d): %s", l.seed, strings.Join(l.wrong, "\n"), len(short.acts), len(l.acts), strings.Join(short.wrong, "\n"))
}

// shrinkTries bounds the search for a shorter life.
const shrinkTries = 150

// shrink takes acts away as long as the life still breaks a promise.
func shrink(t *testing.T, l *life) *life {
	tries := 0
	for size := len(l.acts) / 2; size > 0; size /= 2 {
		for from := 0; from < len(l.acts) && tries < shrinkTries; {
			tries++
			acts := append(append([]act(nil), l.acts[:from]...), l.acts[min(from+size, len(l.acts)):]...)
			if again := live(t, l.seed, acts); again.wrong != nil {
				l = again
			} else {
				from += size
			}
		}
	}
	return l
}
