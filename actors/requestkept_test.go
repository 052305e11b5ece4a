package actors_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// An input that steers the turn comes behind what the model was asked before, also if a hook has put a
// note between, which the hook behind it does not see.
func TestRequestedSteered(t *testing.T) { // A3
	gate := scripted.NewGate()
	model := &receiver{Provider: scripted.New(scripted.Held(gate, scripted.Ask(call("c1", "look"))), scripted.Say("done"), scripted.Say("more"))}
	note := actors.Hook{Name: "note", BeforeModel: func(context.Context, actors.HookInfo, providers.Request) (actors.Verdict, error) {
		return actors.Verdict{Text: "a note for the model"}, nil
	}}
	hooks := []actors.Hook{note, rewriter("brief", func(r *providers.Request) { r.Items = r.Items[len(r.Items)-1:] })}
	s := actorstest.New(t, nil)
	node := s.Start(hooked(model, []tool.Tool{new(recorder).tool("look", tool.ReadOnly)}, hooks...))
	node.Must(ada, say("u1", "go"))
	<-gate.Reached()
	node.Must(ada, policy("j1", "also this", messages.PolicySteer))
	gate.Release()
	s.Until(ada, "turn.completed")
	last := allRequested(t, s, ada, model)
	if len(last.Items) != 1 || last.Items[0].Content.Text() != "also this" || last.Items[0].ByHook || last.Items[0].N == 0 {
		t.Errorf("got items %+v, want the input that steered the turn", last.Items)
	}
}

// A request is shown with the definition that it was made with, whatever has come since.
func TestRequestedBeforeChange(t *testing.T) {
	model := &receiver{Provider: echo()}
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	node.Stop()
	node = s.Start(with(config(model, new(recorder).tool("look", tool.ReadOnly)), func(d *actors.Definition) { d.Instructions = "Be long." }))
	node.Must(ada, say("u2", "two"))
	s.Until(ada, "turn.completed", 2)
	if last := allRequested(t, s, ada, model); last.Instructions != "Be long." || len(last.Tools) != 1 {
		t.Errorf("got instructions %q and %d tools, want those of the second definition", last.Instructions, len(last.Tools))
	}
}

// A person has an idle agent's history summed up: the request names the definition by which it was
// done.
func TestRequestedSummary(t *testing.T) {
	model := &receiver{Provider: scripted.New(scripted.Say("one"), scripted.Say("two"), scripted.Say("they counted"))}
	s := actorstest.New(t, nil)
	node := s.Start(with(config(model), func(d *actors.Definition) {
		d.Compact.Instructions, d.Settings.HostedTools = "Sum up.", []json.RawMessage{[]byte(`{"type":"web_search"}`)}
	}))
	node.Must(ada, say("u1", "first"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "second"))
	s.Until(ada, "turn.completed", 2)
	node.Must(ada, messages.Compact{ID: "k", Keep: 1})
	s.Until(ada, "history.compacted")
	last := allRequested(t, s, ada, model)
	if !last.Summary || last.Instructions != "Sum up." || !strings.Contains(last.Items[0].Content.Text(), "user: first") || !strings.Contains(last.Why, "which is the same") {
		t.Errorf("got %+v, want the request for a summary", last)
	}
}

// What hooks have changed is encrypted with the agent's data, and unreadable once that is deleted.
func TestRequestedEncrypted(t *testing.T) { // A108
	keys, err := encrypted.Open(t.Context(), &encrypted.Memory{}, encrypted.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	inner := memlog.New()
	store := encrypted.New(inner.Store(), inner, keys).Store()
	secret := "launch code 4711 "
	model := &receiver{Provider: echo()}
	s := actorstest.New(t, &store)
	node := s.Start(hooked(model, nil, rewriter("add", func(r *providers.Request) {
		size := 1
		if len(r.Items) > 1 {
			size = 1000
		}
		r.Items = append(r.Items, messages.Text(messages.RoleUser, strings.Repeat(secret, size)))
	})))
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "two"))
	all := s.Until(ada, "turn.completed", 2)
	allRequested(t, s, ada, model)
	asked := actorstest.Of[messages.ModelRequested](all)
	kept := asked[1].RewrittenBlob
	if len(asked[0].Rewritten) == 0 || kept == nil || kept.Stored == "" {
		t.Fatalf("got rewrites %+v, want one in the frame and one as an encrypted blob", asked)
	}
	for rec, err := range inner.Read(t.Context(), ada, eventlog.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, err := messages.EncodeFrame(ada, rec.Frame); err != nil || strings.Contains(string(b), secret) {
			t.Fatalf("got the secret in a stored frame, or %v", err)
		}
	}
	wait := node.Ask(ada, messages.Delete{ID: "d"})
	if a := wait(); a.Err != nil {
		t.Fatal(a.Err)
	}
	if r, err := store.Blob(t.Context(), ada, *kept); err == nil {
		b, err := io.ReadAll(r)
		if err == nil {
			t.Errorf("got %d bytes of a deleted agent's rewrite, want an error", len(b))
		}
	}
}

