package turn_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// TestSimulation lives random lives of one agent and checks after every step
// what the package promises. A life depends on its seed alone:
// REPRISE_SEED=7 go test -run Simulation ./actors/turn plays one again.
func TestSimulation(t *testing.T) { // A6, A8, A14, A17, A22, A23, A24, A27, A31, A32
	if seed, err := strconv.ParseUint(os.Getenv("REPRISE_SEED"), 10, 64); err == nil {
		live(t, seed)
		return
	}
	lives := uint64(3200)
	if testing.Short() {
		lives = 320
	}
	for part := range uint64(4) {
		t.Run(fmt.Sprint("part", part), func(t *testing.T) {
			t.Parallel()
			steps := 0
			for seed := part; seed < lives; seed += 4 {
				steps += live(t, seed)
			}
			t.Logf("%d lives, %d steps", lives/4, steps)
		})
	}
}

// FuzzLife looks for seeds that nobody has tried.
func FuzzLife(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { live(t, seed) })
}

// live lives one life and gives the number of its steps.
func live(t *testing.T, seed uint64) int {
	s := newSim(t, seed)
	defer func() {
		if p := recover(); p != nil {
			s.fail("panic: %v", p)
		}
	}()
	for range 30 + s.r.IntN(120) {
		s.step()
	}
	// Any prefix of the log can be gone on with (A24).
	prefix := newSim(t, seed)
	prefix.r, prefix.env, prefix.past = s.r, s.env, true
	for _, f := range s.log[:s.r.IntN(len(s.log)+1)] {
		prefix.live.Apply(f)
		prefix.append(f)
	}
	prefix.past, prefix.print = false, fingerprint(prefix.live)
	prefix.decide(turn.Recover{})
	prefix.drain()
	s.drain()
	s.fromScratch()
	return s.steps + prefix.steps
}

// sim is an agent, its log, and a world that answers as the dice fall.
type sim struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	env   turn.Env
	live  *turn.State
	fold  *turn.State // the same life, told by its frames alone
	log   []*messages.Frame
	check checker
	late  []any // outcomes that were given once and may come again
	ids   []string
	steps int
	print string // of the live state as of its newest event
	past  bool   // frames come from the log; their definitions are forgotten
}

func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), live: &turn.State{}, fold: &turn.State{}}
	s.check = newChecker(s)
	s.env = turn.Env{
		Agent: messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"},
		Now:   time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
	}
	s.define()
	s.print = fingerprint(s.live)
	return s
}

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	for _, f := range s.log {
		for i, ev := range f.Events {
			s.t.Logf("%d %s%s", f.First+messages.EventNumber(i), ev.EventType(), eventText(ev))
		}
	}
	s.t.Fatalf("seed %d, step %d: %s", s.seed, s.steps, fmt.Sprintf(format, args...))
}

// define makes a definition; tools come and go, and so do limits.
func (s *sim) define() {
	tools := map[string]turn.Tool{"add": {Class: "pure"}, "pay": {Class: "keyed"}, "ship": {Class: "check"}, "mail": {Class: "once"}}
	if s.r.IntN(4) == 0 {
		delete(tools, []string{"add", "pay", "ship", "mail"}[s.r.IntN(4)])
	}
	s.env.Definition = turn.Definition{
		Digest: fmt.Sprint("d", s.r.IntN(3)), Model: "scripted/m", MaxSteps: 1 + s.r.IntN(4), MaxQueue: 1 + s.r.IntN(4),
		MaxAttempts: 1 + s.r.IntN(3), Parallel: 1 + s.r.IntN(3), Tools: tools,
	}
}

