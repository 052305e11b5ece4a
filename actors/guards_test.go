package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// forbids is a guard that keeps a forbidden text from every model. It calls meanwhile each
// time it runs.
func forbids(reason string, meanwhile func()) actors.Hook {
	return actors.Hook{Name: "guard", BeforeModel: func(_ context.Context, _ actors.HookInfo, r providers.Request) (actors.Verdict, error) {
		meanwhile()
		for _, item := range r.Items {
			if strings.Contains(item.Content.Text(), "forbidden") {
				return actors.Verdict{Do: actors.Skip, Text: "no"}, nil
			}
		}
		return actors.Verdict{Reason: reason}, nil
	}}
}

// An answer that arrives after the timeout of its call is dropped, so it does not bypass the
// guards.
func TestLateAnswersAreDropped(t *testing.T) { // A50, A62
	synctest.Test(t, func(t *testing.T) {
		first := true
		late := providers.Func(func(_ context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
			if !first {
				return scripted.New(scripted.Say("done")).Generate(context.Background(), r, emit)
			}
			first = false
			<-time.After(10*time.Minute + time.Second)
			return scripted.New(scripted.Ask(call("c1", "pay"))).Generate(context.Background(), r, emit)
		})
		var paid recorder
		s := actorstest.New(t, nil)
		node := s.Start(hooked(late, []tool.Tool{paid.tool("pay", tool.Pause)}, hookAt("before_tool", func() (actors.Verdict, error) {
			return actors.Verdict{Do: actors.Skip, Text: "never pay"}, nil
		})))
		defer end(node)
		node.Must(ada, say("u1", "go"))
		<-time.After(11 * time.Minute)
		ends(t, s.Until(ada, "turn.completed"))
		wantLines(t, "paid", paid.calls())
	})
}

// A model that streams a long tool call is not stalled; a model that sends nothing is.
func TestSilence(t *testing.T) { // A50
	for pause, want := range map[time.Duration]string{9 * time.Minute: "turn.completed", 11 * time.Minute: "model.failed"} {
		synctest.Test(t, func(t *testing.T) {
			s := actorstest.New(t, nil)
			node := s.Start(hooked(pausing(pause, ""), nil))
			defer end(node)
			node.Must(ada, say("u1", "go"))
			<-time.After(time.Hour)
			if failed := actorstest.Count(s.Until(ada, want), "model.failed") > 0; failed != (want == "model.failed") {
				t.Errorf("with pauses of %v: got failed %t, want %s", pause, failed, want)
			}
		})
	}
}

// The same holds for a model that makes a summary.
func TestSilenceInSummary(t *testing.T) { // A50, A86
	for pause, want := range map[time.Duration]string{9 * time.Minute: "history.compacted", 11 * time.Minute: "compaction.failed"} {
		synctest.Test(t, func(t *testing.T) {
			s := actorstest.New(t, nil)
			node := s.Start(hooked(pausing(pause, actors.SummaryInstructions), nil))
			defer end(node)
			for n := range 3 {
				node.Must(ada, say(fmt.Sprint("u", n), "go"))
				s.Until(ada, "turn.completed", n+1)
			}
			node.Must(ada, messages.Compact{ID: "k1", Keep: 2})
			<-time.After(3 * time.Hour)
			if failed := actorstest.Count(s.Until(ada, want), "compaction.failed") > 0; failed != (want == "compaction.failed") {
				t.Errorf("with pauses of %v: got failed %t, want %s", pause, failed, want)
			}
		})
	}
}

// pausing is a model that pauses three times before it answers, and sends a keep-alive after
// each pause. With instructions it pauses only in calls that have them.
func pausing(pause time.Duration, instructions string) providers.Provider {
	return providers.Func(func(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
		for range 3 {
			if instructions != "" && r.Instructions != instructions {
				break
			}
			select {
			case <-time.After(pause):
				emit(providers.Delta{})
			case <-ctx.Done():
				return providers.Response{}, context.Cause(ctx)
			}
		}
		return scripted.New(scripted.Say("done")).Generate(ctx, r, emit)
	})
}

// A guard before the model runs for every input, also for one that steers the turn during a
// backoff, and also if its earlier verdict had a reason.
func TestGuardSeesWhatSteersLater(t *testing.T) { // A2, A62
	for _, reason := range []string{"", "checked"} {
		synctest.Test(t, func(t *testing.T) {
			model := scripted.New(scripted.Fail(&providers.Error{Kind: providers.Overloaded, Temporary: true, RetryAfter: 20 * time.Second}), scripted.Say("done"))
			s := actorstest.New(t, nil)
			node := s.Start(hooked(model, nil, forbids(reason, func() {})))
			defer end(node)
			node.Must(ada, say("u1", "go"))
			s.Until(ada, "model.failed")
			node.Must(ada, policy("u2", "forbidden", messages.PolicySteer))
			ends(t, s.Until(ada, "turn.completed", 2))
			if model.Calls() != 1 {
				t.Errorf("reason %q: got a model call with %q, want no second call", reason, brief(model.Requests()[1]))
			}
		})
	}
}

