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

// TestFamilies lives random lives of three generations: they are asked, stopped,
// deleted at any level, decided for at the root, their node crashes, and comes back
// without knowing some of their kinds. In the end all have come to rest, each
// input and each call has ended once, and nobody works for a parent that does not
// wait.
//
//	REPRISE_FAMILIES=2000 go test -run Families ./actors  more of them, as make sim
func TestFamilies(t *testing.T) { // A6, A70, A71, A108
	lives := uint64(30)
	if n, err := strconv.ParseUint(os.Getenv("REPRISE_FAMILIES"), 10, 64); err == nil {
		lives = n
	} else if testing.Short() {
		lives = 20
	}
	for seed := range lives {
		synctest.Test(t, func(t *testing.T) {
			l := newFamilyLife(t, seed)
			l.live()
			l.node.Stop()     // the old one is gone by now
			l.pass(time.Hour) // idle goroutines end
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type familyLife struct {
	t    *testing.T
	dice *rand.Rand
	f    *family
	s    *actorstest.Stage
	node *actorstest.Node
	// old is the node before, if it lives on: it is still where root is asked.
	old  *actorstest.Node
	acts int
	// kinds are those that nodes know, by epoch.
	kinds map[messages.Epoch][]string
}

func newFamilyLife(t *testing.T, seed uint64) *familyLife {
	return &familyLife{t: t, dice: rand.New(rand.NewPCG(seed, 1)), f: new(family), s: actorstest.New(t, nil), kinds: make(map[messages.Epoch][]string)}
}

func (l *familyLife) live() {
	l.start(l.f.config())
	l.do(root, say("u0", "pay it"))
	for range 10 + l.dice.IntN(20) {
		l.act()
		l.check()
	}
	l.restart(true)
	for range 100 {
		l.pass(70 * time.Second) // what was lost is said again after a minute
		if l.settle() {
			l.check()
			l.over()
			return
		}
	}
	for _, a := range l.s.Owing() {
		l.t.Errorf("%s does not come to rest: %v", a, l.s.Types(a))
	}
}

// do gives a command, and lets whatever is refused be.
func (l *familyLife) do(a messages.AgentID, c messages.Command) {
	if l.old != nil && a == root {
		_ = l.old.Ask(a, c)
		return
	}
	_ = l.node.Ask(a, c)
}

func (l *familyLife) act() {
	l.acts++
	id, agents := strconv.Itoa(l.acts), append(l.s.Agents(), root)
	any := agents[l.dice.IntN(len(agents))]
	switch n := l.dice.IntN(20); {
	case n < 3:
		l.do(root, say("u"+id, "pay it"))
	case n < 4:
		l.do(any, say("u"+id, "pay it"))
	case n < 6:
		l.do(root, messages.Interrupt{ID: "i" + id})
	case n < 8:
		l.do(any, messages.Abort{ID: "a" + id})
	case n < 10:
		l.do(any, messages.Delete{ID: "d" + id})
	case n < 13:
		l.decide(root, l.dice.IntN(3) == 0)
	case n < 15:
		l.restart(l.dice.IntN(3) > 0)
	case n < 16:
		l.do(any, messages.Clear{ID: "c" + id})
	default:
		l.pass(time.Duration(l.dice.IntN(90_000)) * time.Millisecond)
	}
	if l.dice.IntN(3) > 0 {
		synctest.Wait()
	}
}

// restart ends the node, sometimes as a crash, and starts one that knows all kinds,
// or the root's alone. The one before may live on beside that, as in a rolling
// deploy.
func (l *familyLife) restart(knows bool) {
	if l.old != nil {
		l.old.Stop()
		l.old = nil
	}
	switch n := l.dice.IntN(4); {
	case n < 2 && !knows:
		l.old = l.node
	case n == 2:
		l.node.Crash()
	default:
		l.node.Stop()
	}
	cfg := l.f.config()
	if !knows {
		cfg = l.f.former()
		cfg.Definitions[0].Kind = []string{"root", "stranger"}[l.dice.IntN(2)]
	}
	l.start(cfg)
	l.wake(knows)
}

func (l *familyLife) start(cfg actors.Config) {
	l.node = l.s.Start(cfg)
	l.kinds[l.node.Epoch()] = l.node.Runtime().Kinds()
}

// wake does as the owner of a partition.
func (l *familyLife) wake(knows bool) {
	for _, a := range l.s.Owing() {
		if knows {
			l.node.Activate(a)
		}
	}
}

func (l *familyLife) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// decide decides, at an agent, whatever that is told of.
func (l *familyLife) decide(a messages.AgentID, deny bool) {
	for _, w := range first(l.state(a).Waits(a)) {
		id := "p" + strconv.Itoa(l.acts) + string(w.Turn) + w.Agent
		if deny {
			l.do(a, messages.Deny{ID: id, Call: w.Call, Turn: w.Turn})
		} else {
			l.do(a, messages.Approve{ID: id, Call: w.Call, Turn: w.Turn})
		}
	}
}

func (l *familyLife) state(a messages.AgentID) *turn.State {
	var s turn.State
	for _, f := range l.s.Frames(a) {
		s.Apply(f)
	}
	return &s
}

// settle has a person decide, and says whether nobody has anything to do.
func (l *familyLife) settle() bool {
	l.acts++
	l.wake(true)
	for _, a := range append([]messages.AgentID{root}, l.s.Agents()...) { // some work for nobody
		l.decide(a, false)
		synctest.Wait()
	}
	for _, a := range l.s.Agents() {
		if s := l.state(a); s.Open() || s.Turn != nil {
			return false
		}
	}
	return true
}

// begins says that an event begins something, which takes a definition.
func begins(ev messages.Event) bool {
	switch ev.(type) {
	case messages.TurnStarted, messages.ModelRequested, messages.ModelRestarted, messages.ModelCompleted, messages.ModelFailed,
		messages.ToolStarted, messages.ToolCompleted, messages.AgentConfigured:
		return true
	}
	return false
}

// within holds that nodes leave agents alone whose kind they do not know, and that no
// call fails because of that.
func (l *familyLife) within(a messages.AgentID) {
	for _, f := range l.s.Frames(a) {
		for _, ev := range f.Events {
			if begins(ev) && !slices.Contains(l.kinds[f.Epoch], a.Kind) {
				l.t.Errorf("%s: %s by a node that knows %v", a, ev.EventType(), l.kinds[f.Epoch])
			}
			if failed, is := ev.(messages.ChildFailed); is && failed.Reason == string(messages.UnknownKind) {
				l.t.Errorf("%s: a child failed because its kind was not known for a while", a)
			}
		}
	}
}

// check holds that no id is accepted twice within a life, and no call ends twice.
func (l *familyLife) check() {
	for _, a := range l.s.Agents() {
		l.within(a)
		inputs, calls, begun := map[string]int{}, map[string]int{}, map[string]bool{}
		for _, ev := range l.s.Events(a) {
			switch ev := ev.(type) {
			case messages.AgentDeleted:
				clear(inputs)
			case messages.InputAccepted:
				if inputs[ev.Input]++; inputs[ev.Input] > 1 {
					l.t.Errorf("%s has accepted %s twice", a, ev.Input)
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
				l.t.Errorf("call %s of %s has ended %d times", call, a, calls[call])
			}
		}
	}
}

// over holds that every input and every call has ended.
func (l *familyLife) over() {
	for _, a := range l.s.Agents() {
		ended, begun := map[string]int{}, map[string]bool{}
		for _, ev := range l.s.Events(a) {
			for _, id := range first(messages.Ended(ev)) {
				ended["input "+id]++
			}
			switch ev := ev.(type) {
			case messages.AgentDeleted:
				l.all(a, begun, ended)
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
		l.all(a, begun, ended)
	}
}

func (l *familyLife) all(a messages.AgentID, begun map[string]bool, ended map[string]int) {
	for what := range begun {
		if ended[what] != 1 {
			l.t.Errorf("%s of %s has ended %d times", what, a, ended[what])
		}
	}
}

func first[T any](v T, _ bool) T { return v }
