package actors_test

import (
	"context"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

var (
	say   = actorstest.Say
	count = actorstest.Count
	ada   = actorstest.Agent("test", "ada")
	bob   = actorstest.Agent("test", "bob")
)

// config returns the configuration of a node whose agents use the model p.
func config(p providers.Provider, tools ...tool.Tool) actors.Config {
	return actors.Config{
		Providers:   providers.Set{"scripted": p},
		Definitions: []actors.Definition{{Kind: "test", Model: "scripted/m", Instructions: "Be brief.", Tools: tools}},
	}
}

// with returns cfg with a change to its only definition.
func with(cfg actors.Config, change func(*actors.Definition)) actors.Config {
	d := cfg.Definitions[0]
	change(&d)
	cfg.Definitions = []actors.Definition{d}
	return cfg
}

// echo is a model that answers with the last input.
func echo() *scripted.Model {
	return scripted.Func(func(r providers.Request) scripted.Step {
		return scripted.Say("heard " + r.Items[len(r.Items)-1].Content.Text())
	})
}

type none struct{}

// toolOf returns a tool without arguments.
func toolOf(name string, onUnknown tool.OnUnknown, fn func(ctx context.Context) (string, error)) *tool.Typed[none] {
	return tool.New(name, "does "+name, onUnknown, func(ctx context.Context, _ none) (string, error) { return fn(ctx) })
}

// call is a call of a tool without arguments.
func call(id, name string) scripted.Call {
	return scripted.Call{ID: messages.CallID(id), Name: name, Arguments: "{}"}
}

// brief returns a line for each item of a request, with its kind and text.
func brief(r providers.Request) (lines []string) {
	for _, item := range r.Items {
		switch item.Type {
		case messages.ItemCall:
			lines = append(lines, "call "+string(item.CallID))
		case messages.ItemCallOutput:
			lines = append(lines, "result "+string(item.CallID)+" "+item.Output)
		default:
			lines = append(lines, item.Role+" "+item.Content.Text())
		}
	}
	return lines
}

// wantItems checks the items of a request.
func wantItems(t *testing.T, r providers.Request, want ...string) {
	t.Helper()
	got := brief(r)
	same := len(got) == len(want)
	for i := range want {
		same = same && got[i] == want[i]
	}
	if !same {
		t.Errorf("the model: got\n%q\nwant\n%q", got, want)
	}
}

// insist sends a command as an endpoint does: again with the same id while the agent is
// unavailable.
func insist(t *testing.T, n *actorstest.Node, a messages.AgentID, c messages.Command) messages.Answer {
	t.Helper()
	for {
		answer := n.Do(a, c)
		if answer.Err == nil {
			return answer
		}
		if wantCode(t, answer, messages.Unavailable); t.Failed() {
			t.FailNow()
		}
	}
}

// wantCode checks the code with which a command was refused.
func wantCode(t *testing.T, a messages.Answer, code messages.Code) {
	t.Helper()
	if a.Err == nil || a.Err.Code != code {
		t.Errorf("got answer %+v (%v), want a refusal %s", a, a.Err, code)
	}
}

// testObserver is an observer that records replies, deltas and fenced agents.
type testObserver struct {
	mu      sync.Mutex
	replies []actors.Reply
	deltas  []actors.Delta
	fenced  chan messages.AgentID
	panics  bool
}

func newObserver() *testObserver { return &testObserver{fenced: make(chan messages.AgentID, 100)} }

func (e *testObserver) Committed(actors.Commit) {
	if e.panics {
		panic("an observer that fails")
	}
}

func (e *testObserver) Owed(r []actors.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies = append(e.replies, r...)
}

func (e *testObserver) Delta(d actors.Delta) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deltas = append(e.deltas, d)
}

func (*testObserver) Streaming(messages.AgentID, map[string]messages.Stream) {}

func (e *testObserver) Fenced(a messages.AgentID, _ messages.Epoch) { e.fenced <- a }

func (e *testObserver) received() []actors.Reply {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]actors.Reply(nil), e.replies...)
}

// ends checks that every input of the agent ended with exactly one terminal event and that no
// two turns overlapped. It returns the inputs in the order of their turns (A6).
func ends(t *testing.T, all []messages.Event) (order []string) {
	t.Helper()
	ended := make(map[string]int)
	running := messages.TurnID("")
	end := func(turn messages.TurnID, inputs []string) {
		if turn != running {
			t.Errorf("got the end of turn %s while turn %q ran", turn, running)
		}
		running = ""
		for _, id := range inputs {
			ended[id]++
		}
	}
	for _, ev := range all {
		switch ev := ev.(type) {
		case messages.InputAccepted:
			if _, known := ended[ev.Input]; known {
				t.Errorf("got input %s accepted twice, want once", ev.Input)
			}
			ended[ev.Input] = 0
		case messages.TurnStarted:
			if running != "" {
				t.Errorf("got the start of turn %s while turn %s ran", ev.Turn, running)
			}
			running, order = ev.Turn, append(order, ev.Inputs...)
		case messages.TurnCompleted:
			end(ev.Turn, ev.Inputs)
		case messages.TurnFailed:
			end(ev.Turn, ev.Inputs)
		case messages.TurnAborted:
			end(ev.Turn, ev.Inputs)
		case messages.InputCancelled:
			ended[ev.Input]++
		case messages.InputDropped:
			ended[ev.Input]++
		}
	}
	for id, n := range ended {
		if n != 1 {
			t.Errorf("input %s: got %d terminal events, want 1", id, n)
		}
	}
	return order
}
