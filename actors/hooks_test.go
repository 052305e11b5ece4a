package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// hooked returns the configuration of a node whose model is p and whose agents have these
// hooks.
func hooked(p providers.Provider, tools []tool.Tool, hooks ...actors.Hook) actors.Config {
	return with(config(p, tools...), func(d *actors.Definition) { d.Hooks = hooks })
}

// recorder is a tool that records the arguments of its calls.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) tool(name string, onUnknown tool.OnUnknown) *tool.Typed[map[string]any] {
	return tool.New(name, "does "+name, onUnknown, func(_ context.Context, a map[string]any) (string, error) {
		b, err := json.Marshal(a)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, string(b))
		return name + string(b), err
	})
}

func (r *recorder) calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// decided returns each hook.decided of the agent as point/hook decision: reason.
func decided(all []messages.Event) (lines []string) {
	for _, h := range actorstest.Of[messages.HookDecided](all) {
		lines = append(lines, fmt.Sprintf("%s/%s %s: %s", h.Point, h.Hook, h.Decision, h.Reason))
	}
	return lines
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestHooksRunInOrder(t *testing.T) { // A61
	var mu sync.Mutex
	var asked []string
	at := func(name string, order int, fail error) actors.Hook {
		note := func(point string) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, point+" "+name)
		}
		return actors.Hook{Name: name, Order: order,
			TurnStart: func(context.Context, actors.HookInfo) (actors.Verdict, error) {
				note("start")
				return actors.Verdict{}, nil
			},
			TurnEnd: func(_ context.Context, _ actors.HookInfo, end actors.HookedEnd) (actors.Verdict, error) {
				note("end " + end.Status + " " + end.Output)
				return actors.Verdict{}, fail
			},
		}
	}
	s := actorstest.New(t, nil)
	cfg := hooked(scripted.New(scripted.Say("hello")), nil, at("late", 1, nil), at("default", 0, errors.New("no disk")), at("early", -1, nil))
	s.Start(cfg).Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	wantLines(t, "asked", asked, "start early", "start default", "start late",
		"end completed hello early", "end completed hello default", "end completed hello late")
	wantLines(t, "facts", decided(all), "turn_end/default failed: no disk")
	if n := count(all, "turn.completed"); n != 1 {
		t.Errorf("got %d terminal events, want 1: %v", n, s.Types(ada))
	}
}