// The guard also runs for an input that steers the turn while the guard runs.
func TestGuardSeesWhatSteersMeanwhile(t *testing.T) { // A2, A62
	model := scripted.New(scripted.Say("one"), scripted.Say("two"))
	asked, goOn := make(chan struct{}, 9), make(chan struct{})
	s := actorstest.New(t, nil)
	node := s.Start(hooked(model, nil, forbids("", func() { asked <- struct{}{}; <-goOn })))
	node.Must(ada, say("u1", "go"))
	<-asked
	node.Must(ada, policy("u2", "forbidden", messages.PolicySteer))
	close(goOn)
	ends(t, s.Until(ada, "turn.completed", 2))
	for _, r := range model.Requests() {
		wantItems(t, r, "user go")
	}
}

// The reasons of hooks fit into the frame beside a large result that ends the turn.
func TestNotesBesideLargeResults(t *testing.T) { // A61, A102
	runs := 0
	big := toolOf("big", tool.ReadOnly, func(context.Context) (string, error) { runs++; return strings.Repeat("x", 190<<10), nil })
	var hooks []actors.Hook
	for n := range 4 {
		h := hookAt("after_tool", func() (actors.Verdict, error) { return actors.Verdict{Text: strings.Repeat("y", 46<<10)}, nil })
		h.Name = fmt.Sprint("h", n)
		hooks = append(hooks, h)
	}
	s := actorstest.New(t, nil)
	cfg := hooked(scripted.New(scripted.Ask(call("c1", "big"))), []tool.Tool{big}, hooks...)
	s.Start(with(cfg, func(d *actors.Definition) { d.StopOn = []string{"big"} })).Must(ada, say("u1", "go"))
	ends(t, s.Until(ada, "turn.completed"))
	if runs != 1 {
		t.Errorf("got %d runs of the tool, want 1", runs)
	}
}

// A hook at the end of a turn that returns Continue causes a model call, whatever other hooks
// there are.
func TestContinueWithOtherHooks(t *testing.T) { // A62
	for _, before := range []bool{false, true} {
		said := false
		hooks := []actors.Hook{
			{Name: "a", TurnEnd: func(context.Context, actors.HookInfo, actors.HookedEnd) (actors.Verdict, error) {
				if said {
					return actors.Verdict{}, nil
				}
				said = true
				return actors.Verdict{Text: "look again"}, nil
			}},
			{Name: "b", TurnEnd: func(_ context.Context, _ actors.HookInfo, e actors.HookedEnd) (actors.Verdict, error) {
				return actors.Verdict{Do: actors.Rewrite, Text: "signed " + e.Output}, nil
			}},
		}
		if before {
			hooks = append(hooks, forbids("", func() {}))
		}
		model := scripted.New(scripted.Say("one"), scripted.Say("two"))
		s := actorstest.New(t, nil)
		s.Start(hooked(model, nil, hooks...)).Must(ada, say("u1", "go"))
		all := s.Until(ada, "turn.completed")
		if out := actorstest.Of[messages.TurnCompleted](all)[0].Output; out != "signed two" || model.Calls() != 2 {
			t.Errorf("with other hooks %v: got %q after %d calls, want \"signed two\" after 2", before, out, model.Calls())
		}
	}
}

// A hook that changes its copy of the arguments changes neither what needs approval nor what
// runs.
func TestHooksGetCopiesOfArguments(t *testing.T) { // A33, A40
	var paid recorder
	pay := gatedTool{Tool: paid.tool("pay", tool.Pause), approval: tool.Asked, want: func(b json.RawMessage) (bool, error) {
		return strings.Contains(string(b), "9"), nil
	}}
	s := actorstest.New(t, nil)
	spoils := actors.Hook{Name: "spoils", BeforeTool: func(_ context.Context, _ actors.HookInfo, c actors.HookedCall) (actors.Verdict, error) {
		copy(c.Arguments, `{"c":1}`)
		return actors.Verdict{}, nil
	}}
	s.Start(hooked(scripted.New(scripted.Ask(asks("c1", "pay", `{"c":9}`))), []tool.Tool{pay}, spoils)).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.paused")
	wantLines(t, "paid", paid.calls())
}
