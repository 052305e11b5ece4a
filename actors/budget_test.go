package actors_test

import (
	"context"
	"fmt"
	"sync"
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

// using is a step that reports a usage of in and out tokens.
func using(step scripted.Step, in, out int) scripted.Step {
	step.Usage = messages.Usage{Input: in, Output: out}
	return step
}

// TestBudgets reaches each limit under both policies. The turn continues once the limit is
// raised.
func TestBudgets(t *testing.T) { // A17, A52
	for _, c := range []struct {
		limit messages.Limit
		set   func(*actors.Definition)
		raise messages.Resume
	}{
		{"max_steps", func(d *actors.Definition) { d.MaxSteps = 2 }, messages.Resume{LimitOverrides: messages.LimitOverrides{MaxSteps: 9}}},
		{"max_steps", func(d *actors.Definition) { d.AgentLimits.MaxSteps = 2 }, messages.Resume{AgentLimits: messages.LimitOverrides{MaxSteps: 9}}},
		{"max_tokens", func(d *actors.Definition) { d.TurnLimits.MaxTokens = 205 }, messages.Resume{LimitOverrides: messages.LimitOverrides{MaxTokens: 9000}}},
		{"max_tokens", func(d *actors.Definition) { d.AgentLimits.MaxTokens = 205 }, messages.Resume{AgentLimits: messages.LimitOverrides{MaxTokens: 9000}}},
		{"max_cost", func(d *actors.Definition) { d.TurnLimits.MaxCost = messages.CostOf(0.205) }, messages.Resume{LimitOverrides: messages.LimitOverrides{MaxCost: 9}}},
		{"max_cost", func(d *actors.Definition) { d.AgentLimits.MaxCost = messages.CostOf(0.205) }, messages.Resume{AgentLimits: messages.LimitOverrides{MaxCost: 9}}},
	} {
		for _, pauses := range []bool{false, true} {
			t.Run(fmt.Sprint(c.limit, c.raise.AgentLimits != messages.LimitOverrides{}, pauses), func(t *testing.T) {
				look := new(recorder).tool("look", tool.ReadOnly)
				model := scripted.New(using(scripted.Ask(call("", "look")), 90, 10), using(scripted.Ask(call("", "look")), 90, 10), using(scripted.Say("done"), 90, 10))
				cfg := with(config(model, look), func(d *actors.Definition) { c.set(d); d.PauseAtLimit = pauses })
				cfg.Prices = map[string]messages.Price{"scripted/m": {Input: 1000, Output: 1000}} // 0.1 per call
				s := actorstest.New(t, nil)
				node := s.Start(cfg)
				node.Must(ada, say("u1", "go"))
				all := s.Await(ada, func(all []messages.Event) bool { return count(all, "turn.failed")+count(all, "turn.paused") > 0 })
				if n := model.Calls(); n != 2 {
					t.Fatalf("got %d model calls before the limit, want 2: %v", n, s.Types(ada))
				}
				if e := actorstest.Of[messages.BudgetExhausted](all); len(e) != 1 || e[0].Limit != c.limit || e[0].Message == "" {
					t.Errorf("got %+v, want one exhausted limit %s", e, c.limit)
				}
				if p := actorstest.Of[messages.TurnPaused](all); pauses && (len(p) != 1 || p[0].Reason != string(c.limit)) {
					t.Errorf("got %+v, want one pause for %s", p, c.limit)
				}
				node.Crash()
				node = s.Start(cfg)
				wantCode(t, node.Do(ada, messages.Resume{ID: "r1"}), messages.Conflict)
				c.raise.ID = "r2"
				node.Must(ada, c.raise)
				all = s.Until(ada, "turn.completed")
				ends(t, all)
				used := messages.Usage{}
				var cost messages.Cost
				for _, m := range actorstest.Of[messages.ModelCompleted](all) {
					used, cost = used.Add(m.Usage), cost+m.Cost
				}
				if used.Tokens() != 300 || cost != messages.CostOf(0.3) {
					t.Errorf("got %d tokens and cost %s, want 300 and 0.3", used.Tokens(), cost)
				}
				if r, x := count(all, "budget.reserved"), count(all, "budget.settled"); r != x {
					t.Errorf("got %d budget.reserved and %d budget.settled, want the same number", r, x)
				}
			})
		}
	}
}

// A turn's duration counts the time it works, not the time it waits for a person.
func TestDuration(t *testing.T) { // A17
	for _, pauses := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			gate := scripted.NewGate()
			pay := gatedTool{Tool: new(recorder).tool("pay", tool.Pause), approval: tool.Always}
			model := scripted.New(scripted.Ask(asks("c1", "pay", `{}`)), scripted.Held(gate, scripted.Ask(asks("c2", "pay", `{"n":2}`))), scripted.Say("done"))
			cfg := with(config(model, pay), func(d *actors.Definition) { d.TurnLimits.MaxDuration = 60_000; d.PauseAtLimit = pauses })
			s := actorstest.New(t, nil)
			node := s.Start(cfg)
			defer end(node)
			node.Must(ada, say("u1", "go"))
			s.Until(ada, "turn.paused")
			<-time.After(time.Hour) // a person decides
			node.Must(ada, messages.Approve{ID: "a", Call: "c1"})
			<-gate.Reached()
			<-time.After(61 * time.Second)
			all := s.Until(ada, "budget.exhausted")
			if e := actorstest.Of[messages.BudgetExhausted](all)[0]; e.Limit != "max_duration" {
				t.Errorf("got exhausted limit %+v, want max_duration", e)
			}
			gate.Release()
			if !pauses {
				ends(t, s.Until(ada, "turn.failed"))
				return
			}
			s.Until(ada, "turn.paused", 2)
			wantCode(t, node.Do(ada, messages.Resume{ID: "r1"}), messages.Conflict)
			node.Must(ada, messages.Resume{ID: "r2", LimitOverrides: messages.LimitOverrides{MaxDuration: messages.Span(time.Hour)}})
			s.Until(ada, "turn.paused", 3) // for the approval of c2
			node.Must(ada, messages.Deny{ID: "d", Call: "c2"})
			ends(t, s.Until(ada, "turn.completed"))
		})
	}
}

