package actors_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/messages"
)

// TestSimulation simulates random runs of two agents and of forks of them, made at any of their
// events. Nodes crash, stop and start, and the log fails. Whenever nothing moves, it checks the guarantees of the package. The acts of a
// run depend on its seed alone; what happens at the same moment may differ.
//
//	REPRISE_SEED=7 go test -run Simulation ./actors      repeats one run
//	REPRISE_LIVES=20000 go test -run Simulation ./actors  simulates more runs, as make sim
func TestSimulation(t *testing.T) { // A6, A8, A13, A14, A20, A21, A22, A23, A26, A27, A30, A42, A46, A81, A82, A105, A107
	if seed, err := strconv.ParseUint(os.Getenv("REPRISE_SEED"), 10, 64); err == nil {
		report(t, simulate(t, seed, plan(seed)))
		return
	}
	runs := uint64(120)
	if n, err := strconv.ParseUint(os.Getenv("REPRISE_LIVES"), 10, 64); err == nil {
		runs = n
	} else if testing.Short() {
		runs = 40
	}
	var sum coverage
	t.Run("runs", func(t *testing.T) {
		for part := range uint64(4) {
			t.Run(fmt.Sprint("part", part), func(t *testing.T) {
				t.Parallel()
				for seed := part; seed < runs && !t.Failed(); seed += 4 {
					run := simulate(t, seed, plan(seed))
					report(t, run)
					sum.add(run)
				}
			})
		}
	})
	sum.check(t, runs)
}

// fullCoverage is the number of runs in which every event type occurs; make sim takes more.
const fullCoverage = 240

// coverage counts the acts and the event types of many runs.
type coverage struct {
	mu    sync.Mutex
	acts  int
	types map[string]int
}

func (c *coverage) add(run *simRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acts += len(run.acts)
	if c.types == nil {
		c.types = make(map[string]int)
	}
	for name, n := range run.types {
		c.types[name] += n
	}
}

// check logs the number of runs. If there were enough of them, it fails for each event type
// that did not occur.
func (c *coverage) check(t *testing.T, runs uint64) {
	for _, name := range strings.Fields(`
		agent.activated agent.cleared agent.deleted agent.forked fork.requested fork.settled fork.detached tools.enabled approval.denied approval.forgotten approval.granted approval.requested
		compaction.failed compaction.requested history.compacted
		budget.exhausted budget.raised budget.reserved budget.settled command.noop hook.decided
		input.accepted input.dropped input.requeued input.cancelled
		model.completed model.failed model.requested model.restarted model.switched state.patched
		timer.cancelled timer.fired timer.set tool.completed tool.denied tool.failed tool.flagged tool.requested tool.skipped tool.started tool.unknown
		turn.aborted turn.completed turn.failed turn.paused turn.resumed turn.started`) {
		if runs >= fullCoverage && c.types[name] == 0 && !t.Failed() {
			t.Errorf("got no %s in any run", name)
		}
	}
	for _, name := range []string{"a snapshot of a state", "a rewritten request"} {
		if runs >= fullCoverage && c.types[name] == 0 && !t.Failed() {
			t.Errorf("no run had %s", name)
		}
	}
	t.Logf("%d runs, %d acts; events: %v", runs, c.acts, c.types)
}

// simRun is the result of a plan.
type simRun struct {
	seed  uint64
	acts  []act
	wrong []string // the rules that it broke; nil if none
	types map[string]int
	log   string
}

// simulate plays the acts and returns the result.
func simulate(t *testing.T, seed uint64, acts []act) *simRun {
	run := &simRun{seed: seed, acts: acts, types: make(map[string]int)}
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
		run.wrong = w.wrong
		run.types["a snapshot of a state"] = w.snapshots.given["turn"]
		for _, v := range w.views {
			for name, n := range v.types {
				run.types[name] += n
			}
		}
		if run.wrong != nil {
			run.log = w.print()
		}
	})
	return run
}

// finish ends a run. Faults end, and the agents finish their work. Then the nodes crash, and
// a new one must find the same agents and run turns of theirs.
func (w *world) finish() {
	broken := w.failed()
	close(w.faultsEnd)
	w.faulty.Heal()
	if !broken {
		w.drain()
		w.compareWithLogs()
		w.compareWithSnapshots()
		w.compareWithDecisions()
		<-time.After(2 * actors.DefaultLease)
		w.checkDeleted()
		w.detachAll()
		for _, h := range w.running() {
			h.end(true)
		}
		w.start()
		for _, a := range w.agents {
			w.insist(a, messages.Input{ID: "last", Content: messages.TextContent("still there?")})
		}
		w.drain()
	}
	for _, h := range w.running() {
		h.end(false)
	}
	<-time.After(2 * time.Minute) // for pending answers to time out, and protoactor's count of dead letters
	w.inFlight.Wait()
	if !broken {
		w.verify()
	}
}