// TestHooksDecide plays every decision at every point. The log has the decision with its
// reason, and the turn has one terminal event.
func TestHooksDecide(t *testing.T) { // A33, A61, A62, A63
	want := func(v actors.Verdict) func() (actors.Verdict, error) {
		v.Reason = "because"
		return func() (actors.Verdict, error) { return v, nil }
	}
	panics := func() (actors.Verdict, error) { panic("bug") }
	exits := func() (actors.Verdict, error) { runtime.Goexit(); return actors.Verdict{}, nil }
	for _, c := range []struct {
		name string
		at   string
		do   func() (actors.Verdict, error)
		end  string   // type of the terminal event
		out  string   // of turn.completed
		runs []string // of the tool
		asks int      // model calls
		read string   // what the model received of the call; empty: not checked
	}{
		{"start continues", "turn_start", want(actors.Verdict{Do: actors.Continue}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"start finishes", "turn_start", want(actors.Verdict{Do: actors.Finish, Text: "no"}), "turn.completed", "no", nil, 0, ""},
		{"start skips", "turn_start", want(actors.Verdict{Do: actors.Skip, Text: "no"}), "turn.completed", "no", nil, 0, ""},
		{"start pauses", "turn_start", want(actors.Verdict{Do: actors.Pause}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"start panics", "turn_start", panics, "turn.failed", "", nil, 0, ""},
		{"start exits", "turn_start", exits, "turn.failed", "", nil, 0, ""},
		{"start returns an unknown decision", "turn_start", want(actors.Verdict{Do: "stop"}), "turn.failed", "", nil, 0, ""},
		{"model finishes", "before_model", want(actors.Verdict{Do: actors.Finish, Text: "no"}), "turn.completed", "no", nil, 0, ""},
		{"model skips", "before_model", want(actors.Verdict{Do: actors.Skip, Text: "no"}), "turn.completed", "no", nil, 0, ""},
		{"model pauses", "before_model", want(actors.Verdict{Do: actors.Pause}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"model panics", "before_model", panics, "turn.failed", "", nil, 0, ""},
		{"answer finishes", "after_model", want(actors.Verdict{Do: actors.Finish, Text: "no"}), "turn.completed", "no", nil, 1, ""},
		{"answer skips", "after_model", want(actors.Verdict{Do: actors.Skip, Text: "not now"}), "turn.completed", "done", nil, 2, `not now`},
		{"answer pauses", "after_model", want(actors.Verdict{Do: actors.Pause}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"answer rewritten", "after_model", want(actors.Verdict{Do: actors.Rewrite, Response: &providers.Response{Items: []messages.Item{messages.Text(messages.RoleAssistant, "other")}}}), "turn.completed", "other", nil, 1, ""},
		{"answer panics", "after_model", panics, "turn.failed", "", nil, 1, ""},
		{"batch finishes", "before_tools", want(actors.Verdict{Do: actors.Finish, Text: "no"}), "turn.completed", "no", nil, 1, ""},
		{"batch skips", "before_tools", want(actors.Verdict{Do: actors.Skip, Text: "not now"}), "turn.completed", "done", nil, 2, `not now`},
		{"batch pauses", "before_tools", want(actors.Verdict{Do: actors.Pause}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"batch rewritten", "before_tools", want(actors.Verdict{Do: actors.Rewrite, Calls: map[messages.CallID]json.RawMessage{"c1": []byte(`{"n":2}`)}}), "turn.completed", "done", []string{`{"n":2}`}, 2, `pay{"n":2}`},
		{"batch panics", "before_tools", panics, "turn.completed", "done", nil, 2, ""},
		{"call finishes", "before_tool", want(actors.Verdict{Do: actors.Finish, Text: "no"}), "turn.completed", "no", nil, 1, ""},
		{"call skips", "before_tool", want(actors.Verdict{Do: actors.Skip, Text: "not now"}), "turn.completed", "done", nil, 2, `not now`},
		{"call pauses", "before_tool", want(actors.Verdict{Do: actors.Pause}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"call rewritten", "before_tool", want(actors.Verdict{Do: actors.Rewrite, Arguments: []byte(`{"n":3}`)}), "turn.completed", "done", []string{`{"n":3}`}, 2, `pay{"n":3}`},
		{"call rewritten badly", "before_tool", want(actors.Verdict{Do: actors.Rewrite, Arguments: []byte(`{oops`)}), "turn.completed", "done", nil, 2, ""},
		{"call panics", "before_tool", panics, "turn.completed", "done", nil, 2, ""},
		{"result finishes", "after_tool", want(actors.Verdict{Do: actors.Finish, Text: "no"}), "turn.completed", "no", []string{`{"n":1}`}, 1, ""},
		{"result pauses", "after_tool", want(actors.Verdict{Do: actors.Pause}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"result rewritten", "after_tool", want(actors.Verdict{Do: actors.Rewrite, Text: "[secret]"}), "turn.completed", "done", []string{`{"n":1}`}, 2, `[secret]`},
		{"result skips", "after_tool", want(actors.Verdict{Do: actors.Skip}), "turn.completed", "done", []string{`{"n":1}`}, 2, `pay{"n":1}`},
		{"result panics", "after_tool", panics, "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"end finishes", "turn_end", want(actors.Verdict{Do: actors.Finish}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"end rewrites", "turn_end", want(actors.Verdict{Do: actors.Rewrite, Text: "better"}), "turn.completed", "better", []string{`{"n":1}`}, 2, ""},
		{"end skips", "turn_end", want(actors.Verdict{Do: actors.Skip}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"end pauses", "turn_end", want(actors.Verdict{Do: actors.Pause}), "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
		{"end always continues", "turn_end", want(actors.Verdict{Do: actors.Continue, Text: "think again"}), "turn.completed", "done", []string{`{"n":1}`}, 6, ""},
		{"end panics", "turn_end", panics, "turn.completed", "done", []string{`{"n":1}`}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var r recorder
			model := scripted.Func(func(q providers.Request) scripted.Step {
				for _, item := range q.Items {
					if item.Type == messages.ItemCallOutput {
						return scripted.Say("done")
					}
				}
				return scripted.Ask(scripted.Call{ID: "c1", Name: "pay", Arguments: `{"n":1}`})
			})
			s := actorstest.New(t, nil)
			cfg := with(hooked(model, []tool.Tool{r.tool("pay", tool.Pause)}, hookAt(c.at, c.do)), func(d *actors.Definition) { d.MaxSteps = 6 })
			var logged lockedBuffer
			cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			node := s.Start(cfg)
			node.Must(ada, say("u1", "go"))
			for n := 1; ; n++ { // a person resumes once after a hook that pauses
				all := s.Await(ada, func(all []messages.Event) bool {
					return count(all, c.end) > 0 || count(all, "turn.paused") >= n
				})
				if count(all, c.end) > 0 {
					break
				}
				if n > 2 {
					t.Fatalf("got more than 2 pauses: %v", s.Types(ada))
				}
				if paused := actorstest.Of[messages.TurnPaused](all)[n-1]; paused.Reason == "approval" {
					node.Must(ada, messages.Approve{ID: fmt.Sprint("go", n), Call: paused.Calls[0]})
				} else {
					node.Must(ada, messages.Resume{ID: fmt.Sprint("go", n)})
				}
			}
			all := s.Events(ada)
			ends(t, all)
			wantLines(t, "the tool ran", r.calls(), c.runs...)
			if model.Calls() != c.asks {
				t.Errorf("got %d model calls, want %d: %v", model.Calls(), c.asks, s.Types(ada))
			}
			if c.read != "" {
				asked := model.Requests()
				if shown := brief(asked[len(asked)-1]); !slices.Contains(shown, "result c1 "+c.read) {
					t.Errorf("the model: got %q, want %q in it", shown, c.read)
				}
			}
			if done := actorstest.Of[messages.TurnCompleted](all); len(done) > 0 && done[0].Output != c.out {
				t.Errorf("got output %q, want %q", done[0].Output, c.out)
			}
			facts := actorstest.Of[messages.HookDecided](all)
			if len(facts) == 0 || string(facts[0].Point) != c.at || facts[0].Hook != "h" || facts[0].Reason == "" {
				t.Errorf("got hook.decided %+v, want one with its reason first", facts)
			}
			if owner := fmt.Sprintf("epoch=%d hook=h", node.Epoch()); strings.Contains(c.name, "panics") && !strings.Contains(logged.String(), owner) {
				t.Errorf("want %q in the log of the node, got %s", owner, &logged)
			}
		})
	}
}

// hookAt is a hook that runs do at one point.
func hookAt(point string, do func() (actors.Verdict, error)) actors.Hook {
	h := actors.Hook{Name: "h"}
	switch point {
	case "turn_start":
		h.TurnStart = func(context.Context, actors.HookInfo) (actors.Verdict, error) { return do() }
	case "before_model":
		h.BeforeModel = func(context.Context, actors.HookInfo, providers.Request) (actors.Verdict, error) { return do() }
	case "after_model":
		h.AfterModel = func(context.Context, actors.HookInfo, providers.Response) (actors.Verdict, error) { return do() }
	case "before_tools":
		h.BeforeTools = func(context.Context, actors.HookInfo, []actors.HookedCall) (actors.Verdict, error) { return do() }
	case "before_tool":
		h.BeforeTool = func(context.Context, actors.HookInfo, actors.HookedCall) (actors.Verdict, error) { return do() }
	case "after_tool":
		h.AfterTool = func(context.Context, actors.HookInfo, actors.HookedCall, actors.HookedResult) (actors.Verdict, error) {
			return do()
		}
	case "turn_end":
		h.TurnEnd = func(context.Context, actors.HookInfo, actors.HookedEnd) (actors.Verdict, error) { return do() }
	}
	return h
}

// The decisions of many hooks do not fit into one frame. The turn ends nevertheless, and its
// log can be read.
func TestHookDecisionsExceedFrame(t *testing.T) { // A61, A102
	long := strings.Repeat("x", 1<<20)
	var hooks []actors.Hook
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		h := hookAt("turn_end", func() (actors.Verdict, error) {
			return actors.Verdict{Do: actors.Rewrite, Text: long, Reason: long}, nil
		})
		h.Name = name
		hooks = append(hooks, h)
	}
	s := actorstest.New(t, nil)
	s.Start(hooked(scripted.New(scripted.Say("done")), nil, hooks...)).Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	size := 0
	for _, h := range actorstest.Of[messages.HookDecided](all) {
		size += len(h.Answer) + len(h.Reason)
	}
	if n := count(all, "hook.decided"); n != 8 || size > 400<<10 {
		t.Errorf("got %d decisions of %d bytes, want 8 of at most 400 KiB", n, size)
	}
}

// The model receives a request that a hook has replaced. The log has the digest of that
// request, which differs from that of the history.
func TestHookReplacesRequest(t *testing.T) { // A62
	replace := actors.Hook{Name: "brief", BeforeModel: func(_ context.Context, in actors.HookInfo, r providers.Request) (actors.Verdict, error) {
		if in.Step == 0 || len(in.Inputs) == 0 {
			return actors.Verdict{}, errors.New("no step or no inputs")
		}
		r.Instructions, r.Items = "Say no.", r.Items[len(r.Items)-1:]
		return actors.Verdict{Do: actors.Rewrite, Request: &r, Reason: "shorter"}, nil
	}}
	model := scripted.New(scripted.Say("one"), scripted.Say("two"))
	s := actorstest.New(t, nil)
	node := s.Start(hooked(model, nil, replace))
	node.Must(ada, say("u1", "first"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "second"))
	all := s.Until(ada, "turn.completed", 2)
	got := model.Requests()[1]
	wantItems(t, got, "user second")
	if got.Instructions != "Say no." || got.Agent != ada || got.Call == "" {
		t.Errorf("the model: got %+v, want the replaced request with its agent and call", got)
	}
	asked := actorstest.Of[messages.ModelRequested](all)
	if len(asked[1].Request) != 64 || asked[0].Request == asked[1].Request {
		t.Errorf("got digests %q and %q, want different ones of 64 digits", asked[0].Request, asked[1].Request)
	}
	wantLines(t, "facts", decided(all), "before_model/brief rewrite: shorter", "before_model/brief rewrite: shorter")
}

// A hook that changes its request in place changes neither what is sent nor what the agent
// keeps.
func TestHooksGetCopies(t *testing.T) { // A62, A80
	spoil := actors.Hook{Name: "spoil",
		BeforeModel: func(_ context.Context, _ actors.HookInfo, r providers.Request) (actors.Verdict, error) {
			r.Items[0].Content[0].Text = "[redacted]"
			return actors.Verdict{}, nil
		},
		AfterModel: func(_ context.Context, _ actors.HookInfo, r providers.Response) (actors.Verdict, error) {
			r.Items[0].Content[0].Text = "[redacted]"
			return actors.Verdict{}, nil
		},
	}
	model := scripted.New(scripted.Say("one"), scripted.Say("two"))
	s := actorstest.New(t, nil)
	node := s.Start(hooked(model, nil, spoil))
	node.Must(ada, say("u1", "first"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "second"))
	s.Until(ada, "turn.completed", 2)
	wantItems(t, model.Requests()[1], "user first", "assistant one", "user second")
}

// TestCutOffCallsNeverRun holds that neither hooks nor the tool run for a call whose answer
// was cut off, and that the model is called again.
func TestCutOffCallsNeverRun(t *testing.T) {
	asked := actors.Hook{Name: "asked",
		BeforeTool: func(_ context.Context, _ actors.HookInfo, c actors.HookedCall) (actors.Verdict, error) {
			t.Errorf("got a hook for %s, want none", c.Tool)
			return actors.Verdict{}, nil
		},
	}
	ran := tool.New("pay", "", tool.Pause, func(context.Context, struct{}) (string, error) {
		t.Error("got a run of the tool, want none")
		return "", nil
	})
	cut := scripted.Ask(scripted.Call{Name: "pay", Arguments: "{}"})
	cut.Finish = messages.FinishLength
	s := actorstest.New(t, nil)
	s.Start(hooked(scripted.New(cut, scripted.Say("shorter")), []tool.Tool{ran}, asked)).Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	if count(all, "tool.started") != 0 || count(all, "tool.failed") != 1 {
		t.Errorf("got the events %v, want one failed call that never started", s.Types(ada))
	}
}

// An input that is cancelled while hooks run does not reach a model.
func TestCancelDuringHooks(t *testing.T) { // A10
	gate, first := scripted.NewGate(), make(chan struct{}, 1)
	first <- struct{}{}
	rewrite := actors.Hook{Name: "h", BeforeModel: func(ctx context.Context, in actors.HookInfo, r providers.Request) (actors.Verdict, error) {
		if in.Step == 2 {
			select {
			case <-first: // the first time only
				if err := gate.Wait(ctx); err != nil {
					return actors.Verdict{}, err
				}
			default:
			}
		}
		return actors.Verdict{Do: actors.Rewrite, Request: &r}, nil
	}}
	hold := scripted.NewGate()
	model := scripted.New(scripted.Held(hold, scripted.Ask(call("c1", "look"))), scripted.Say("done"))
	s := actorstest.New(t, nil)
	node := s.Start(hooked(model, []tool.Tool{new(recorder).tool("look", tool.ReadOnly)}, rewrite))
	node.Must(ada, say("u1", "go"))
	<-hold.Reached()
	node.Must(ada, policy("j1", "secret", messages.PolicySteer))
	hold.Release()
	<-gate.Reached()
	node.Must(ada, messages.Cancel{ID: "w", Input: "j1"})
	gate.Release()
	ends(t, s.Until(ada, "turn.completed"))
	wantItems(t, model.Requests()[1], "user go", "call c1", "result c1 look{}")
}

// Middleware wraps the call itself. The first hook is the outermost.
func TestAround(t *testing.T) { // A62
	var r recorder
	around := func(name string) actors.Hook {
		return actors.Hook{Name: name,
			AroundModel: func(ctx context.Context, _ actors.HookInfo, q providers.Request, next func(context.Context) (providers.Response, error)) (providers.Response, error) {
				q.Items[0].Content[0].Text = "changed by " + name // a copy
				resp, err := next(ctx)
				resp.Model += name
				return resp, err
			},
			AroundTool: func(ctx context.Context, _ actors.HookInfo, c actors.HookedCall, next func(context.Context) (string, error)) (string, error) {
				if c.Tool != "pay" {
					return "kept by " + name, nil
				}
				copy(c.Arguments, "[]") // a copy
				out, err := next(ctx)
				return out + " " + name, err
			},
		}
	}
	model := scripted.New(scripted.Ask(call("c1", "pay"), call("c2", "ship")), scripted.Say("done"))
	s := actorstest.New(t, nil)
	s.Start(hooked(model, []tool.Tool{r.tool("pay", tool.Pause), r.tool("ship", tool.Pause)}, around("a"), around("b"))).Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	wantLines(t, "the tool ran", r.calls(), `{}`)
	wantItems(t, model.Requests()[1], "user go", "call c1", "call c2", `result c1 pay{} b a`, "result c2 kept by a")
	if got := actorstest.Of[messages.ModelCompleted](all)[0].Model; !strings.HasSuffix(got, "ba") {
		t.Errorf("got model %q, want one that ends in ba", got)
	}
}

// An end hook also runs for turns that it cannot continue, and a crash while hooks run loses
// nothing.
func TestHooksAndCrashes(t *testing.T) { // A61
	gate, ended := scripted.NewGate(), make(chan actors.HookedEnd, 10)
	var mu sync.Mutex
	asked := 0
	hook := actors.Hook{Name: "h",
		BeforeModel: func(ctx context.Context, _ actors.HookInfo, _ providers.Request) (actors.Verdict, error) {
			mu.Lock()
			asked++
			first := asked == 1
			mu.Unlock()
			if first {
				return actors.Verdict{Do: actors.Finish, Text: "from the dead"}, gate.Wait(ctx)
			}
			return actors.Verdict{}, nil
		},
		TurnEnd: func(_ context.Context, _ actors.HookInfo, end actors.HookedEnd) (actors.Verdict, error) {
			ended <- end
			return actors.Verdict{}, nil
		},
	}
	hang := scripted.NewGate()
	model := scripted.New(scripted.Say("hello"), scripted.Held(hang, scripted.Say("late")), scripted.Fail(&providers.Error{Kind: providers.Auth, Message: "no"}))
	s := actorstest.New(t, nil)
	node := s.Start(hooked(model, nil, hook))
	node.Must(ada, say("u1", "go"))
	<-gate.Reached()
	node.Crash()
	gate.Release()
	node = s.Start(hooked(model, nil, hook))
	node.Activate(ada)
	all := s.Until(ada, "turn.completed")
	if out := actorstest.Of[messages.TurnCompleted](all)[0].Output; out != "hello" {
		t.Errorf("got output %q, want hello", out)
	}
	if end := <-ended; end.Status != "completed" || end.Output != "hello" {
		t.Errorf("got end %+v, want completed with hello", end)
	}
	node.Must(ada, say("u2", "go"))
	<-hang.Reached()
	node.Must(ada, messages.Abort{ID: "a", Reason: "enough"})
	if end := <-ended; end.Status != "aborted" || end.Reason != "enough" {
		t.Errorf("got end %+v, want aborted with its reason", end)
	}
	node.Must(ada, say("u3", "go"))
	if end := <-ended; end.Status != "failed" || end.Reason != "auth" {
		t.Errorf("got end %+v, want failed by auth", end)
	}
	ends(t, s.Events(ada))
}