// A request of which something is missing is shown as far as it is known, never as what was sent.
func TestRequestedDamaged(t *testing.T) {
	model := &receiver{Provider: scripted.New(scripted.Ask(call("c1", "look")), scripted.Say("done"))}
	large := toolOf("look", tool.ReadOnly, func(context.Context) (string, error) { return many("seen "), nil })
	s := actorstest.New(t, nil)
	node := s.Start(hooked(model, []tool.Tool{large}, rewriter("add", func(r *providers.Request) {
		if len(r.Items) == 1 {
			r.Items = append(r.Items, messages.Text(messages.RoleUser, many("more ")))
		} else {
			r.Instructions = "Be long."
		}
	})))
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	frames := s.Frames(ada)
	asked := actorstest.Of[messages.ModelRequested](all)
	for name, damage := range map[string]error{
		"is damaged": messages.Refuse(messages.Damaged, "chunk 3 is not as it was"),
		"not stored": messages.Refuse(messages.NotFound, "it is gone"),
	} {
		store := s.Store()
		store.Blobs = &blobLog{Blobs: store.Blobs, get: func(messages.Blob) error { return damage }}
		rt, err := actors.NewRuntime(t.Context(), actors.Config{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		first, err := requested(rt, frames, ada, eventOf(frames, asked[0].Call))
		if err != nil {
			t.Fatal(err)
		}
		if first.Matches || len(first.Items) != 1 || !strings.Contains(first.Why, "before hooks have changed it") || !strings.Contains(first.Why, name) {
			t.Errorf("rewrite %s: got %d items, matches %v: %s", name, len(first.Items), first.Matches, first.Why)
		}
		second, err := requested(rt, frames, ada, eventOf(frames, asked[1].Call))
		if err != nil {
			t.Fatal(err)
		}
		if last := second.Items[2]; second.Matches || last.Blob == nil || !strings.Contains(last.Missing, name) || second.Instructions != "Be long." {
			t.Errorf("item %s: got %+v, matches %v: %s", name, last, second.Matches, second.Why)
		}
	}
	store := s.Store()
	store.Blobs = &blobLog{Blobs: store.Blobs, get: func(messages.Blob) error { return eventlog.ErrUnavailable }}
	rt, err := actors.NewRuntime(t.Context(), actors.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := requested(rt, frames, ada, eventOf(frames, asked[1].Call)); messages.AsError(err).Code != messages.Unavailable {
		t.Errorf("a store that does not answer: got %v, want a refusal unavailable", err)
	}
}

// A log in which the request is not what was recorded is reported, and so is a definition that is gone.
func TestRequestedElsewhere(t *testing.T) {
	model := &receiver{Provider: scripted.New(scripted.Say("done"), scripted.Say("done"))}
	s := actorstest.New(t, nil)
	cfg := hooked(model, nil, rewriter("add", func(r *providers.Request) { r.Instructions += " Please." }))
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	call := func(change func(*messages.ModelRequested)) (*projections.ModelRequest, error) {
		ev := actorstest.Of[messages.ModelRequested](all)[0]
		change(&ev)
		rt := readerOf(t, s)
		return rt.Requested(t.Context(), ada, &projections.RequestedCall{N: 5, Model: &ev, Hooks: []projections.RequestHook{{Hook: "add"}}}, func(n messages.EventNumber) (*projections.History, error) {
			h := new(projections.History)
			for _, f := range s.Frames(ada) {
				projections.Fold(f, n, h)
			}
			return h, nil
		})
	}
	for want, change := range map[string]func(*messages.ModelRequested){
		"":                                    func(*messages.ModelRequested) {},
		"what it changed was not kept":        func(ev *messages.ModelRequested) { ev.Rewritten = nil },
		"is not what was recorded":            func(ev *messages.ModelRequested) { ev.Request = strings.Repeat("0", 64) },
		"refers to entries 7 to 8 of 1":       func(ev *messages.ModelRequested) { ev.Rewritten = []byte(`{"at":4,"items":[{"from":7,"count":1}]}`) },
		"refers to entries 0 to -1 of 0":      func(ev *messages.ModelRequested) { ev.Rewritten = []byte(`{"at":4,"tools":[{"count":-1}]}`) },
		"longer than those of the definition": func(ev *messages.ModelRequested) { ev.Rewritten = []byte(`{"at":4,"instructions":{"head":1000}}`) },
		"than those of the definition": func(ev *messages.ModelRequested) {
			ev.Rewritten = []byte(`{"at":4,"instructions":{"head":9223372036854775807,"tail":1}}`)
		},
		"what hooks have changed cannot be read:": func(ev *messages.ModelRequested) { ev.Rewritten = []byte(`{"at":"x"}`) },
		"are not those that were recorded":        func(ev *messages.ModelRequested) { ev.Rewritten, ev.Instructions = nil, "" },
	} {
		got, err := call(change)
		if err != nil {
			t.Fatal(err)
		}
		if got.Matches != (want == "") || !strings.Contains(got.Why, want) {
			t.Errorf("got matches %v: %q, want %q", got.Matches, got.Why, want)
		}
	}
	_, err := call(func(ev *messages.ModelRequested) { ev.Definition = strings.Repeat("0", 64) })
	if refused := messages.AsError(err); refused.Code != messages.NotFound || !strings.Contains(refused.Message, "definition") {
		t.Errorf("without its definition: got %v, want a refusal not_found", err)
	}
}

// What a hook makes of a request and cannot be kept is not sent.
func TestRewriteThatCannotBeKept(t *testing.T) { // A61
	for name, item := range map[string]messages.Item{
		"no JSON":   {Type: messages.ItemReasoning, Raw: []byte(`{oops`)},
		"too large": messages.Text(messages.RoleUser, strings.Repeat("x", 300<<10)),
	} {
		model := scripted.New(scripted.Say("done"))
		s := actorstest.New(t, nil)
		cfg := hooked(model, nil, rewriter("wild", func(r *providers.Request) { r.Items = append(r.Items, item) }))
		cfg.MaxPayload = 256 << 10
		s.Start(cfg).Must(ada, say("u1", "go"))
		all := s.Until(ada, "turn.failed")
		if facts := decided(all); len(facts) != 1 || !strings.Contains(facts[0], "before_model/wild failed: the request that it made cannot be kept") || model.Calls() > 0 {
			t.Errorf("%s: got %q and %d model calls, want a failed hook and none", name, facts, model.Calls())
		}
	}
}
