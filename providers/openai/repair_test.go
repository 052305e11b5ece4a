package openai_test

import (
	"encoding/json"
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

// A request that is refused for its form is sent again in another form, which later
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

const (
	wantsOlder = `{"error":{"message":"Unknown parameter: max_completion_tokens"}}`
	wantsNewer = `{"error":{"message":"'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`
	tooMany    = `{"error":{"message":"max_completion_tokens is too large: 100. This model takes at most 50"}}`
	odd        = `{"error":{"message":"max_completion_tokens is odd"}}`
	unasked    = `{"error":{"message":"stream_options is not permitted"}}`
	notOverAPI = `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","type":"invalid_request_error","param":"model"}}`
)

// A server may refuse more than one form. What it says of the last one is reported, with the
// first refusal, which may be the cause.
func TestRepairs(t *testing.T) {
	for name, c := range map[string]struct {
		profile  string
		refusals [][2]string // a request that has the first is refused with the second
		requests int         // of two calls
		says     string      // "": accepted
	}{
		"two rules":        {"plain", [][2]string{{`"max_tokens"`, wantsNewer}, {"stream_options", unasked}}, 4, ""},
		"a value":          {"openai", [][2]string{{"max_completion_tokens", tooMany}}, 2, "at most 50"},
		"both forms":       {"openai", [][2]string{{`"max_tokens"`, wantsNewer}, {"max_completion_tokens", odd}}, 4, "is odd"},
		"another refusal":  {"openai", [][2]string{{"max_completion_tokens", wantsOlder}, {"messages", `{"error":{"message":"odd"}}`}}, 4, "odd (a request in another form was refused before: Unknown parameter"},
		"one after others": {"plain", [][2]string{{`"max_tokens"`, wantsNewer}, {"stream_options", unasked}, {`"role":"system"`, `{"error":{"message":"system role not supported"}}`}}, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := strict(t, 400, c.refusals)
			server, _ := profile.ByName(c.profile)
			p := openai.New(key, openai.BaseURL(url), openai.Profile(server))
			r := providers.Request{Model: "m", Instructions: "Be brief.", Items: ask().Items, Settings: providers.Settings{MaxOutputTokens: 100}}
			for range 2 {
				if c.says == "" {
					generate(t, p, r)
				} else if e := fail(t, p, r); !strings.Contains(e.Message, c.says) {
					t.Errorf("got %v", e)
				}
			}
			if len(*requests) != c.requests {
				t.Errorf("%d requests, want %d:\n%s", len(*requests), c.requests, strings.Join(*requests, "\n"))
			}
		})
	}
}

// strict is a server that refuses a request for the first text that it has.
func strict(t *testing.T, status int, refusals [][2]string) (url string, requests *[]string) {
	requests = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, r.URL.Path+string(body))
		for _, refusal := range refusals {
			if strings.Contains(r.URL.Path+string(body), refusal[0]) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, refusal[1])
				return
			}
		}
		if strings.HasSuffix(r.URL.Path, "/responses") {
			_, _ = io.WriteString(w, `{"id":"resp_1","status":"completed","output":[]}`)
			return
		}
		_, _ = io.WriteString(w, "data: "+stop+"\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// A model that is served over the Responses API alone is reported as not found over the other.
func TestRepairOfNotFound(t *testing.T) {
	url, requests := strict(t, 404, [][2]string{{"chat/completions", notOverAPI}})
	p := openai.New(key, openai.BaseURL(url))
	for range 2 {
		generate(t, p, ask())
	}
	if len(*requests) != 3 {
		t.Errorf("got %q", *requests)
	}
}

// A refusal that names the other API is what is reported if that API does not take the request.
func TestRepairToAnotherAPI(t *testing.T) {
	seed := int64(7)
	for name, c := range map[string]struct {
		settings providers.Settings
		refusals [][2]string
		says     string
	}{
		"not there":  {providers.Settings{}, [][2]string{{"chat/completions", notOverAPI}, {"/responses", "404 page not found"}}, "(over the other API: 404 page not found"},
		"a setting":  {providers.Settings{Seed: &seed}, [][2]string{{"chat/completions", notOverAPI}}, "(over the other API: the setting seed cannot be sent"},
		"in no form": {providers.Settings{}, [][2]string{{"chat/completions", notOverAPI}, {"/responses", `{"error":{"message":"gone"}}`}}, "(over the other API: gone"},
	} {
		url, _ := strict(t, 404, c.refusals)
		r := ask()
		r.Settings = c.settings
		e := fail(t, openai.New(key, openai.BaseURL(url)), r)
		if e.Kind != providers.NotFound || !strings.HasPrefix(e.Message, "This model is only supported in v1/responses") || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: got %v", name, e)
		}
	}
}

