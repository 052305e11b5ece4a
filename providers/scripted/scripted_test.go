package scripted_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

var (
	ada  = messages.AgentID{Tenant: "default", Kind: "support", Key: "ada"}
	bert = messages.AgentID{Tenant: "default", Kind: "support", Key: "bert"}
)

func TestScriptsOfAgentsAreTheirOwn(t *testing.T) {
	m := scripted.New(scripted.Say("shared")).For(ada, scripted.Say("for ada")).Then(scripted.Say("shared again"))
	for _, c := range []struct {
		agent messages.AgentID
		want  string
	}{{bert, "shared"}, {ada, "for ada"}, {ada, ""}, {bert, "shared again"}, {bert, ""}} {
		resp, err := m.Generate(t.Context(), providers.Request{Agent: c.agent}, nil)
		switch {
		case c.want == "":
			if e := providers.AsError(err); err == nil || e.Kind != providers.BadRequest || !strings.Contains(e.Message, c.agent.String()) {
				t.Fatalf("past its end the script of %s gave %+v, %v", c.agent, resp, err)
			}
		case err != nil || resp.Items[0].Content.Text() != c.want:
			t.Fatalf("%s got %+v, %v; want %q", c.agent, resp, err, c.want)
		}
	}
	if m.Calls() != 5 || m.Left() != 0 || m.Requests()[1].Agent != ada {
		t.Fatalf("%d calls, %d left, %+v", m.Calls(), m.Left(), m.Requests())
	}
}

func TestFuncSeesTheRequest(t *testing.T) {
	m := scripted.Func(func(r providers.Request) scripted.Step { return scripted.Say(strings.ToUpper(r.Instructions)) })
	resp, err := m.Generate(t.Context(), providers.Request{Instructions: "shout"}, nil)
	if err != nil || resp.Items[0].Content.Text() != "SHOUT" || resp.Finish != "stop" {
		t.Fatalf("got %+v, %v", resp, err)
	}
}

// A34: a script sees what is forced, and plays on as written.
func TestScriptSeesTheToolChoice(t *testing.T) {
	m := scripted.New(scripted.Say("as written"))
	resp, err := m.Generate(t.Context(), providers.Request{ToolChoice: "required"}, nil)
	if err != nil || resp.Items[0].Content.Text() != "as written" || m.Requests()[0].ToolChoice != "required" {
		t.Fatalf("got %+v, %v to %+v", resp, err, m.Requests())
	}
}

func TestGateHoldsUntilReleased(t *testing.T) {
	gate := scripted.NewGate()
	m := scripted.New(scripted.Held(gate, scripted.Say("now")), scripted.Step{Text: "ab", After: 9, Gate: gate})
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		_, err = m.Generate(t.Context(), providers.Request{}, func(providers.Delta) { <-gate.Reached() })
	})
	<-gate.Reached()
	gate.Release()
	gate.Release()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), providers.Request{}, nil); err != nil {
		t.Fatalf("an open gate held: %v", err)
	}
}

func TestCauseOfCancelIsTold(t *testing.T) {
	gate := scripted.NewGate()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("a person said stop")
	go func() { <-gate.Reached(); cancel(stop) }()
	_, err := scripted.New(scripted.Held(gate, scripted.Say("never"))).Generate(ctx, providers.Request{}, nil)
	if e := providers.AsError(err); e.Kind != providers.Canceled || !errors.Is(err, stop) {
		t.Fatalf("got %#v", err)
	}
}

func TestFailureCarriesUsage(t *testing.T) { // A52
	shared := &providers.Error{Kind: providers.Overloaded, Temporary: true, Message: "full"}
	step := scripted.Step{Err: shared, Usage: messages.Usage{Input: 3}}
	_, err := scripted.New(step).Generate(t.Context(), providers.Request{}, nil)
	if e := providers.AsError(err); e.Usage.Input != 3 || !e.Temporary || shared.Usage.Input != 0 {
		t.Fatalf("got %#v; the script's own is %#v", e, shared)
	}
}

func TestItemsTravelWhole(t *testing.T) { // A54
	hosted := messages.Item{Type: "web_search_call", Raw: []byte(`{"x":1}`), Provider: "there"}
	resp, err := scripted.New(scripted.Step{Items: []messages.Item{hosted}}).Generate(t.Context(), providers.Request{}, nil)
	if err != nil || string(resp.Items[0].Raw) != `{"x":1}` || resp.Items[0].Type != hosted.Type {
		t.Fatalf("got %+v, %v", resp, err)
	}
}

func TestCut(t *testing.T) {
	for text, n := range map[string]int{"": 3, "a": 3, "žluťoučký": 4, "日本語": 7, "plain text": 2} {
		pieces := scripted.Step{Text: text, Pieces: n}.Cut()
		if strings.Join(pieces, "") != text || len(pieces) > n {
			t.Errorf("%q in %d became %q", text, n, pieces)
		}
		for _, p := range pieces {
			if strings.ToValidUTF8(p, "?") != p {
				t.Errorf("%q is cut inside a character: %q", text, pieces)
			}
		}
	}
}

func TestTwoStep(t *testing.T) {
	p := scripted.TwoStep("echo", `{"text":"ping"}`)
	r := providers.Request{Model: "m", Call: "7", Items: []messages.Item{messages.Text(messages.RoleUser, "hi")}}
	resp, err := p.Generate(t.Context(), r, nil)
	if err != nil || resp.Items[0].Type != messages.ItemCall || resp.Items[0].Name != "echo" || resp.Items[0].CallID != "call_7" || resp.Finish != "tool_calls" {
		t.Fatalf("first: %+v, %v", resp, err)
	}
	r.Items = append(r.Items, resp.Items[0], messages.Item{Type: messages.ItemCallOutput, CallID: "call_7"})
	var shown string
	resp, err = p.Generate(t.Context(), r, func(d providers.Delta) { shown += d.Text })
	if err != nil || resp.Items[0].Content.Text() != "done" || shown != "done" || resp.Finish != "stop" {
		t.Fatalf("second: %+v, %v, shown %q", resp, err, shown)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = p.Generate(ctx, r, nil); providers.AsError(err).Kind != providers.Canceled {
		t.Fatalf("after the end of ctx: %v", err)
	}
}

func BenchmarkTwoStep(b *testing.B) {
	p := scripted.TwoStep("echo", `{"text":"ping"}`)
	r := providers.Request{Model: "m", Call: "7"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Generate(b.Context(), r, nil); err != nil {
			b.Fatal(err)
		}
	}
}