// step does one thing.
func (s *sim) step() {
	switch s.env.Jitter = s.r.Float64(); s.r.IntN(20) {
	case 0, 1, 2:
		s.decide(s.input())
	case 3:
		s.decide(messages.Interrupt{ID: s.id(), Reason: s.one("", "stop it")})
	case 4:
		s.decide(messages.Abort{ID: s.id()})
	case 5:
		s.decide(messages.Resume{ID: s.id(), Raised: messages.Raised{MaxSteps: s.r.IntN(8)}})
	case 6:
		s.decide(messages.SetState{ID: s.id(), Patch: json.RawMessage(fmt.Sprintf(`{"k%d":%s}`, s.r.IntN(3), s.one("null", "1", `{"a":2}`)))})
	case 7:
		s.decide(messages.Decide{ID: s.id(), Call: s.anyCall(), Outcome: messages.Outcome(s.one("completed", "failed", "retry")), Result: s.one("", "so it was")})
	case 8:
		s.crash()
	case 9:
		if len(s.late) > 0 {
			s.decide(s.late[s.r.IntN(len(s.late))])
		}
	case 10:
		if s.r.IntN(3) == 0 {
			s.define()
		}
		s.env.Now = s.env.Now.Add(time.Duration(s.r.IntN(100)) * time.Second)
	default:
		if effects := s.live.Effects(); len(effects) > 0 {
			s.outcome(s.dice(effects[s.r.IntN(len(effects))]))
		}
	}
}

func (s *sim) outcome(o any) {
	s.late = append(s.late, o)
	s.decide(o)
}

func (s *sim) one(of ...string) string { return of[s.r.IntN(len(of))] }

// id is a new id, or one that was used before.
func (s *sim) id() string {
	if len(s.ids) > 0 && s.r.IntN(5) == 0 {
		return s.ids[s.r.IntN(len(s.ids))]
	}
	s.ids = append(s.ids, fmt.Sprint("id", len(s.ids)))
	return s.ids[len(s.ids)-1]
}

func (s *sim) input() messages.Input {
	in := messages.Input{ID: s.id(), Content: messages.TextContent(s.one("", "hello", "again")), Options: messages.InputOptions{MaxSteps: s.r.IntN(4)}}
	if s.r.IntN(4) == 0 {
		in.Policy = messages.PolicyReject
	}
	if s.r.IntN(8) == 0 {
		deadline := s.env.Now.Add(time.Duration(s.r.IntN(3)-1) * time.Second)
		in.Deadline = &deadline
	}
	return in
}

// anyCall is usually one of the newest step.
func (s *sim) anyCall() messages.CallID {
	if t := s.live.Turn; t != nil && len(t.Calls) > 0 && s.r.IntN(8) > 0 {
		return t.Calls[s.r.IntN(len(t.Calls))].ID
	}
	return "c1"
}

// dice is what comes of an effect, this time.
func (s *sim) dice(e turn.Effect) any {
	switch e.Do {
	case turn.CallModel:
		if s.r.IntN(5) == 0 {
			return turn.ModelErred{Call: e.Call, Kind: "network", Message: "gone", Temporary: s.r.IntN(3) > 0, RetryAfter: time.Duration(s.r.IntN(60)) * time.Second, Shown: s.r.IntN(2) == 0}
		}
		return turn.ModelAnswered{Call: e.Call, Items: s.items(), Usage: messages.Usage{Input: s.r.IntN(9), Output: s.r.IntN(9)}}
	case turn.Wait:
		return turn.TimerDue{Timer: e.Timer}
	case turn.Reconcile:
		return turn.ToolReconciled{Call: e.Call, Done: s.r.IntN(3) == 0, NotDone: s.r.IntN(3) == 0, Output: "found"}
	}
	if s.r.IntN(4) == 0 {
		return turn.ToolErred{Call: e.Call, Attempt: e.Attempt, Kind: s.one("error", "panic", "timeout"), Message: "no"}
	}
	return turn.ToolReturned{Call: e.Call, Attempt: e.Attempt, Output: s.one("", "yes")}
}

// items are an answer: text, and up to four calls whose ids, names and
// arguments are what models make of them.
func (s *sim) items() (items []messages.Item) {
	if s.r.IntN(2) == 0 {
		items = append(items, messages.Text(messages.RoleAssistant, s.one("well", "so")))
	}
	for range max(0, s.r.IntN(7)-2) {
		items = append(items, messages.Item{
			Type: messages.ItemCall, CallID: messages.CallID(s.one("c1", "c2", "call_1", "c1_1", "", "")),
			Name: s.one("add", "pay", "ship", "mail", "mail", "nosuch", ""), Arguments: s.one("{}", `{"a":1}`, "{oops", ""),
		})
	}
	return items
}
