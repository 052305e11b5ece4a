package cluster_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

type refund struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// refunds is an agent whose model asks for three refunds at once, two of them gated, and then
// reports what came of them. ran counts those that were paid.
func refunds(ran *atomic.Int32) change {
	model := scripted.Func(func(r providers.Request) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Type != messages.ItemCallOutput && last.Content.Text() != "be quick" {
			return scripted.Ask(
				scripted.Call{ID: "a", Name: "refund", Arguments: `{"order":"7","cents":9900}`},
				scripted.Call{ID: "b", Name: "refund", Arguments: `{"order":"8","cents":100}`},
				scripted.Call{ID: "c", Name: "refund", Arguments: `{"order":"9","cents":7000}`})
		}
		var results []string
		for _, item := range r.Items {
			if item.Type == messages.ItemCallOutput {
				results = append(results, item.Output)
			}
		}
		return scripted.Say(strings.Join(results, ", "))
	})
	return agents(model, func(d *actors.Definition) {
		d.Tools = []tool.Tool{tool.New("refund", "Pay an order back", tool.Rerun, func(_ context.Context, r refund) (string, error) {
			ran.Add(1)
			return "paid " + r.Order, nil
		}).ApproveIf(func(r refund) bool { return r.Cents > 5000 })}
	})
}

// The caller who may decide is asked in the middle of the stream.
func TestApprovalsByPrompt(t *testing.T) { // A40, A41, A43, A100
	w := newWorld(t)
	var ran atomic.Int32
	c := w.node(refunds(&ran), func(c *cluster.Config) { c.PromptDecides = func(kind, tool string) bool { return tool == "refund" } }).Client()
	text := ""
	for ev, err := range c.AskFacts(w.ctx, "assistant/till", input("u1", "pay them back")) {
		w.ok(err)
		switch {
		case ev.Type == "delta":
			text += ev.Text
		case ev.Question == nil:
		case strings.Contains(ev.Question.Prompt, `"order":"7"`):
			w.ok(c.Answer(w.ctx, *ev.Question, "yes"))
		default:
			w.ok(c.Answer(w.ctx, *ev.Question, "no: give a voucher"))
		}
	}
	if text != "paid 7, paid 8, give a voucher" || ran.Load() != 2 {
		t.Errorf("answered %q, %d refunds were paid", text, ran.Load())
	}
}

// Unless the node says so no caller that prompts is asked; the stream continues when
// someone who may has decided, and a remembered decision holds.
func TestApprovalsFromElsewhere(t *testing.T) { // A25, A41, A42, A103
	w := newWorld(t)
	var ran atomic.Int32
	c := w.node(refunds(&ran)).Client()
	done := make(chan asked, 1)
	go func() {
		got, err := w.ask(c, "assistant/till", input("u1", "pay them back"))
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	w.until(c, "assistant/till", ofType("turn.paused"))
	var pending []messages.Approval
	for _, of := range []string{"assistant/till", "default"} {
		w.eventually("the list follows the log", func() bool {
			pending = nil
			for p, err := range c.Approvals(w.ctx, of) {
				w.ok(err)
				pending = append(pending, p)
			}
			return len(pending) == 2
		})
	}
	empty := ""
	_, err := c.Do(w.ctx, "assistant/till", messages.Approve{Call: pending[0].Call, ArgsHash: pending[0].ArgsHash, Remember: true})
	w.ok(err)
	_, err = c.Do(w.ctx, "assistant/till", messages.Deny{Call: pending[1].Call, ArgsHash: pending[1].ArgsHash, Text: &empty})
	w.ok(err)
	got := <-done
	for _, e := range got.events {
		if e.Question != nil {
			t.Errorf("the caller was asked %s", e.Text)
		}
	}
	if got.text != "paid 7, paid 8, " || ran.Load() != 2 {
		t.Errorf("answered %q, %d refunds were paid", got.text, ran.Load())
	}
	for r, err := range c.Remembered(w.ctx, "assistant/till") {
		if err != nil || r.Tool != "refund" || r.Decision != "granted" {
			t.Errorf("remembered %+v, %v", r, err)
		}
	}
	if got := w.say(c, "assistant/till", "u2", "again"); got.text != "paid 7, paid 8, , paid 7, paid 8, paid 9" || ran.Load() != 5 {
		t.Errorf("answered %q, %d refunds were paid", got.text, ran.Load())
	}
}

// A caller that steers a paused turn receives its end with those who began it.
func TestSteerByPrompt(t *testing.T) { // A2, A46
	w := newWorld(t)
	var ran atomic.Int32
	c := w.node(refunds(&ran)).Client()
	done := make(chan asked, 2)
	ask := func(in messages.Input) {
		got, err := w.ask(c, "assistant/till", in)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}
	go ask(input("u1", "pay them back"))
	w.until(c, "assistant/till", ofType("turn.paused"))
	in := input("u2", "be quick")
	in.Policy = messages.PolicySteer
	go ask(in)
	w.until(c, "assistant/till", func(e event) bool { return e.Type == "input.accepted" && e.field("input") == "u2" })
	for _, call := range []messages.CallID{"a", "c"} {
		_, err := c.Do(w.ctx, "assistant/till", messages.Deny{Call: call})
		w.ok(err)
	}
	for range 2 {
		if got := <-done; got.end.Type != "turn.completed" || got.text != messages.DeniedText+", paid 8, "+messages.DeniedText {
			t.Errorf("%q ended with %s", got.text, got.end.Type)
		}
	}
}