// compareWithLogs checks that each idle agent is at the end of its log.
func (w *world) compareWithLogs() {
	for _, a := range w.agents {
		if answer := w.newest().node.Activate(a); answer.Err == nil {
			w.mu.Lock()
			if last := w.fold(a).state.Last; last != answer.N {
				w.fail("%s: got newest event %d, want %d, the last of its log", a, answer.N, last)
			}
			w.mu.Unlock()
		}
	}
}

// compareWithSnapshots checks that an agent loaded from a snapshot is the same as one loaded
// from its whole log, processed ids included.
func (w *world) compareWithSnapshots() {
	rt := w.newest().node.Runtime()
	for _, a := range w.agents {
		whole, err := rt.Load(w.t.Context(), a, true)
		quick, qerr := rt.Load(w.t.Context(), a, false)
		if err = errors.Join(err, qerr); err != nil {
			w.lockAndFail("%s cannot be loaded: %v", a, err)
		} else if where := differ(whole, quick); where != "" {
			w.lockAndFail("%s differs when it is loaded from a snapshot\n%s", a, where)
		}
	}
}

// compareWithDecisions checks that the events of each agent come out the same when its log is
// decided again.
func (w *world) compareWithDecisions() {
	for _, a := range w.agents {
		current, err := w.newest().node.Runtime().Current(w.t.Context(), a.Kind)
		if err != nil {
			w.lockAndFail("%v", err)
			continue
		}
		frames, err := w.frames(a)
		if err != nil {
			w.lockAndFail("%s: %v", a, err)
			return
		}
		if len(frames) == 0 {
			continue
		}
		if r := verify.Stream(a, current, verify.Frames(frames)); r.Result != verify.Equal {
			text, _ := json.MarshalIndent(r, "", " ")
			w.lockAndFail("%s is not decided again as it was: %s", a, text)
		}
	}
}

// checkDeleted checks that nothing of a deleted agent is stored after the lease time. The
// text of an input that came after the delete may be: its owner stores it, crashes before it
// appends the input, and has not answered.
func (w *world) checkDeleted() {
	for _, a := range w.agents {
		w.mu.Lock()
		d := w.fold(a).state.Life.Deleted
		w.mu.Unlock()
		if d == nil {
			continue
		}
		for b, err := range w.stage.Store().ListBlobs(w.t.Context(), a) {
			if err == nil && w.sentSince(a, d.N, b.SHA256) {
				continue
			}
			w.lockAndFail("%s was deleted: got blob %s, %v, want none", a, b.SHA256, err)
		}
		if names := w.snapshots.left(a, w.newest()); len(names) > 0 {
			w.lockAndFail("%s was deleted: got snapshots %v, want none", a, names)
		}
	}
}

// sentSince reports whether an input with that text was sent to the agent after the tombstone
// at event n.
func (w *world) sentSince(a messages.AgentID, n messages.EventNumber, text messages.Digest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.commands {
		for _, s := range list {
			in, ok := s.cmd.(messages.Input)
			if ok && s.agent == a && s.after >= n && slices.ContainsFunc(in.Content, func(p messages.Part) bool { return messages.DigestOf([]byte(p.Text)) == text }) {
				return true
			}
		}
	}
	return false
}

// lockAndFail is fail for a caller that does not hold mu.
func (w *world) lockAndFail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(format, args...)
}

// insist sends a command to the newest node until it is applied. Requests of crashed nodes
// may still arrive.
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
	for _, s := range w.commands[a.Key+"/"+messages.IDOf(c)] {
		w.fail("%s: the last input was not applied: got answer %+v", a, s.answer)
	}
}

func (w *world) applied(a messages.AgentID, c messages.Command) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.fold(a).processed[messages.IDOf(c)]
	return ok
}

// print returns the logs of all agents as text.
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

// report fails the test for a run that broke a rule, with the shortest form of it that still
// breaks one.
func report(t *testing.T, run *simRun) {
	t.Helper()
	if run.wrong == nil {
		return
	}
	short := shrink(t, run)
	for _, a := range short.acts {
		t.Log(a)
	}
	t.Logf("the log:\n%s", short.log)
	t.Fatalf("seed %d broke a rule: %s\n%d of its %d acts, logged above, still break one: %s", run.seed, strings.Join(run.wrong, "\n"), len(short.acts), len(run.acts), strings.Join(short.wrong, "\n"))
}

// shrinkTries bounds the search for a shorter run.
const shrinkTries = 150

// shrink removes acts as long as the run still breaks a rule.
func shrink(t *testing.T, run *simRun) *simRun {
	tries := 0
	for size := len(run.acts) / 2; size > 0; size /= 2 {
		for from := 0; from < len(run.acts) && tries < shrinkTries; {
			tries++
			acts := append(append([]act(nil), run.acts[:from]...), run.acts[min(from+size, len(run.acts)):]...)
			if again := simulate(t, run.seed, acts); again.wrong != nil {
				run = again
			} else {
				from += size
			}
		}
	}
	return run
}
