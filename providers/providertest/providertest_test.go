package providertest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

func TestScriptedModelPassesTheSuite(t *testing.T) {
	providertest.Run(t, func(_ *testing.T, steps ...scripted.Step) providers.Provider { return scripted.New(steps...) })
}

// A14: what the strict server lets through and what it refuses.
func TestStrict(t *testing.T) {
	const (
		user   = `{"role":"user","content":"hi"}`
		twoAsk = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}},{"id":"b","type":"function","function":{"name":"f","arguments":""}}]}`
		a      = `{"role":"tool","tool_call_id":"a","content":"1"}`
		b      = `{"role":"tool","tool_call_id":"b","content":"2"}`
	)
	for _, c := range []struct {
		name     string
		messages []string
		refusal  string
	}{
		{"plain", []string{user}, ""},
		{"answered in any order", []string{user, twoAsk, b, a, user}, ""},
		{"a call without a result", []string{user, twoAsk, a}, `"b" has no result`},
		{"a message in between", []string{user, twoAsk, a, user, b}, `"b" has no result`},
		{"a result without a call", []string{user, a}, "no open call"},
		{"a result twice", []string{user, twoAsk, a, a, b}, "no open call"},
		{"a result before its call", []string{a, twoAsk, b}, "no open call"},
		{"an empty result", []string{twoAsk, `{"role":"tool","tool_call_id":"a"}`, b}, "no content"},
		{"an empty answer", []string{user, `{"role":"assistant","content":""}`}, "no content"},
		{"nothing", nil, "empty"},
		{"one id twice", []string{strings.ReplaceAll(twoAsk, `"b"`, `"a"`)}, "two tool calls"},
		{"an unknown role", []string{`{"role":"critic","content":"x"}`}, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := providertest.Strict([]byte(`{"model":"m","messages":[` + strings.Join(c.messages, ",") + `]}`))
			switch {
			case c.refusal == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
				t.Fatalf("got %v, want a refusal that says %q", err, c.refusal)
			}
		})
	}
	if providertest.Strict([]byte(`{"model":`)) == nil || providertest.Strict([]byte(`{"messages":[]}`)) == nil {
		t.Fatal("a broken body or one without a model was let through")
	}
}

// A34: what must be called has to be offered.
func TestStrictChoice(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, c := range []struct {
		rest, choice string
		ok           bool
	}{
		{``, "", true},
		{tools, "", true},
		{tools + `,"tool_choice":"auto"`, "auto", true},
		{tools + `,"tool_choice":"required"`, "required", true},
		{tools + `,"tool_choice":"none"`, "none", true},
		{tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`, "f", true},
		{tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, "g", false},
		{tools + `,"tool_choice":"f"`, "f", false},
		{tools + `,"tool_choice":{"type":"function"}`, "", false},
		{`,"tool_choice":"none"`, "none", false},
	} {
		body := strings.TrimSuffix(hello, "}") + c.rest + "}"
		if err := providertest.Strict([]byte(body)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.rest, err)
		}
		if got := (&providertest.Request{Body: []byte(body)}).Chat().ToolChoice(); got != c.choice {
			t.Errorf("%s reads as the choice %q", c.rest, got)
		}
	}
}

func start(t *testing.T, script providertest.Script, c providertest.Config) *providertest.Server {
	t.Helper()
	s, err := providertest.Start(script, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func post(t *testing.T, s *providertest.Server, key, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/chat/completions?api-version=2024-10-21", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

const hello = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

func TestServerRecordsAndRefuses(t *testing.T) {
	s := start(t, providertest.Play(providertest.Limited("7")), providertest.Config{Key: "right"})
	if status, _, body := post(t, s, "wrong", hello); status != 401 || !strings.Contains(body, "wrong") {
		t.Fatalf("a wrong key got %d %s", status, body)
	}
	if status, _, _ := post(t, s, "right", `{"model":"m","messages":[]}`); status != 400 {
		t.Fatalf("an empty history got %d", status)
	}
	if status, h, _ := post(t, s, "right", hello); status != 429 || h.Get("Retry-After") != "7" {
		t.Fatalf("got %d %v", status, h)
	}
	if status, _, body := post(t, s, "right", hello); status != 500 || !strings.Contains(body, "ended") {
		t.Fatalf("past its end the script answered %d %s", status, body)
	}
	if s.Calls() != 4 || len(s.Requests()) != 4 || s.Last().Number != 4 || s.Last().Chat().Messages[0].Text() != "hi" {
		t.Fatalf("recorded %d calls, %d requests", s.Calls(), len(s.Requests()))
	}
}

func TestHoldAndRelease(t *testing.T) {
	s := start(t, providertest.Play(providertest.Steps(scripted.Say("late"))...), providertest.Config{})
	gate := s.Hold()
	done := make(chan string, 1)
	go func() {
		_, _, body := post(t, s, "", hello)
		done <- body
	}()
	<-gate.Reached()
	select {
	case body := <-done:
		t.Fatalf("answered while held: %s", body)
	default:
	}
	s.Release()
	if body := <-done; !strings.Contains(body, `"late"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Fatalf("released, it said %s", body)
	}
}

func TestTwoStepServer(t *testing.T) {
	s := start(t, providertest.TwoStep("echo", `{}`), providertest.Config{Lenient: true, Forget: true})
	if _, _, body := post(t, s, "", hello); !strings.Contains(body, `"name":"echo"`) {
		t.Fatalf("a fresh history got %s", body)
	}
	after := `{"model":"m","messages":[{"role":"user","content":"{\"role\":\"user"},{"role":"tool","content":"x","tool_call_id":"c"}],"stream":true,"tools":[{"type":"function","function":{"parameters":{"role":"user"}}}]}`
	if _, _, body := post(t, s, "", after); !strings.Contains(body, `"done"`) {
		t.Fatalf("a tool's result got %s", body)
	}
	if s.Last() != nil || s.Calls() != 2 {
		t.Fatalf("a forgetful server remembers %v, %d calls", s.Last(), s.Calls())
	}
}