// An attempt that fails in the middle of its answer, even of a tool call alone, is billed.
func TestBrokenAttemptIsBilled(t *testing.T) {
	for _, c := range []struct {
		deltas []string
		billed bool
	}{{nil, false}, {[]string{"words"}, true}, {[]string{""}, true}} {
		model := providers.Func(func(_ context.Context, _ providers.Request, emit func(providers.Delta)) (providers.Response, error) {
			for _, text := range c.deltas {
				emit(providers.Delta{Kind: providers.DeltaText, Text: text})
			}
			return providers.Response{}, &providers.Error{Kind: providers.Network, Message: "broke off"}
		})
		s := actorstest.New(t, nil)
		s.Start(with(config(model), func(d *actors.Definition) { d.TurnLimits.MaxTokens = 1000 })).Must(ada, say("u1", "go"))
		all := s.Until(ada, "turn.failed")
		settled := actorstest.Of[messages.BudgetSettled](all)
		if len(settled) != 1 || settled[0].Unknown != c.billed || (settled[0].Tokens != 0) != c.billed {
			t.Errorf("after %q: got %+v, want one settlement with unknown usage %t", c.deltas, settled, c.billed)
		}
	}
}

func TestFallback(t *testing.T) { // A50
	broken := providers.Func(func(context.Context, providers.Request, func(providers.Delta)) (providers.Response, error) {
		return providers.Response{}, &providers.Error{Kind: providers.Auth, Message: "the key is wrong"}
	})
	backup := scripted.New(scripted.Ask(call("", "look")), scripted.Say("done"), scripted.Say("again"))
	cfg := with(config(broken, new(recorder).tool("look", tool.ReadOnly)), func(d *actors.Definition) { d.Fallbacks = []string{"worse/x", "backup/b"} })
	cfg.Providers = providers.Set{"scripted": broken, "worse": broken, "backup": backup}
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	var switches []string
	for _, m := range actorstest.Of[messages.ModelSwitched](all) {
		switches = append(switches, m.From+" "+m.To)
	}
	wantLines(t, "switches", switches, "scripted/m worse/x", "worse/x backup/b")
	if r := backup.Requests()[0]; r.Model != "b" {
		t.Errorf("the fallback got a request for model %q, want b", r.Model)
	}
	node.Must(ada, say("u2", "go")) // a new turn starts with the first model
	if all := s.Until(ada, "turn.completed", 2); count(all, "model.switched") != 4 {
		t.Errorf("got %d switches, want 4", count(all, "model.switched"))
	}
}

