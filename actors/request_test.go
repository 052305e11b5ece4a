package actors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// receiver is a provider that keeps what it receives, as it received it.
type receiver struct {
	providers.Provider
	mu  sync.Mutex
	got []providers.Request
}

func (r *receiver) Generate(ctx context.Context, req providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	kept := req
	if json.Unmarshal([]byte(asJSON(req.Items)), &kept.Items) != nil {
		panic("items that cannot be encoded")
	}
	r.mu.Lock()
	r.got = append(r.got, kept)
	r.mu.Unlock()
	return r.Provider.Generate(ctx, req, emit)
}

// Refuses refuses a setting for all models but m.
func (*receiver) Refuses(model string) []string {
	if model == "m" {
		return nil
	}
	return []string{"temperature"}
}

// rewriter returns a hook that makes another request.
func rewriter(name string, change func(*providers.Request)) actors.Hook {
	return actors.Hook{Name: name, BeforeModel: func(_ context.Context, _ actors.HookInfo, r providers.Request) (actors.Verdict, error) {
		change(&r)
		return actors.Verdict{Do: actors.Rewrite, Request: &r, Reason: "as " + name}, nil
	}}
}

// TestRequested compares each request that a provider has received with what follows from the log alone, by
// a runtime without definitions.
func TestRequested(t *testing.T) {
	half := float32(0.5)
	busy := scripted.Fail(&providers.Error{Kind: providers.Overloaded, Temporary: true, Message: "busy"})
	no := scripted.Fail(&providers.Error{Kind: providers.BadRequest, Status: http.StatusBadRequest, Message: "no"})
	look := scripted.Ask(call("c1", "look"))
	large := toolOf("look", tool.ReadOnly, func(context.Context) (string, error) { return many("seen "), nil })
	note := actors.Hook{Name: "note", BeforeModel: func(context.Context, actors.HookInfo, providers.Request) (actors.Verdict, error) {
		return actors.Verdict{Text: "a note for the model"}, nil
	}}
	for name, c := range map[string]struct {
		steps  []scripted.Step
		change func(*actors.Definition)
		inputs int
		// checks looks at the newest request.
		checks func(t *testing.T, r *projections.ModelRequest)
	}{
		"settings and tools": {[]scripted.Step{look, scripted.Say("done")}, func(d *actors.Definition) {
			d.Settings, d.ToolChoice = providers.Settings{Temperature: &half, ExtraBody: map[string]json.RawMessage{"a": json.RawMessage(`{ "b": "<" }`)}}, "look"
		}, 1, nil},
		"a part of a blob": {[]scripted.Step{look, scripted.Say("done")}, func(d *actors.Definition) { d.ShowAtMost = 100 }, 1, func(t *testing.T, r *projections.ModelRequest) {
			if text := r.Items[len(r.Items)-1].Output; len(text) > 300 || !strings.Contains(text, "left out here") {
				t.Errorf("got %d bytes of the blob, want its excerpt", len(text))
			}
		}},
		"attempts": {[]scripted.Step{busy, scripted.Say("done")}, nil, 1, func(t *testing.T, r *projections.ModelRequest) {
			if r.Attempt != 2 {
				t.Errorf("got attempt %d, want 2", r.Attempt)
			}
		}},
		"a fallback": {[]scripted.Step{no, scripted.Say("done")}, func(d *actors.Definition) {
			d.Fallbacks, d.Settings = []string{"scripted/n"}, providers.Settings{Temperature: &half, MaxOutputTokens: 7}
		}, 1, func(t *testing.T, r *projections.ModelRequest) {
			if r.Model != "scripted/n" || string(r.Settings) != `{"max_output_tokens":7}` {
				t.Errorf("got model %s with %s, want scripted/n without temperature", r.Model, r.Settings)
			}
		}},
		"a summary": {[]scripted.Step{scripted.Say(strings.Repeat("long ", 40)), scripted.Say("they talked"), scripted.Say("done")}, func(d *actors.Definition) {
			d.Compact = actors.Compaction{AtTokens: 40, Keep: 1}
		}, 2, func(t *testing.T, r *projections.ModelRequest) {
			if r.Summary || r.Items[0].Content.Text() != "they talked" {
				t.Errorf("got %+v, want the summary as the first item", r.Items[0])
			}
		}},
		"small changes": {[]scripted.Step{scripted.Say("done")}, func(d *actors.Definition) {
			d.Instructions = "Be \u00e4 brief \u2028."
			d.Hooks = []actors.Hook{rewriter("r", func(r *providers.Request) { r.Instructions = "Be \u00f6 brief \u2028, if you can \u2028." })}
		}, 1, func(t *testing.T, r *projections.ModelRequest) {
			if !slices.Equal(r.Changed, []string{"instructions"}) || len(r.Hooks) != 1 || r.Hooks[0] != (projections.RequestHook{Hook: "r", Reason: "as r"}) {
				t.Errorf("got %v changed by %v, want instructions by r", r.Changed, r.Hooks)
			}
		}},
		"everything changed": {[]scripted.Step{look, scripted.Say("done")}, func(d *actors.Definition) {
			d.Hooks = []actors.Hook{note, rewriter("all", func(r *providers.Request) {
				r.Model, r.Instructions, r.ToolChoice, r.Settings.MaxOutputTokens = "other", "Say no.", "none", 3
				r.Tools = append(r.Tools, providers.ToolSpec{Name: "extra", Parameters: []byte(`{ "type" : "object" }`)})
				r.Items = append([]messages.Item{messages.Text(messages.RoleDeveloper, strings.Repeat("context ", 4<<10))}, r.Items[len(r.Items)-1])
			})}
		}, 2, func(t *testing.T, r *projections.ModelRequest) {
			if want := []string{"model", "instructions", "tool_choice", "settings", "tools", "items"}; !slices.Equal(r.Changed, want) || r.SentAs != "other" {
				t.Errorf("got changes %v of model %q, want %v of other", r.Changed, r.SentAs, want)
			}
			if r.LeftOut == 0 || !r.Items[0].ByHook || r.Items[1].ByHook || r.Items[1].N == 0 || !r.Tools[1].ByHook || r.Tools[0].ByHook {
				t.Errorf("got %d left out of items %+v, want those of the hook marked", r.LeftOut, r.Items)
			}
		}},
		"nothing left": {[]scripted.Step{scripted.Say("done")}, func(d *actors.Definition) {
			d.Hooks = []actors.Hook{rewriter("none", func(r *providers.Request) { r.Items, r.Tools, r.Instructions = nil, nil, "" })}
		}, 1, func(t *testing.T, r *projections.ModelRequest) {
			if text := asJSON(r); !strings.Contains(text, `"items":[]`) || r.LeftOut != 1 {
				t.Errorf("got %s, want an empty list of items with 1 left out", text)
			}
		}},
		"changed to the same": {[]scripted.Step{scripted.Say("done")}, func(d *actors.Definition) {
			d.Hooks = []actors.Hook{rewriter("same", func(*providers.Request) {})}
		}, 1, func(t *testing.T, r *projections.ModelRequest) {
			if len(r.Changed) > 0 || r.LeftOut > 0 {
				t.Errorf("got changes %v, want none", r.Changed)
			}
		}},
		"wrapped": {[]scripted.Step{scripted.Say("done")}, func(d *actors.Definition) {
			d.Settings = providers.Settings{Temperature: &half}
			d.Hooks = []actors.Hook{{Name: "wrap", AroundModel: func(ctx context.Context, _ actors.HookInfo, r providers.Request, next func(context.Context) (providers.Response, error)) (providers.Response, error) {
				r.Instructions, *r.Settings.Temperature, r.Items[0].Content[0].Text = "", 1, "" // copies
				return next(ctx)
			}}}
		}, 1, func(t *testing.T, r *projections.ModelRequest) {
			if !slices.Equal(r.Around, []string{"wrap"}) {
				t.Errorf("got hooks %v around the call, want wrap", r.Around)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := actorstest.New(t, nil)
			model := &receiver{Provider: scripted.New(c.steps...)}
			if c.inputs == 2 && len(c.steps) == 2 {
				model.Provider = scripted.New(append(c.steps, c.steps...)...)
			}
			cfg := config(model, large)
			if c.change != nil {
				cfg = with(cfg, c.change)
			}
			node := s.Start(cfg)
			for n := range c.inputs {
				node.Must(ada, say(fmt.Sprint("u", n), "go"))
				s.Until(ada, "turn.completed", n+1)
			}
			last := allRequested(t, s, ada, model)
			if c.checks != nil {
				c.checks(t, last)
			}
		})
	}
}

// allRequested compares all requests of an agent with what follows from the log, and returns the last one.
func allRequested(t *testing.T, s *actorstest.Stage, a messages.AgentID, model *receiver) (last *projections.ModelRequest) {
	t.Helper()
	frames := s.Frames(a)
	model.mu.Lock()
	defer model.mu.Unlock()
	for _, sent := range model.got {
		got, err := requested(readerOf(t, s), frames, a, eventOf(frames, sent.Call))
		if err != nil {
			t.Fatal(err)
		}
		if where := notSent(got, sent); where != "" {
			t.Errorf("%s: %s", sent.Call, where)
		}
		if got.Matches == got.Summary {
			t.Errorf("%s: got matches %v (%s) of a request that is equal", sent.Call, got.Matches, got.Why)
		}
		last = got
	}
	if last == nil {
		t.Fatal("the model received nothing")
	}
	return last
}

// readerOf returns a runtime that reads the store of a stage, and defines nothing.
func readerOf(t *testing.T, s *actorstest.Stage) *actors.Runtime {
	t.Helper()
	rt, err := actors.NewRuntime(t.Context(), actors.Config{Store: s.Store()})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// requested returns the request that event n of an agent belongs to, as the view does.
func requested(rt *actors.Runtime, frames []*messages.Frame, a messages.AgentID, n messages.EventNumber) (*projections.ModelRequest, error) {
	fold := func(n messages.EventNumber, v projections.View) {
		for _, f := range frames {
			if !projections.Fold(f, n, v) {
				return
			}
		}
	}
	var last projections.LastRequest
	fold(n, &last)
	call := last.Of()
	if call == nil {
		return nil, fmt.Errorf("event %d belongs to no model call", n)
	}
	return rt.Requested(context.Background(), a, call, func(n messages.EventNumber) (*projections.History, error) {
		h := new(projections.History)
		fold(n, h)
		return h, nil
	})
}

// eventOf returns the first event of a model call; 0 if there is none.
func eventOf(frames []*messages.Frame, call messages.CallID) messages.EventNumber {
	for _, f := range frames {
		for i, ev := range f.Events {
			if fields := messages.FieldsOf(ev); fields.Is(messages.BeginsModelCall) && fields.Call == call {
				return f.First + messages.EventNumber(i)
			}
		}
	}
	return 0
}

// notSent returns where a rebuilt request differs from what a provider received; empty: nowhere.
func notSent(got *projections.ModelRequest, sent providers.Request) string {
	_, model, _ := strings.Cut(got.Model, "/")
	if got.SentAs != "" {
		model = got.SentAs
	}
	tools, items := "", ""
	for _, t := range got.Tools {
		tools += fmt.Sprintf("%s: %s %s\n", t.Name, t.Description, compact(t.Parameters))
	}
	for _, item := range got.Items {
		items += asJSON(item.Item) + "\n"
	}
	sentTools, sentItems := "", ""
	for _, t := range sent.Tools {
		sentTools += fmt.Sprintf("%s: %s %s\n", t.Name, t.Description, compact(t.Parameters))
	}
	for _, item := range sent.Items {
		sentItems += asJSON(item) + "\n"
	}
	for _, part := range [][3]string{
		{"model", model, sent.Model}, {"instructions", got.Instructions, sent.Instructions}, {"tool choice", got.ToolChoice, sent.ToolChoice},
		{"settings", string(got.Settings), asJSON(sent.Settings)}, {"tools", tools, sentTools}, {"items", items, sentItems},
	} {
		if part[1] != part[2] {
			return fmt.Sprintf("%s: rebuilt\n%.2000s\nsent\n%.2000s", part[0], part[1], part[2])
		}
	}
	return ""
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// compact returns JSON as an encoder writes it.
func compact(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return asJSON(json.RawMessage(b.Bytes()))
}
