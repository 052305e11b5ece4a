package actors_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// TestFamilies simulates random runs of three generations of agents. They get inputs, are
// stopped and deleted at any level, and the root gets decisions for them. Their node crashes
// and is replaced by one without some of their kinds. At the end all agents are idle, each
// input and each call has ended once, and no agent works for a parent that does not wait.
//
//	REPRISE_FAMILIES=2000 go test -run Families ./actors  simulates more runs, as make sim
func TestFamilies(t *testing.T) { // A6, A70, A71, A108
	runs := uint64(30)
	if n, err := strconv.ParseUint(os.Getenv("REPRISE_FAMILIES"), 10, 64); err == nil {
		runs = n
	} else if testing.Short() {
		runs = 20
	}
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) {
			r := newFamilyRun(t, seed)
			r.simulate()
			r.node.Stop()     // the old one has stopped before
			r.pass(time.Hour) // idle goroutines end
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type familyRun struct {
	t    *testing.T
	dice *rand.Rand
	f    *family
	s    *actorstest.Stage
	node *actorstest.Node
	// old is the previous node while it still runs. Commands to the root go to it.
	old  *actorstest.Node
	acts int
	// kinds holds the kinds that nodes define, by epoch.
	kinds map[messages.Epoch][]string
}

func newFamilyRun(t *testing.T, seed uint64) *familyRun {
	return &familyRun{t: t, dice: rand.New(rand.NewPCG(seed, 1)), f: new(family), s: actorstest.New(t, nil), kinds: make(map[messages.Epoch][]string)}
}

func (r *familyRun) simulate() {
	r.start(r.f.config())
	r.do(root, say("u0", "pay it"))
	for range 10 + r.dice.IntN(20) {
		r.act()
		r.check()
	}
	r.restart(true)
	for range 100 {
		r.pass(70 * time.Second) // lost messages are sent again after a minute
		if r.settle() {
			r.check()
			r.checkEnded()
			return
		}
	}
	for _, a := range r.s.Owing() {
		r.t.Errorf("%s still has work: got events %v", a, r.s.Types(a))
	}
}

// do sends a command and ignores a refusal.
func (r *familyRun) do(a messages.AgentID, c messages.Command) {
	if r.old != nil && a == root {
		_ = r.old.Ask(a, c)
		return
	}
	_ = r.node.Ask(a, c)
}

func (r *familyRun) act() {
	r.acts++
	id, agents := strconv.Itoa(r.acts), append(r.s.Agents(), root)
	any := agents[r.dice.IntN(len(agents))]
	switch n := r.dice.IntN(20); {
	case n < 3:
		r.do(root, say("u"+id, "pay it"))
	case n < 4:
		r.do(any, say("u"+id, "pay it"))
	case n < 6:
		r.do(root, messages.Interrupt{ID: "i" + id})
	case n < 8:
		r.do(any, messages.Abort{ID: "a" + id})
	case n < 10:
		r.do(any, messages.Delete{ID: "d" + id})
	case n < 13:
		r.decide(root, r.dice.IntN(3) == 0)
	case n < 15:
		r.restart(r.dice.IntN(3) > 0)
	case n < 16:
		r.do(any, messages.Clear{ID: "c" + id})
	default:
		r.pass(time.Duration(r.dice.IntN(90_000)) * time.Millisecond)
	}
	if r.dice.IntN(3) > 0 {
		synctest.Wait()
	}
}

// restart stops or crashes the node, and starts one that defines all kinds, or the root's
// alone. The previous node may keep running beside it, as in a rolling deploy.
func (r *familyRun) restart(allKinds bool) {
	if r.old != nil {
		r.old.Stop()
		r.old = nil
	}
	switch n := r.dice.IntN(4); {
	case n < 2 && !allKinds:
		r.old = r.node
	case n == 2:
		r.node.Crash()
	default:
		r.node.Stop()
	}
	cfg := r.f.config()
	if !allKinds {
		cfg = r.f.former()
		cfg.Definitions[0].Kind = []string{"root", "stranger"}[r.dice.IntN(2)]
	}
	r.start(cfg)
	r.activateOwing(allKinds)
}

func (r *familyRun) start(cfg actors.Config) {
	r.node = r.s.Start(cfg)
	r.kinds[r.node.Epoch()] = r.node.Runtime().Kinds()
}

// activateOwing activates the agents that owe work, as the owner of a partition does.
func (r *familyRun) activateOwing(allKinds bool) {
	for _, a := range r.s.Owing() {
		if allKinds {
			r.node.Activate(a)
		}
	}
}

func (r *familyRun) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// decide approves or denies each call that waits at an agent.
func (r *familyRun) decide(a messages.AgentID, deny bool) {
	for _, w := range first(r.state(a).Waits(a)) {
		id := "p" + strconv.Itoa(r.acts) + string(w.Turn) + w.Agent
		if deny {
			r.do(a, messages.Deny{ID: id, Call: w.Call, Turn: w.Turn})
		} else {
			r.do(a, messages.Approve{ID: id, Call: w.Call, Turn: w.Turn})
		}
	}
}

func (r *familyRun) state(a messages.AgentID) *turn.State {
	var s turn.State
	for _, f := range r.s.Frames(a) {
		s.Apply(f)
	}
	return &s
}

// settle approves what waits, and reports whether no agent has work.
func (r *familyRun) settle() bool {
	r.acts++
	r.activateOwing(true)
	for _, a := range append([]messages.AgentID{root}, r.s.Agents()...) { // some agents have no waiting parent
		r.decide(a, false)
		synctest.Wait()
	}
	for _, a := range r.s.Agents() {
		if s := r.state(a); s.Open() || s.Turn != nil {
			return false
		}
	}
	return true
}

// begins reports whether an event begins something that takes a definition.
func begins(ev messages.Event) bool {
	switch ev.(type) {
	case messages.TurnStarted, messages.ModelRequested, messages.ModelRestarted, messages.ModelCompleted, messages.ModelFailed,
		messages.ToolStarted, messages.ToolCompleted, messages.AgentConfigured:
		return true
	}
	return false
}

// checkKinds checks that a node does not run agents whose kind it does not define, and that
// no call fails because of that.
func (r *familyRun) checkKinds(a messages.AgentID) {
	for _, f := range r.s.Frames(a) {
		for _, ev := range f.Events {
			if begins(ev) && !slices.Contains(r.kinds[f.Epoch], a.Kind) {
				r.t.Errorf("%s: got %s of a node that defines only %v", a, ev.EventType(), r.kinds[f.Epoch])
			}
			if failed, is := ev.(messages.ChildFailed); is && failed.Reason == string(messages.UnknownKind) {
				r.t.Errorf("%s: a child failed because its kind was undefined for a while", a)
			}
		}
	}
}

// check checks that no id is accepted twice between two deletes, and that no call ends twice.
func (r *familyRun) check() {
	for _, a := range r.s.Agents() {
		r.checkKinds(a)
		inputs, calls, begun := map[string]int{}, map[string]int{}, map[string]bool{}
		for _, ev := range r.s.Events(a) {
			switch ev := ev.(type) {
			case messages.AgentDeleted:
				clear(inputs)
			case messages.InputAccepted:
				if inputs[ev.Input]++; inputs[ev.Input] > 1 {
					r.t.Errorf("%s accepted input %s twice", a, ev.Input)
				}
			case messages.ChildSpawned:
				begun[string(ev.Turn)+string(ev.Call)] = true
			case messages.ToolCompleted:
				calls[string(ev.Turn)+string(ev.Call)]++
			case messages.ToolFailed:
				calls[string(ev.Turn)+string(ev.Call)]++
			}
		}
		for call := range begun {
			if calls[call] > 1 {
				r.t.Errorf("call %s of %s ended %d times, want at most once", call, a, calls[call])
			}
		}
	}
}

// checkEnded checks that every input and every call has ended.
func (r *familyRun) checkEnded() {
	for _, a := range r.s.Agents() {
		ended, begun := map[string]int{}, map[string]bool{}
		for _, ev := range r.s.Events(a) {
			for _, id := range first(messages.Ended(ev)) {
				ended["input "+id]++
			}
			switch ev := ev.(type) {
			case messages.AgentDeleted:
				r.checkOnce(a, begun, ended)
				clear(ended)
				clear(begun)
			case messages.InputAccepted:
				begun["input "+ev.Input] = true
			case messages.ChildSpawned:
				begun["call "+string(ev.Turn)+string(ev.Call)] = true
			case messages.ToolCompleted:
				ended["call "+string(ev.Turn)+string(ev.Call)]++
			case messages.ToolFailed:
				ended["call "+string(ev.Turn)+string(ev.Call)]++
			}
		}
		r.checkOnce(a, begun, ended)
	}
}

func (r *familyRun) checkOnce(a messages.AgentID, begun map[string]bool, ended map[string]int) {
	for what := range begun {
		if ended[what] != 1 {
			r.t.Errorf("%s of %s ended %d times, want once", what, a, ended[what])
		}
	}
}

func first[T any](v T, _ bool) T { return v }