func TestToolChoice(t *testing.T) { // A34
	model := scripted.Func(func(q providers.Request) scripted.Step {
		if q.Items[len(q.Items)-1].Type == messages.ItemMessage {
			return scripted.Ask(call("", "look"))
		}
		return scripted.Say("done")
	})
	s := actorstest.New(t, nil)
	var mu sync.Mutex
	hold := make(chan struct{})
	started := make(chan struct{}, 1)
	runs := 0
	look := toolOf("look", tool.ReadOnly, func(ctx context.Context) (string, error) {
		mu.Lock()
		runs++
		first := runs == 1
		mu.Unlock()
		if first {
			started <- struct{}{}
			select {
			case <-hold:
			case <-ctx.Done():
			}
		}
		return "seen", nil
	})
	cfg := with(config(model, look), func(d *actors.Definition) { d.ToolChoice = "look" })
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	<-started
	node.Crash()
	close(hold)
	node = s.Start(cfg)
	node.Activate(ada)
	s.Until(ada, "turn.completed")
	in := say("u2", "go")
	in.Options.ToolChoice = "auto"
	wantCode(t, node.Do(ada, in), messages.BadInput) // the choice of the definition holds
	node.Crash()
	node = s.Start(config(model, look))
	in.Options.ToolChoice = "nosuch"
	wantCode(t, node.Do(ada, in), messages.BadInput)
	in.ID, in.Options.ToolChoice = "u3", "required"
	node.Must(ada, in)
	s.Until(ada, "turn.completed", 2)
	in.ID, in.Options.ToolChoice = "u4", "auto"
	node.Must(ada, in)
	all := s.Until(ada, "turn.completed", 3)
	var forced, asked []string
	for _, m := range actorstest.Of[messages.ModelRequested](all) {
		forced = append(forced, m.ToolChoice)
	}
	for _, r := range model.Requests() {
		asked = append(asked, r.ToolChoice)
	}
	wantLines(t, "recorded", forced, "look", "", "required", "", "", "")
	wantLines(t, "asked", asked, forced...)
}

// An input can lower the limits of its agent, and cannot raise them.
func TestInputsOnlyTighten(t *testing.T) { // A17, A34
	s := actorstest.New(t, nil)
	node := s.Start(with(config(echo()), func(d *actors.Definition) { d.MaxSteps, d.ToolChoice = 2, "none" }))
	in := say("u1", "go")
	in.Options.MaxSteps = 3
	wantCode(t, node.Do(ada, in), messages.BadInput)
	in.Options.MaxSteps, in.Options.ToolChoice = 1, "required"
	wantCode(t, node.Do(ada, in), messages.BadInput)
	in.Options.ToolChoice = "none"
	node.Must(ada, in)
	s.Until(ada, "turn.completed")
}

// Turns that fail at their start are written in frames that fit the limit.
func TestManyTurnsFailAtTheirStart(t *testing.T) { // A6, A17
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("done")))
	s := actorstest.New(t, nil)
	node := s.Start(with(config(model), func(d *actors.Definition) { d.AgentLimits = messages.Limits{MaxSteps: 1, MaxDuration: 1 << 40} }))
	node.Must(ada, say("first", "go"))
	<-gate.Reached()
	for n := range 900 {
		node.Must(ada, say(fmt.Sprint("u", n), "next"))
	}
	gate.Release()
	all := s.Until(ada, "turn.failed", 900)
	ends(t, all)
	if n := count(all, "model.requested"); n != 1 || count(all, "model.restarted") != 0 {
		t.Errorf("got %d model calls, want 1 and no restart", n)
	}
	node.Must(ada, messages.Resume{ID: "r", AgentLimits: messages.LimitOverrides{MaxSteps: 2}}) // the agent still accepts commands
}

// Usage that a server reports cannot increase a budget.
func TestUsageIsBelievedWithinReason(t *testing.T) { // A52
	strange := scripted.Say("done")
	strange.Usage = messages.Usage{Input: 10, Cached: 1 << 60, Output: -5}
	s := actorstest.New(t, nil)
	cfg := config(scripted.New(strange))
	cached := 1.0
	cfg.Prices = map[string]messages.Price{"scripted/m": {Input: 1e6, Output: 1e6, Cached: &cached}}
	s.Start(cfg).Must(ada, say("u1", "go"))
	done := actorstest.Of[messages.ModelCompleted](s.Until(ada, "turn.completed"))[0]
	if done.Usage != (messages.Usage{Input: 10, Cached: 10}) || done.Cost != messages.CostOf(10e-6) {
		t.Errorf("got usage %+v and cost %s, want 10 cached input tokens and 0.00001", done.Usage, done.Cost)
	}
}

func TestStopOnTool(t *testing.T) { // A35
	var r recorder
	pay := gatedTool{Tool: r.tool("pay", tool.Pause), approval: tool.Always}
	model := scripted.New(scripted.Ask(asks("c1", "final", `{"n":1}`), asks("c2", "pay", `{}`)))
	cfg := with(config(model, pay, r.tool("final", tool.ReadOnly)), func(d *actors.Definition) { d.StopOn = []string{"final"} })
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	s.Until(ada, "turn.paused")
	node.Must(ada, messages.Approve{ID: "a", Call: "c2"})
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	if out := actorstest.Of[messages.TurnCompleted](all)[0]; out.Output != `final{"n":1}` || model.Calls() != 1 {
		t.Errorf("got output %q after %d calls, want final{\"n\":1} after 1", out.Output, model.Calls())
	}
}
