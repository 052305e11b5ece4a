package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/protocoltest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// within is how long a client waits for the next message of a stream.
const within = time.Minute

// foreign is a node and a client that others wrote.
type foreign struct {
	*world
	own   *client.Client
	it    *protocoltest.Client
	gates map[string]*scripted.Gate // of the answers to the texts that wait, after the first piece
	agent protocoltest.Agent
}

func newForeign(t *testing.T) *foreign {
	f := &foreign{world: newWorld(t), gates: map[string]*scripted.Gate{"wait": scripted.NewGate(), "leave": scripted.NewGate()}}
	f.it = protocoltest.Start(f.ctx, t, f.url)
	model := scripted.Func(func(r providers.Request) scripted.Step {
		last := r.Items[len(r.Items)-1]
		if last.Type == messages.ItemCallOutput {
			return scripted.Say(last.Output)
		}
		text := lastUser(r)
		kind, fails := strings.CutPrefix(text, "fail ")
		switch {
		case fails:
			return scripted.Fail(&providers.Error{Kind: providers.ErrorKind(kind), Message: "no " + kind})
		case text == "pay":
			return scripted.Ask(scripted.Call{ID: "a", Name: "refund", Arguments: `{"order":"7","cents":9900}`})
		case f.gates[text] != nil:
			return scripted.Step{Text: "first second", Pieces: 2, Gate: f.gates[text], After: 1}
		case text == "count":
			return scripted.Step{Text: "one two three", Pieces: 3}
		}
		return scripted.Say("you said " + text)
	})
	pay := tool.New("refund", "Pay an order back", tool.Rerun, func(_ context.Context, r refund) (string, error) { return "paid " + r.Order, nil }).ApproveAlways()
	f.own = f.node(agents(model, func(d *actors.Definition) { d.Tools = []tool.Tool{pay} }), func(c *cluster.Config) {
		c.PromptDecides = func(string, string) bool { return true }
	}).Client()
	found := f.it.Discover()
	if len(found) != 1 {
		t.Fatalf("discovered %+v, want one agent", found)
	}
	f.agent = found[0]
	return f
}

// key is the prompt subject of an agent of its own.
func (f *foreign) key(key string) string {
	return strings.TrimSuffix(f.agent.Subject, f.agent.Name) + key
}

// reads compares a whole stream with the text of its answer.
func (f *foreign) reads(what string, s *protocoltest.Stream, want string) {
	f.t.Helper()
	if text, acks, end := s.Rest(); text != want || acks == 0 || end.Type != "end" {
		f.t.Errorf("%s gives %q after %d acks, and ends with %+v; want %q", what, text, acks, end, want)
	}
}

// A client of the agent protocol that others wrote discovers agents, prompts them, streams, answers
// questions and sees errors as its protocol defines them.
func TestForeignClient(t *testing.T) { // A100
	f := newForeign(t)
	is := f.agent
	if is.Agent != "assistant" || is.Owner != "default" || is.Name != "main" || is.Version != "0.3" || is.Queue != "agents" || is.Max != 1023<<10 || is.Attachments || !is.Alive || !is.There {
		t.Errorf("discovered %+v", is)
	}
	for name, body := range map[string]any{
		"an envelope": map[string]any{"prompt": "count"}, "text": "count",
		"an envelope with fields of others": map[string]any{
			"prompt": "count", "id": 7, "policy": "any", "reply": "reprise.in.x", "options": "none", "deadline": true, "metadata": nil, "session": "s1", "agent": 1,
		},
	} {
		f.reads(name, f.it.Prompt(is.Subject, body, within), "one two three")
	}
	f.reads("1 MB", f.it.Prompt(f.key("large"), map[string]any{"prompt": strings.Repeat("x", 100<<10)}, within), "you said "+strings.Repeat("x", 100<<10))
	f.errors()
	f.questions()
	f.keepAlive()
	f.cancel()
	f.stats()
}

