package actors_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// refunding is the configuration of an agent that pays back.
func refunding(description string, change func(*actors.Definition)) actors.Config {
	refund := tool.New("refund", description, tool.Rerun, func(context.Context, struct{}) (string, error) { return `{"paid":100}`, nil })
	d := actors.Definition{Kind: "support", Model: "scripted/m", Instructions: "Be kind.\nPay back what was paid.", Tools: []tool.Tool{refund}}
	if change != nil {
		change(&d)
	}
	return actors.Config{
		Providers:   providers.Set{"scripted": scripted.New(scripted.Ask(scripted.Call{ID: "c1", Name: "refund", Arguments: "{}"}), scripted.Say("Done."))},
		Definitions: []actors.Definition{d},
	}
}

// recordedRefund returns a stage with an agent that has paid back.
func recordedRefund(t *testing.T) (*actorstest.Stage, messages.AgentID) {
	ada := actorstest.Agent("support", "ada")
	s := actorstest.New(t, nil)
	s.Start(refunding("Pay an order back", nil)).Do(ada, actorstest.Say("u1", "pay order 7 back"))
	s.Until(ada, "turn.completed")
	return s, ada
}

// verified compares the agent's frames with what cfg decides.
func verified(t *testing.T, s *actorstest.Stage, ada messages.AgentID, cfg actors.Config, frames []*messages.Frame) verify.Result {
	cfg.Store = memlog.NewStore()
	rt, err := actors.NewRuntime(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	current, err := rt.Current(t.Context(), ada.Kind)
	if err != nil {
		t.Fatal(err)
	}
	current.Recorded = func(digest string) (json.RawMessage, error) {
		return s.Store().Definition(t.Context(), messages.Digest(digest))
	}
	return verify.Stream(ada, current, verify.Frames(frames))
}

func TestVerifyAgainstDefinitions(t *testing.T) { // A82
	s, ada := recordedRefund(t)
	const description = "Pay an order back"
	for name, c := range map[string]struct {
		cfg  actors.Config
		want verify.Outcome
		at   string // the type of the event that differs
		says string
	}{
		"untouched":            {refunding(description, nil), verify.Equal, "", "equal, 12 events"},
		"word of instructions": {refunding(description, func(d *actors.Definition) { d.Instructions = "Be kind.\nPay back what is paid." }), verify.Differs, "model.requested", `instructions: line 2 "Pay back what was paid.", now line 2 "Pay back what is paid."`},
		"word of a tool":       {refunding("Pay an order out", nil), verify.Differs, "model.requested", "tool refund: description: Pay an order back, now Pay an order out"},
		"a tool more": {refunding(description, func(d *actors.Definition) {
			d.Tools = append(d.Tools, tool.New("note", "Note it", tool.ReadOnly, nothing))
		}), verify.Differs, "model.requested", "tool note: now added"},
		"settings":  {refunding(description, func(d *actors.Definition) { d.Settings.MaxOutputTokens = 5 }), verify.Differs, "model.requested", "settings"},
		"model":     {refunding(description, func(d *actors.Definition) { d.Model = "scripted/n" }), verify.Differs, "agent.configured", "model: scripted/m, now scripted/n"},
		"max_steps": {refunding(description, func(d *actors.Definition) { d.MaxSteps = 7 }), verify.Differs, "turn.started", "max_steps: 20, now 7"},
		"stop_on":   {refunding(description, func(d *actors.Definition) { d.StopOn = []string{"refund"} }), verify.Differs, "model.requested", "turn.completed"},
		"max_queue": {refunding(description, func(d *actors.Definition) { d.MaxQueue = 7 }), verify.Equal, "", "with no difference so far: max_queue: 1000, now 7"},
	} {
		r := verified(t, s, ada, c.cfg, s.Frames(ada))
		at := ""
		if r.Difference != nil {
			at = r.Difference.Type
		}
		if r.Result != c.want || at != c.at || !strings.Contains(r.Text(), c.says) {
			t.Errorf("%s: got %s at %q, want %s at %q with %q in\n%s", name, r.Result, at, c.want, c.at, c.says, r.Text())
		}
	}
}

// schemed is a tool with a schema as it is.
type schemed struct {
	tool.Tool
	schema string
}

func (t schemed) Spec() tool.Spec {
	s := t.Tool.Spec()
	s.Parameters = json.RawMessage(t.schema)
	return s
}

// Another order of names in a tool's schema is listed and no difference; another order of values is one.
func TestVerifyOrderInSchemas(t *testing.T) { // A82
	with := func(schema string) actors.Config {
		return refunding("Pay", func(d *actors.Definition) { d.Tools[0] = schemed{d.Tools[0], schema} })
	}
	ada := actorstest.Agent("support", "ada")
	s := actorstest.New(t, nil)
	s.Start(with(`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}}`)).Do(ada, actorstest.Say("u1", "pay"))
	s.Until(ada, "turn.completed")
	other := with(`{"properties":{"a":{"enum":["x","y"],"type":"string"}},"type":"object"}`)
	if r := verified(t, s, ada, other, s.Frames(ada)); r.Result != verify.Equal || !strings.Contains(r.Text(), "tool refund: order of names in parameters") {
		t.Errorf("got\n%s", r.Text())
	}
	other = with(`{"type":"object","properties":{"a":{"type":"string","enum":["y","x"]}}}`)
	if r := verified(t, s, ada, other, s.Frames(ada)); r.Result != verify.Differs {
		t.Errorf("got\n%s", r.Text())
	}
}

func nothing(context.Context, struct{}) (string, error) { return "", nil }

// A tool whose calls require approval in other cases is found, though its definition is the same.
func TestVerifyAsksToolsAboutApproval(t *testing.T) { // A82
	above := func(most int) actors.Config {
		type args struct {
			Cents int `json:"cents"`
		}
		refund := tool.New("refund", "Pay back", tool.Rerun, func(context.Context, args) (string, error) { return "paid", nil }).
			ApproveIf(func(a args) bool { return a.Cents > most })
		return actors.Config{
			Providers:   providers.Set{"scripted": scripted.New(scripted.Ask(scripted.Call{ID: "c1", Name: "refund", Arguments: `{"cents":100}`}), scripted.Say("Done."))},
			Definitions: []actors.Definition{{Kind: "support", Model: "scripted/m", Tools: []tool.Tool{refund}}},
		}
	}
	ada := actorstest.Agent("support", "ada")
	s := actorstest.New(t, nil)
	s.Start(above(100)).Do(ada, actorstest.Say("u1", "pay order 7 back"))
	s.Until(ada, "turn.completed")
	for most, want := range map[int]string{100: "", 200: "", 99: "approval.requested"} {
		r := verified(t, s, ada, above(most), s.Frames(ada))
		now := ""
		if r.Difference != nil {
			now = r.Difference.NowType
		}
		if now != want || len(r.Unchecked) > 0 {
			t.Errorf("approval above %d: got a difference with %q now, want %q\n%s", most, now, want, r.Text())
		}
	}
}

// A changed result of a tool is found where a model is next shown it.
func TestVerifyFindsChangedResult(t *testing.T) { // A82
	s, ada := recordedRefund(t)
	frames := s.Frames(ada)
	for i, f := range frames {
		for j, ev := range f.Events {
			if done, ok := ev.(messages.ToolCompleted); ok {
				done.Output = strings.Replace(done.Output, "100", "101", 1)
				changed := *f
				changed.Events = slices.Clone(f.Events)
				changed.Events[j], frames[i] = done, &changed
			}
		}
	}
	r := verified(t, s, ada, refunding("Pay an order back", nil), frames)
	if r.Result != verify.Differs || r.Difference.N != 10 || r.Difference.Fields[0].Path != "request" || !strings.Contains(r.Text(), "an event before this one was changed") {
		t.Errorf("got\n%s", r.Text())
	}
}

// A definition that is not there any more is not taken for that of today.
func TestVerifyWithoutRecordedDefinition(t *testing.T) {
	s, ada := recordedRefund(t)
	cfg := refunding("Pay an order back", func(d *actors.Definition) { d.MaxQueue = 7 })
	cfg.Store = memlog.NewStore()
	rt, err := actors.NewRuntime(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	current, err := rt.Current(t.Context(), ada.Kind)
	if err != nil {
		t.Fatal(err)
	}
	r := verify.Stream(ada, current, verify.Frames(s.Frames(ada)))
	if r.Result != verify.Differs || r.Difference.Type != "model.requested" || !strings.Contains(r.Text(), "which is not stored here") {
		t.Errorf("got\n%s", r.Text())
	}
}