// Models that go-openai refuses to ask with tools over Chat Completions are asked over the
// Responses API, whatever the server, unless a configuration says otherwise.
func TestModelsOfGoOpenAI(t *testing.T) {
	for model, want := range map[string]string{"gpt-6-astra": "responses", "gpt-6-luna": "responses", "gpt-6.1-sol": "responses", "vendor/gpt-6-astra": "chat", "gpt-5.5": "chat", "m": "chat"} {
		_, api := openai.New(key, openai.BaseURL("http://gateway")).Speaks(model)
		chat := openai.New(key, openai.BaseURL("http://gateway"), openai.Rules(profile.Rules{API: profile.Chat}))
		_, own := chat.Speaks(model)
		if err := chat.CheckTools(model, ""); api != want || own != "chat" || (err != nil) != (want == "responses") {
			t.Errorf("%s is asked over %s, and over %s: %v", model, api, own, err)
		}
		if err := chat.CheckTools(model, "none"); (err != nil) != (model == "gpt-6-astra" || model == "gpt-6.1-sol") {
			t.Errorf("%s without effort: %v", model, err)
		}
	}
}

// They are asked over Chat Completions where that takes the request.
func TestModelsOfGoOpenAIWithoutTools(t *testing.T) {
	url, requests := strict(t, 404, [][2]string{{"/responses", "404 page not found"}})
	p := openai.New(key, openai.BaseURL(url))
	plain, idle := ask(), ask()
	plain.Model, idle.Model = "gpt-6-astra", "gpt-6-luna"
	idle.Tools, idle.Settings.ReasoningEffort = []providers.ToolSpec{{Name: "f"}}, "none"
	for _, r := range []providers.Request{plain, idle} {
		generate(t, p, r)
	}
	if len(*requests) != 2 {
		t.Errorf("got %q", *requests)
	}
}

// A signature that is refused is one history's: those of others still go back.
func TestRepairOfOneHistory(t *testing.T) {
	url, requests := strict(t, 400, [][2]string{{"BAD", `[{"error":{"code":400,"message":"Thought signature is not valid.","status":"INVALID_ARGUMENT"}}]`}})
	server, _ := profile.ByName("gemini")
	p := openai.New(key, openai.BaseURL(url), openai.Name("here"), openai.Profile(server))
	for _, signature := range []string{"BAD", "GOOD"} {
		c := by("gemini-3", call("a", ""))[0]
		c.Raw = json.RawMessage(`{"id":"a","extra_content":{"google":{"thought_signature":"` + signature + `"}}}`)
		r := ask(c, output("a", "1"))
		r.Model = "gemini-3"
		generate(t, p, r)
	}
	if len(*requests) != 3 || strings.Contains((*requests)[1], "BAD") || !strings.Contains((*requests)[2], "GOOD") {
		t.Errorf("got %q", *requests)
	}
}

// A form that all requests need is kept, though one history needs another beside.
func TestRepairsOfBothKinds(t *testing.T) {
	url, requests := strict(t, 400, [][2]string{{"stream_options", unasked}, {"BAD", `{"error":{"message":"Thought signature is not valid."}}`}})
	p := openai.New(key, openai.BaseURL(url), openai.Name("here"))
	c := by("m", call("a", ""))[0]
	c.Raw = json.RawMessage(`{"id":"a","extra_content":{"google":{"thought_signature":"BAD"}}}`)
	for range 2 {
		generate(t, p, providers.Request{Model: "m", Items: ask(c, output("a", "1")).Items})
	}
	if len(*requests) != 5 || strings.Contains((*requests)[3], "stream_options") {
		t.Errorf("%d requests: %q", len(*requests), *requests)
	}
}