func (f *foreign) errors() {
	f.t.Helper()
	for _, c := range []struct {
		key  string
		body any
		code int
		why  string
	}{
		{"e1", map[string]any{"prompt": ""}, 400, "empty"},
		{"e1", map[string]any{"prompt": 5}, 400, ""},
		{"e1", map[string]any{"prompt": "see", "attachments": []any{map[string]any{"filename": "a.png", "content": "AA=="}}}, 400, "attachments"},
		{"e1", map[string]any{"prompt": "hello", "reprise": map[string]any{"id": 7}}, 400, "id"},
		{"e2", "fail bad_request", 400, "no bad_request"},
		{"e3", "fail not_found", 404, "no not_found"},
		{"e4", "fail rate_limit", 429, "no rate_limit"},
		{"e5", "fail overloaded", 500, "no overloaded"},
		{"e6", "fail bad_answer", 500, "no bad_answer"},
	} {
		_, _, end := f.it.Prompt(f.key(c.key), c.body, within).Rest()
		if end.Type != "error" || end.Name != "ServiceError" || end.Code != c.code || !strings.Contains(end.Text, c.why) {
			f.t.Errorf("%v ends with %+v, want error %d with %q", c.body, end, c.code, c.why)
		}
	}
	if _, _, end := f.it.Prompt("agents.prompt.nobody.default.main", "hello", within).Rest(); end.Type != "error" || end.Code != 404 {
		f.t.Errorf("an agent of an unknown kind: %+v", end)
	}
}

func (f *foreign) questions() {
	f.t.Helper()
	for name, c := range map[string]struct {
		answer any
		want   string
	}{
		"yes":           {"yes", "paid 7"},
		"no":            {"no: give a voucher", "give a voucher"},
		"as a prompt":   {map[string]any{"prompt": "yes"}, "paid 7"},
		"as a decision": {map[string]any{"decision": "deny", "text": "not today"}, "not today"},
	} {
		s := f.it.Prompt(f.key("q-"+strings.ReplaceAll(name, " ", "-")), "pay", within)
		for {
			m := s.Next()
			if m.Type == "query" {
				if !strings.Contains(m.Text, `"order":"7"`) {
					f.t.Errorf("asked %q", m.Text)
				}
				s.Answer(m.Query, c.answer)
				break
			}
			if m.Type != "status" {
				f.t.Fatalf("%s: %+v comes before the question", name, m)
			}
		}
		if text, _, end := s.Rest(); text != c.want || end.Type != "end" {
			f.t.Errorf("%s gives %q and ends with %+v, want %q", name, text, end, c.want)
		}
	}
	s, asked := f.it.Prompt(f.key("q-ok"), "pay", within), 0
	m := s.Next()
	for ; m.Type != "error" && m.Type != "end"; m = s.Next() {
		if m.Type == "query" {
			asked++
			s.Answer(m.Query, "ok")
		}
	}
	if m.Code != 400 || asked != 3 || !strings.Contains(m.Text, "still waits") { // it is no yes, and the stream does not hang
		f.t.Errorf("asked %d times, the stream ends with %+v", asked, m)
	}
}

// A model that is silent for longer than the client waits for a message costs no stream.
func (f *foreign) keepAlive() {
	f.t.Helper()
	s := f.it.Prompt(f.key("k"), "wait", 4*time.Second)
	for acks := 0; acks < 4; {
		switch m := s.Next(); m.Type {
		case "status":
			acks++
		case "response":
		default:
			f.t.Fatalf("%d acks, then %+v", acks, m)
		}
	}
	f.gates["wait"].Release()
	if text, _, end := s.Rest(); !strings.HasSuffix(text, "second") || end.Type != "end" {
		f.t.Errorf("then %q and %+v", text, end)
	}
}

// The caller that stops loses its stream, and the turn continues.
func (f *foreign) cancel() {
	f.t.Helper()
	s := f.it.Prompt(f.key("c"), "leave", within)
	for m := s.Next(); m.Type != "response"; m = s.Next() {
	}
	s.Stop()
	if _, _, end := s.Rest(); end.Type != "end" {
		f.t.Errorf("the stopped stream ends with %+v", end)
	}
	f.gates["leave"].Release()
	f.until(f.own, "assistant/c", ofType("turn.completed"))
}

// The statistics of the service count the prompts, those that failed, and the time that they took.
func (f *foreign) stats() {
	f.t.Helper()
	var stats micro.Stats
	f.eventually("the streams have ended", func() bool {
		msg, err := f.nc.RequestWithContext(f.ctx, "$SRV.STATS.agents", nil)
		f.ok(err)
		if err := json.Unmarshal(msg.Data, &stats); err != nil || len(stats.Endpoints) == 0 {
			f.ok(errors.Join(err, errors.New("no endpoints")))
		}
		return stats.Endpoints[0].NumErrors >= 10
	})
	prompt := stats.Endpoints[0]
	if prompt.Name != "prompt" || prompt.NumRequests < 19 || prompt.NumErrors != 10 || prompt.LastError == "" || prompt.ProcessingTime < 4*time.Second || prompt.AverageProcessingTime == 0 {
		f.t.Errorf("the statistics are %+v", prompt)
	}
}
