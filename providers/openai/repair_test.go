package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
)

// choosy is a server that answers with a refusal until a request has want, or has it not if it
// begins with an exclamation mark. It returns its address and the requests it had.
func choosy(t *testing.T, status int, refusal, want string) (url string, requests *[]string) {
	want, without := strings.CutPrefix(want, "!")
	requests = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, string(body))
		if strings.Contains(string(body), want) == without {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, refusal)
			return
		}
		_, _ = io.WriteString(w, "data: "+stop+"\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// A request that is refused for its form is sent once more in another form, which later
// requests have from the start.
func TestRepair(t *testing.T) {
	note := messages.Text(messages.RoleDeveloper, "Stopped.")
	user := messages.Text(messages.RoleUser, "hi")
	history := []messages.Item{user, call("call_abcdefghij", ""), output("call_abcdefghij", "1"), note, user}
	for name, c := range map[string]struct {
		profile       string
		status        int
		refusal, want string
	}{
		"token limit":          {"plain", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`, `"max_completion_tokens":100`},
		"older token limit":    {"openai", 422, `{"message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"]}]}}`, `"max_tokens":100`},
		"stream options":       {"plain", 400, `{"error":{"message":"Unknown name \"stream_options\": Cannot find field."}}`, `!stream_options`},
		"system first":         {"openai", 500, `{"error":{"code":500,"message":"Jinja Exception: System message must be at the beginning."}}`, `[System note]`},
		"no system":            {"plain", 500, `{"error":{"message":"template: System role not supported"}}`, `!"role":"system"`},
		"no tool messages":     {"plain", 400, `{"error":{"message":"Only user and assistant roles are supported!"}}`, `!"role":"tool"`},
		"answer after results": {"plain", 400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","code":"3230"}`, `(no text)`},
		"ids of nine":          {"plain", 400, `{"error":{"message":"Tool call IDs should be alphanumeric strings with length 9!"}}`, `!call_abcdefghij`},
		"reasoning required":   {"plain", 400, `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API."}}`, `"reasoning_content":""`},
		"signatures":           {"plain", 400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts."}}]`, `skip_thought_signature_validator`},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := profile.ByName(c.profile)
			if err != nil {
				t.Fatal(err)
			}
			url, requests := choosy(t, c.status, c.refusal, c.want)
			p := openai.New(key, openai.BaseURL(url), openai.Profile(server))
			r := providers.Request{Model: "m", Instructions: "Be brief.", Items: history, Settings: providers.Settings{MaxOutputTokens: 100}}
			for n, want := range []int{2, 3} {
				if _, err := p.Generate(t.Context(), r, nil); err != nil {
					t.Fatalf("%v after %s", err, strings.Join(*requests, "\n"))
				}
				if len(*requests) != want {
					t.Errorf("%d requests after call %d, want %d", len(*requests), n+1, want)
				}
			}
		})
	}
}

// What is not known, what a configuration sets, and what has begun to answer is not repaired.
func TestNoRepair(t *testing.T) {
	const refusal = `{"error":{"message":"stream_options is not permitted","type":"invalid_request_error"}}`
	url, requests := choosy(t, 400, refusal, "nothing")
	rules := profile.Rules{StreamUsage: profile.Yes}
	for name, p := range map[string]*openai.Provider{
		"set":     openai.New(key, openai.BaseURL(url), openai.Rules(rules)),
		"refused": openai.New(key, openai.BaseURL(url)),
	} {
		*requests = nil
		want := map[string]int{"set": 1, "refused": 2}[name]
		if e := fail(t, p, ask()); e.Kind != providers.BadRequest || len(*requests) != want {
			t.Errorf("%s: %v after %d requests, want %d", name, e, len(*requests), want)
		}
	}
	s, p := start(t, data(delta(`{"content":"hello"}`), refusal), data(stop))
	if e := fail(t, p, ask()); e.Kind != providers.BadRequest || len(s.Requests()) != 1 {
		t.Errorf("got %v after %d requests", e, len(s.Requests()))
	}
}
