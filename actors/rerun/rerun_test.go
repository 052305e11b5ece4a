package rerun_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

var ann = actorstest.Agent("support", "ann")

type refund struct {
	Order int `json:"order"`
}

// bench is a support agent with tools that count their calls.
type bench struct {
	mu   sync.Mutex
	keys []string // of calls that ran
	out  string   // of look
}

func (b *bench) called(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = append(b.keys, tool.Key(ctx))
}

func (b *bench) config(model providers.Provider) actors.Config {
	look := tool.New("look", "Look an order up", tool.ReadOnly, func(ctx context.Context, r refund) (string, error) {
		b.called(ctx)
		if r.Order == 0 {
			return "", errors.New("there is no order 0")
		}
		return "order found" + b.out, nil
	})
	pay := tool.New("pay", "Pay an order back", tool.Reconcile, func(ctx context.Context, _ refund) (string, error) {
		b.called(ctx)
		return "paid", nil
	}).ReconcileWith(func(context.Context, string) (string, tool.Found, error) {
		return "", tool.Unsure, nil
	}).ApproveIf(func(r refund) bool { return r.Order > 100 })
	return actors.Config{
		Providers:   providers.Set{"scripted": model},
		Definitions: []actors.Definition{{Kind: "support", Model: "scripted/m", Instructions: "Be kind.", Tools: []tool.Tool{look, pay}, MaxAttempts: 1}},
		Logger:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

func ask(id, name, arguments string) scripted.Step {
	return scripted.Ask(scripted.Call{ID: messages.CallID(id), Name: name, Arguments: arguments})
}

// live records a life: do drives the agent, one input a turn if it is nil.
func live(t *testing.T, cfg actors.Config, do func(*actorstest.Stage, *actorstest.Node), inputs ...string) rerun.Recorded {
	t.Helper()
	stage := actorstest.New(t, nil)
	node := stage.Start(cfg)
	for i, text := range inputs {
		node.Must(ann, actorstest.Say("u"+string(rune('1'+i)), text))
		if do == nil {
			stage.Rest()
		}
	}
	if do != nil {
		do(stage, node)
	}
	return rerun.Recorded{Agent: ann, Frames: stage.Frames(ann)}
}

// again runs a recorded agent again and holds the outcome.
func again(t *testing.T, cfg actors.Config, rec rerun.Recorded, o rerun.Options, want rerun.Outcome, parts ...string) rerun.Result {
	t.Helper()
	r, err := rerun.Run(t.Context(), cfg, rec, o)
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text()
	if r.Result != want {
		t.Fatalf("got %s, want %s", text, want)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	return r
}

var model = rerun.Options{Model: true}

// Recorded results are given to the model, without a call of a tool, also failures and those of repeated
// calls in their order.
func TestRecordedTools(t *testing.T) { // A82
	b := new(bench)
	script := func() providers.Provider {
		return scripted.New(ask("c1", "pay", `{"order":7}`), ask("c2", "look", `{"order":0}`), scripted.Say("Paid."), scripted.Say("Bye."))
	}
	rec := live(t, b.config(script()), nil, "Order 7 came broken", "Thanks")
	before := len(b.keys)
	r := again(t, b.config(script()), rec, model, rerun.Same, "same; turns: 2; calls: 2 equal, 0 changed, 0 missing, 0 new")
	if len(b.keys) != before || before != 2 {
		t.Errorf("tools ran %d times, then %d", before, len(b.keys))
	}
	if now := r.Turns[0].Now.Calls; len(now) != 2 || now[0].Output != "paid" || now[1].Output != "there is no order 0" || now[1].Outcome != "failed" {
		t.Errorf("got %+v", now)
	}
	other := scripted.New(ask("x", "pay", `{ "order" : 7 }`), ask("y", "pay", `{"order":7}`), scripted.Say("Paid twice?"), scripted.Say("Bye."))
	r = again(t, b.config(other), rec, model, rerun.Differs,
		"calls: 1 equal, 0 changed, 1 missing, 1 new", "first difference, in turn 1", `recorded: look({"order":0})`, `now:      pay({"order":7})`,
		"answer of turn 1", "Paid twice?", `not on record: pay({"order":7}) has no result`)
	if !r.Turns[1].Same || len(b.keys) != before || r.Turns[0].Now.Calls[1].Outcome != "failed" {
		t.Errorf("got %+v", r.Turns)
	}
}

// An agent whose model cannot be asked has failed, and the other turns are not tried. The turn that has
// failed is no difference; one before it may be.
func TestModelFails(t *testing.T) {
	b := new(bench)
	rec := live(t, b.config(scripted.New(scripted.Say("Hello."), scripted.Say("Bye."))), nil, "Hi", "Thanks")
	down := scripted.Fail(&providers.Error{Kind: providers.Network, Message: "connection refused"})
	grades := rerun.Options{Model: true, Grade: func(context.Context, rerun.AgentRun) (rerun.Score, error) {
		t.Error("it was graded")
		return rerun.Score{}, nil
	}}
	script := scripted.New(scripted.Say("Hello."), down)
	r := again(t, b.config(script), rec, grades, rerun.Failed, "support/ann: failed: turn 2: the model could not be reached: connection refused")
	if script.Calls() != 2 || !r.Turns[0].Same || r.Difference != nil || strings.Contains(r.Text(), "difference") || strings.Contains(r.Text(), "answer of") {
		t.Errorf("the model was called %d times: %s", script.Calls(), r.Text())
	}
	r = again(t, b.config(scripted.New(down)), rec, grades, rerun.Failed, "turn 1: the model could not be reached")
	if len(r.Turns) != 2 || r.Difference != nil || strings.Contains(r.Text(), "answer of") {
		t.Errorf("got %s", r.Text())
	}
	r = again(t, b.config(scripted.New(scripted.Say("Hi there."), down)), rec, grades, rerun.Failed, "first difference, in turn 1", "now:      Hi there.")
	if strings.Contains(r.Text(), "turn 2\n") {
		t.Errorf("got %s", r.Text())
	}
	refused := scripted.Fail(&providers.Error{Kind: providers.BadRequest, Status: 400, Message: "no such model"})
	again(t, b.config(scripted.New(refused)), rec, grades, rerun.Failed, "turn 1: the model failed (bad_request, status 400): no such model")
}

// An input that the definition of today refuses ends the run, whose turns so far are compared.
func TestInputRefused(t *testing.T) {
	b := new(bench)
	script := func() providers.Provider { return scripted.New(scripted.Say("Hello."), scripted.Say("Bye.")) }
	rec := live(t, b.config(script()), func(s *actorstest.Stage, n *actorstest.Node) {
		s.Until(ann, "turn.completed")
		n.Must(ann, messages.Input{ID: "u2", Content: messages.TextContent("Thanks"), Options: messages.InputOptions{ToolChoice: "pay"}})
		s.Until(ann, "turn.completed", 2)
	}, "Hi")
	o := rerun.Options{Model: true, Set: messages.ForkChanges{Tools: []string{"look"}}}
	r := again(t, b.config(script()), rec, o, rerun.Failed, "support/ann: failed: turn 2: the recorded command", "tool_choice", "now 1 model call,")
	if len(r.Turns) != 2 || !r.Turns[0].Same {
		t.Errorf("got %+v", r.Turns)
	}
}

// offered are tools of a source.
type offered []tool.Tool

func (o offered) Tools() ([]tool.Tool, <-chan struct{}) { return o, nil }

// A tool of a source has recorded results; one that a node would leave out is left out.
func TestSources(t *testing.T) {
	b := new(bench)
	config := func() actors.Config {
		cfg := b.config(scripted.New(ask("c1", "look", `{"order":7}`), scripted.Say("Found.")))
		d := &cfg.Definitions[0]
		bad := tool.New("not a name", "Does not work", tool.ReadOnly, func(context.Context, refund) (string, error) { return "", nil })
		d.Sources, d.Tools = []tool.Source{offered{d.Tools[0], bad}}, d.Tools[1:]
		return cfg
	}
	rec := live(t, config(), nil, "Hi")
	again(t, config(), rec, model, rerun.Same, "calls: 1 equal")
	if len(b.keys) != 1 {
		t.Errorf("look ran %d times", len(b.keys))
	}
}

// Decisions are as recorded, by the arguments of the call. Without one the call is denied.
func TestRecordedDecisions(t *testing.T) {
	b := new(bench)
	script := scripted.New(ask("c1", "pay", `{"order":700}`), scripted.Say("Paid."), ask("c2", "pay", `{"order":800}`), scripted.Say("Not paid."))
	rec := live(t, b.config(script), func(s *actorstest.Stage, n *actorstest.Node) {
		s.Until(ann, "turn.paused")
		n.Must(ann, messages.Approve{ID: "a1", Call: "c1"})
		s.Until(ann, "turn.completed")
		n.Must(ann, actorstest.Say("u2", "And order 800"))
		s.Until(ann, "turn.paused", 2)
		text := "Not this one."
		n.Must(ann, messages.Deny{ID: "a2", Call: "c2", Text: &text})
		s.Until(ann, "turn.completed", 2)
	}, "Order 700 came broken")
	swapped := scripted.New(ask("x1", "pay", `{"order":800}`), scripted.Say("One."), ask("x2", "pay", `{"order":700}`), ask("x3", "pay", `{"order":900}`), scripted.Say("Two."))
	r := again(t, b.config(swapped), rec, model, rerun.Differs, `not on record: pay({"order":900}) has no decision of a person`)
	first, second := r.Turns[0].Now.Calls, r.Turns[1].Now.Calls
	if len(first) != 1 || len(second) != 2 || first[0].Output != "Not this one." || second[0].Output != "paid" || second[1].Outcome != "denied" {
		t.Errorf("got %+v and %+v", first, second)
	}
}

// An input that steered a turn comes while the same model call runs, or behind the turn if that has ended.
func TestSteeredInputs(t *testing.T) {
	b := new(bench)
	heard := func(gate *scripted.Gate) providers.Provider {
		return scripted.Func(func(r providers.Request) scripted.Step {
			last := r.Items[len(r.Items)-1].Content.Text()
			switch {
			case last == "Hi" && gate != nil:
				return scripted.Held(gate, ask("c1", "look", `{"order":7}`))
			case last == "Hi":
				return ask("c1", "look", `{"order":7}`)
			}
			return scripted.Say("You wrote: " + last)
		})
	}
	gate := scripted.NewGate()
	rec := live(t, b.config(heard(gate)), func(s *actorstest.Stage, n *actorstest.Node) {
		<-gate.Reached()
		n.Must(ann, messages.Input{ID: "u2", Policy: messages.PolicySteer, Content: messages.TextContent("be brief")})
		gate.Release()
		s.Until(ann, "turn.completed")
	}, "Hi")
	again(t, b.config(heard(nil)), rec, model, rerun.Same, "same; turns: 1")
	r := again(t, b.config(scripted.New(scripted.Say("Hello."), scripted.Say("Brief."))), rec, model, rerun.Differs)
	if now := r.Turns[0].Now; len(now.Inputs) != 2 || now.Answer != "Brief." {
		t.Errorf("got %+v", r.Turns)
	}
}

// An input that came too late for the turn of today has one of its own.
func TestLateSteering(t *testing.T) {
	b := new(bench)
	gate := scripted.NewGate()
	script := scripted.New(ask("c1", "look", `{"order":7}`), scripted.Held(gate, scripted.Say("Found.")), scripted.Say("Briefly: found."))
	rec := live(t, b.config(script), func(s *actorstest.Stage, n *actorstest.Node) {
		<-gate.Reached()
		n.Must(ann, messages.Input{ID: "u2", Policy: messages.PolicySteer, Content: messages.TextContent("be brief")})
		gate.Release()
		s.Until(ann, "turn.completed")
	}, "Hi")
	r := again(t, b.config(scripted.New(scripted.Say("Hello."), scripted.Say("Brief."))), rec, model, rerun.Differs, "differs; turns: 2")
	if first, second := r.Turns[0].Now, r.Turns[1].Now; first.Answer != "Hello." || second.Answer != "Brief." || r.Turns[1].Recorded != nil {
		t.Errorf("got %+v", r.Turns)
	}
}

// Equal calls have the recorded decisions in their order.
func TestDecisionsInOrder(t *testing.T) {
	b := new(bench)
	script := func() providers.Provider {
		return scripted.New(ask("c1", "pay", `{"order":700}`), scripted.Say("Paid."), ask("c2", "pay", `{"order":700}`), scripted.Say("Not paid."))
	}
	rec := live(t, b.config(script()), func(s *actorstest.Stage, n *actorstest.Node) {
		s.Until(ann, "turn.paused")
		n.Must(ann, messages.Approve{ID: "a1", Call: "c1"})
		s.Until(ann, "turn.completed")
		n.Must(ann, actorstest.Say("u2", "Again"))
		s.Until(ann, "turn.paused", 2)
		n.Must(ann, messages.Deny{ID: "a2", Call: "c2"})
		s.Until(ann, "turn.completed", 2)
	}, "Order 700 came broken")
	r := again(t, b.config(script()), rec, model, rerun.Same)
	if calls := r.Turns[1].Now.Calls; r.Turns[0].Now.Calls[0].Output != "paid" || calls[0].Outcome != "denied" || calls[0].Output != messages.DeniedText {
		t.Errorf("got %+v", r.Turns)
	}
}

// What changes the history between turns is done again; a turn that a person stopped runs to its end.
func TestOtherCommands(t *testing.T) {
	b := new(bench)
	gate := scripted.NewGate()
	counts := func(held bool) providers.Provider {
		return scripted.Func(func(r providers.Request) scripted.Step {
			if held && r.Items[len(r.Items)-1].Content.Text() == "stop" {
				return scripted.Held(gate, scripted.Say("never"))
			}
			return scripted.Say(string(rune('0' + len(r.Items))))
		})
	}
	rec := live(t, b.config(counts(true)), func(s *actorstest.Stage, n *actorstest.Node) {
		s.Until(ann, "turn.completed", 2)
		n.Must(ann, messages.Clear{ID: "k1"})
		n.Must(ann, actorstest.Say("u3", "three"))
		s.Until(ann, "turn.completed", 3)
		n.Must(ann, actorstest.Say("u4", "stop"))
		<-gate.Reached()
		n.Must(ann, messages.Abort{ID: "k2"})
		s.Until(ann, "turn.aborted")
	}, "one", "two")
	r := again(t, b.config(counts(false)), rec, model, rerun.Differs, "first difference, in turn 4", "recorded: aborted", "now:      3")
	if r.Turns[2].Now.Answer != "1" {
		t.Errorf("the third turn has %+v", r.Turns[2].Now)
	}
}

// Payloads that are kept as blobs are given whole.
func TestLargeResult(t *testing.T) {
	b := &bench{out: strings.Repeat(" and found", 200_000)}
	length := func(r providers.Request) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Type == messages.ItemCallOutput {
			return scripted.Say(last.Output[len(last.Output)-9:])
		}
		return ask("c1", "look", `{"order":7}`)
	}
	stage := actorstest.New(t, nil)
	stage.Start(b.config(scripted.Func(length))).Must(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")
	frames, err := rerun.Stored(t.Context(), stage.Store(), ann, stage.Frames(ann))
	if err != nil {
		t.Fatal(err)
	}
	r := again(t, b.config(scripted.Func(length)), rerun.Recorded{Agent: ann, Frames: frames}, model, rerun.Same)
	if now := r.Turns[0].Now; now.Calls[0].Output != "order found"+b.out || now.Answer != "and found" {
		t.Errorf("got %d bytes, answer %q", len(now.Calls[0].Output), now.Answer)
	}
}

// Tools that may run do so under keys of their own, and those that only read run by themselves.
func TestLiveTools(t *testing.T) {
	b := new(bench)
	rec := live(t, b.config(scripted.New(ask("c1", "look", `{"order":7}`), ask("c2", "pay", `{"order":7}`), scripted.Say("Paid."))), nil, "Order 7 came broken")
	old := slices.Clone(b.keys)
	again(t, b.config(scripted.New()), rec, rerun.Options{Tools: rerun.ReadOnly}, rerun.Same, "calls made again: 1 with the recorded result", "ran: look (1)", "not run: pay (1)")
	b.out = " elsewhere"
	r := again(t, b.config(scripted.New()), rec, rerun.Options{Tools: rerun.AllTools}, rerun.Differs, `look({"order":7})`, "recorded: order found", "now:      order found elsewhere", "ran: look (1), pay (1)")
	if r.Calls.Equal != 1 || r.Calls.Changed != 1 || len(b.keys) != 5 {
		t.Errorf("got %+v, keys %q", r.Calls, b.keys)
	}
	live := scripted.New(ask("x1", "look", `{"order":8}`), ask("x2", "pay", `{"order":7}`), scripted.Say("Paid."))
	again(t, b.config(live), rec, rerun.Options{Model: true, Tools: rerun.ReadOnly}, rerun.Differs, "calls: 1 equal, 1 changed, 0 missing, 0 new", "ran: look (1)")
	for i, key := range b.keys {
		if key == "" || i >= len(old) && slices.Contains(b.keys[:i], key) {
			t.Errorf("call %d has key %q of %q", i, key, b.keys)
		}
	}
}

// A hook that calls a tool again has one key, as on a node.
func TestKeyOfAttempts(t *testing.T) {
	b := new(bench)
	script := func() providers.Provider { return scripted.New(ask("c1", "pay", `{"order":7}`), scripted.Say("Paid.")) }
	rec := live(t, b.config(script()), nil, "Hi")
	cfg := b.config(script())
	cfg.Definitions[0].Hooks = []actors.Hook{{Name: "twice", AroundTool: func(ctx context.Context, _ actors.HookInfo, _ actors.HookedCall, next func(context.Context) (string, error)) (string, error) {
		_, _ = next(ctx)
		return next(ctx)
	}}}
	again(t, cfg, rec, rerun.Options{Model: true, Tools: rerun.AllTools}, rerun.Same, "ran: pay (2)")
	if len(b.keys) != 3 || b.keys[1] != b.keys[2] || b.keys[0] == b.keys[1] {
		t.Errorf("got keys %q", b.keys)
	}
}

// Both runs are graded, and a grader that fails is no score.
func TestGrade(t *testing.T) {
	b := new(bench)
	rec := live(t, b.config(scripted.New(scripted.Say("Hello."))), nil, "Hi")
	now := func() actors.Config { return b.config(scripted.New(scripted.Say("Hello, how can I help?"))) }
	length := func(_ context.Context, run rerun.AgentRun) (rerun.Score, error) {
		if run.Agent != ann || len(run.Messages) != 2 || run.Turns[0].Inputs[0].Content.Text() != "Hi" {
			t.Errorf("got %+v", run)
		}
		return rerun.Score{Score: float64(len(run.Turns[0].Answer)), Reason: run.Run}, nil
	}
	again(t, now(), rec, rerun.Options{Model: true, Grade: length}, rerun.Differs, "score: recorded 6 (recorded); now 22 (replayed)")
	for want, by := range map[string]rerun.Grader{
		"the recorded run has no score: out of order": func(context.Context, rerun.AgentRun) (rerun.Score, error) {
			return rerun.Score{}, errors.New("out of order")
		},
		"it panicked: oh":     func(context.Context, rerun.AgentRun) (rerun.Score, error) { panic("oh") },
		"print a number, or":  rerun.ToolGrader(printing("good")),
		"it printed \"null\"": rerun.ToolGrader(printing("null")),
		"it printed \"{}\"":   rerun.ToolGrader(printing("{}")),
		"it printed \"1 2\"":  rerun.ToolGrader(printing("1 2")),
		"the score is 1e+308: it must be a number from -1e+09 to 1e+09": rerun.ToolGrader(printing("1e308")),
		"the score is -1.1e+09": rerun.ToolGrader(printing("-1.1e9")),
		"the score is NaN": func(context.Context, rerun.AgentRun) (rerun.Score, error) {
			return rerun.Score{Score: math.NaN()}, nil
		},
	} {
		if r := again(t, now(), rec, rerun.Options{Model: true, Grade: by}, rerun.Differs, want); r.Grades.Now != nil {
			t.Errorf("got %+v", r.Grades)
		}
	}
}

// printing is a grader that prints a text.
type printing string

func (p printing) Spec() tool.Spec                                       { return tool.Spec{Name: "grade"} }
func (p printing) Call(context.Context, json.RawMessage) (string, error) { return string(p), nil }

// A grader prints a number, or an object with one.
func TestScores(t *testing.T) {
	b := new(bench)
	rec := live(t, b.config(scripted.New(scripted.Say("Hello."))), nil, "Hi")
	for output, want := range map[string]string{
		" 0.5\n": "recorded 0.5; now 0.5", `{"score": -2, "reason": "rude", "model": "x"}`: "recorded -2 (rude); now -2 (rude)", "0": "recorded 0; now 0", "1e9": "recorded 1e+09; now 1e+09",
	} {
		again(t, b.config(scripted.New(scripted.Say("Hello."))), rec, rerun.Options{Model: true, Grade: rerun.ToolGrader(printing(output))}, rerun.Same, want)
	}
}

// A stream that cannot be run again is named with the reason.
func TestUnreadable(t *testing.T) {
	b := new(bench)
	cfg := b.config(scripted.New(scripted.Say("Hello.")))
	rec := live(t, cfg, nil, "Hi")
	redacted := rec
	redacted.Incomplete = "texts were replaced"
	again(t, cfg, redacted, model, rerun.Unreadable, "cannot be run again: texts were replaced")
	again(t, cfg, rerun.Recorded{Agent: ann}, model, rerun.Unreadable, "there is nothing to run again")
	again(t, cfg, rerun.Recorded{Agent: actorstest.Agent("sales", "x"), Frames: rec.Frames}, model, rerun.Unreadable, `no agent kind is named "sales"`)
	again(t, cfg, rec, rerun.Options{Model: true, Set: messages.ForkChanges{Model: "none/m"}}, rerun.Unreadable, "none/m")
	again(t, cfg, rec, rerun.Options{Model: true, Set: messages.ForkChanges{Tools: []string{"fly"}}}, rerun.Unreadable,
		`cannot be run again: the tools cannot be chosen: kind support has no tool "fly": it has look, pay`)
	deleted := live(t, b.config(scripted.New(scripted.Say("Hello."))), func(s *actorstest.Stage, n *actorstest.Node) {
		s.Until(ann, "turn.completed")
		n.Must(ann, messages.Delete{ID: "d1"})
		s.Until(ann, "agent.deleted")
	}, "Hi")
	tombstone := deleted.Frames[len(deleted.Frames)-1]
	takeover := &messages.Frame{First: tombstone.Last() + 1, Events: []messages.Event{messages.AgentActivated{Epoch: 2, Previous: 1}}}
	taken := deleted
	taken.Frames = append(slices.Clip(deleted.Frames), takeover)
	for _, o := range []rerun.Options{model, {Tools: rerun.AllTools}} {
		again(t, cfg, taken, o, rerun.Unreadable, "cannot be run again: it is deleted")
		again(t, cfg, deleted, o, rerun.Unreadable, "cannot be run again: it is deleted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rerun.Run(ctx, cfg, rec, model); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	rec = live(t, b.config(scripted.New(ask("c1", "pay", `{"order":7}`), scripted.Say("Paid."))), nil, "Hi")
	ran := len(b.keys)
	if _, err := rerun.Run(ctx, cfg, rec, rerun.Options{Tools: rerun.AllTools}); !errors.Is(err, context.Canceled) || len(b.keys) != ran {
		t.Errorf("got %v, and %d calls", err, len(b.keys)-ran)
	}
}

// A stream that ends in the middle of a turn is run to the end of that turn.
func TestOpenTurn(t *testing.T) {
	b := new(bench)
	gate := scripted.NewGate()
	defer gate.Release()
	rec := live(t, b.config(scripted.New(scripted.Held(gate, scripted.Say("late")))), func(*actorstest.Stage, *actorstest.Node) { <-gate.Reached() }, "Hi")
	again(t, b.config(scripted.New(scripted.Say("Hello."))), rec, model, rerun.Differs, "recorded: running", "now:      Hello.")
}

// A limit that a person would raise ends the turn, and the next one begins.
func TestPausedAtLimit(t *testing.T) {
	b := new(bench)
	rec := live(t, b.config(scripted.New(scripted.Say("Hello."), scripted.Say("Bye."))), nil, "Hi", "Thanks")
	cfg := b.config(scripted.New(ask("c1", "look", `{"order":7}`), scripted.Say("Bye.")))
	cfg.Definitions[0].MaxSteps, cfg.Definitions[0].PauseAtLimit = 1, true
	r := again(t, cfg, rec, model, rerun.Differs, "first difference, in turn 1", "answer of turn 1", "now:      aborted: paused (max_steps)")
	if !r.Turns[1].Same {
		t.Errorf("got %+v", r.Turns[1])
	}
}
