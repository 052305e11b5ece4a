package openai_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
)

// serving answers each request with a stream.
func serving(t *testing.T, stream string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stream) }))
	t.Cleanup(s.Close)
	return s
}

// An answer in one document is as complete as a streamed one must be, and an error is one
// wherever it stands.
func TestDocuments(t *testing.T) {
	for body, want := range map[string]providers.ErrorKind{
		`{}`:             providers.BadAnswer,
		`{"choices":[]}`: providers.BadAnswer,
		`[{"error":{"code":429,"message":"slow"}}]`:                                                           providers.RateLimit,
		`{"choices":[],"x_groq":{"id":"r","error":"over capacity"}}`:                                          providers.Overloaded,
		`{"message":"quota exceeded"}`:                                                                        providers.Overloaded,
		`{"object":"error","message":"odd","code":400}`:                                                       providers.BadRequest,
		`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}`: providers.BadAnswer,
	} {
		if e := fail(t, answering(t, 200, "application/json", body), ask()); e.Kind != want {
			t.Errorf("%s: got %v, want %s", body, e, want)
		}
	}
	stream := "data: [{\"error\":{\"code\":429,\"message\":\"slow\"}}]\n\n"
	if e := fail(t, answering(t, 200, "text/event-stream", stream), ask()); e.Kind != providers.RateLimit {
		t.Errorf("%s: got %v", stream, e)
	}
}

// What a server sends twice under two names is read once.
func TestMirrored(t *testing.T) {
	both := delta(`{"reasoning":"hm","reasoning_content":"hm","content":"Hello"}`)
	_, p := start(t, data(both, `{"choices":[{"message":{"content":"Hello world"},"delta":{"content":" world"},"finish_reason":"STOP"}]}`))
	resp := generate(t, p, ask())
	if got := resp.Items[0].Content.Text() + "|" + resp.Items[1].Content.Text(); got != "hm|Hello world" || resp.Finish != messages.FinishStop {
		t.Errorf("got %q, %s", got, resp.Finish)
	}
}

// An error without words beside an answer is none.
func TestEmptyErrors(t *testing.T) {
	_, p := start(t, data(`{"error":{"code":0,"message":""},"choices":[{"delta":{"content":"x"}}]}`, stop))
	if resp := generate(t, p, ask()); resp.Items[0].Content.Text() != "x" {
		t.Errorf("got %+v", resp)
	}
}

// An empty reason to stop is none: that of a chunk before stays.
func TestEmptyReasons(t *testing.T) {
	_, p := start(t, data(delta(`{"content":"x"},"finish_reason":""`), delta(`{},"finish_reason":"length"`), `{"choices":[{"delta":{},"finish_reason":""}],"usage":{"prompt_tokens":7}}`))
	if resp := generate(t, p, ask()); resp.Finish != messages.FinishLength {
		t.Errorf("got %+v", resp)
	}
}

// Names are bounded, and each is read once, however many pieces they come in.
func TestLongNames(t *testing.T) {
	piece := delta(`{"tool_calls":[{"index":0,"function":{"name":"` + strings.Repeat("x", 100) + `y"}}]}`)
	_, p := start(t, data(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}`), strings.Repeat(piece+"\n\ndata: ", 50)+stop))
	if e := fail(t, p, ask()); e.Kind != providers.BadAnswer || !strings.Contains(e.Message, "4096 bytes") {
		t.Errorf("got %v", e)
	}
}

// Elements of one index that have ids of their own stay apart.
func TestElementsWithIDs(t *testing.T) {
	part := func(id, text string) string {
		return delta(`{"reasoning_details":[{"type":"reasoning.encrypted","index":0,"id":` + id + `,"data":"` + text + `"}]}`)
	}
	_, p := start(t, data(part(`"a"`, "A"), part(`"b"`, "B"), part("null", "C"), stop))
	raw := string(generate(t, p, ask()).Items[0].Raw)
	if !strings.Contains(raw, `"data":"A"`) || !strings.Contains(raw, `"data":"BC"`) {
		t.Errorf("got %s", raw)
	}
}

// Secrets in any form are hidden, and an answer can be stored all the same.
func TestFormsOfSecrets(t *testing.T) {
	const basic, word, number = "dXNlcjpwYXNzd29yZA==", "correct horse battery", "123456789012"
	for _, account := range []string{"1", number} { // with the latter there is no Raw
		said := delta(`{"content":"` + basic + ` ` + word + `","odd":"dXNlcjpwYXNzd29yZA\u003d\u003D","part":"corr\u0065ct horse battery","account":` + account +
			`,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":\"corr\\u0065ct horse battery\"}"}}]}`)
		p := openai.New("", openai.BaseURL(serving(t, "data: "+said+"\n\ndata: "+stop+"\n\n").URL),
			openai.Header("Authorization", "basic "+basic), openai.Header("X-Password", word), openai.Header("X-Account-Token", number))
		resp := generate(t, p, ask())
		stored, err := json.Marshal(resp.Items)
		if err != nil || (resp.Items[0].Raw == nil) != (account == number) {
			t.Fatalf("%v of %s", err, stored)
		}
		for _, secret := range []string{basic, word, number, `ZA\u003d`, `ZA\\u003d`, `corr\u0065ct`, `corr\\u0065ct`} {
			if strings.Contains(string(stored)+resp.Finish, secret) {
				t.Errorf("%s is in %s, %s", secret, stored, resp.Finish)
			}
		}
	}
	cut := `{"error":{"message":["` + strings.Repeat("x", 985) + key + `"]}}`
	if e := fail(t, answering(t, http.StatusBadRequest, "application/json", cut), ask()); strings.Contains(e.Message, key[:8]) {
		t.Errorf("a part of the key is in %s", e.Message)
	}
}

// What cannot be written as JSON is refused before anything is sent.
func TestNoJSON(t *testing.T) {
	nan := float32(math.NaN())
	for name, p := range map[string]*openai.Provider{
		"a setting":  openai.New(key, openai.BaseURL("http://127.0.0.1:1")),
		"extra_body": openai.New(key, openai.BaseURL("http://127.0.0.1:1"), openai.ExtraBody("x", json.RawMessage(`{"y":`))),
	} {
		r := ask()
		if name == "a setting" {
			r.Settings.PresencePenalty = &nan
		}
		if e := fail(t, p, r); e.Kind != providers.BadRequest || !strings.Contains(e.Message, name) {
			t.Errorf("%s: got %v", name, e)
		}
	}
}

// Signatures go back to the model of the provider that gave them, and to no other.
func TestSignaturesOfOthers(t *testing.T) {
	signed := messages.Text(messages.RoleAssistant, "Well.")
	signed.Raw = json.RawMessage(`{"message":{"extra_content":{"google":{"thought_signature":"AAAA"}}},"extra_content":{"google":{"thought_signature":"AAAA"}}}`)
	user := messages.Text(messages.RoleUser, "hi")
	for of, back := range map[[2]string]bool{{"here", "m"}: true, {"there", "m"}: false, {"here", "n"}: false} {
		signed.Provider, signed.Model = of[0], of[1]
		if got := sent(t, "gemini", "m", user, signed, user); strings.Contains(got, "AAAA") != back {
			t.Errorf("a signature of %v is sent to here/m: %t, in %s", of, !back, got)
		}
	}
}

// A call that takes longer than the provider's limit fails, and may be tried again.
func TestTimeout(t *testing.T) {
	s, _ := start(t, data(stop))
	s.Hold()
	t.Cleanup(s.Release)
	p := openai.New(key, openai.BaseURL(s.URL), openai.Timeout(time.Millisecond))
	if e := fail(t, p, ask()); e.Kind != providers.Network || !e.Temporary || !strings.Contains(e.Message, "raise the provider's timeout") {
		t.Errorf("got %v", e)
	}
}

// The key is sent once, under the name that the rules have for it.
func TestHeaderOfKey(t *testing.T) {
	for name, want := range map[profile.Value][2]string{"authorization": {"Bearer " + key, ""}, "api-key": {"", key}} {
		s, _ := start(t, data(stop))
		p := openai.New(key, openai.BaseURL(s.URL), openai.Rules(profile.Rules{Key: name}))
		_, _ = p.Generate(t.Context(), ask(), nil)
		h := s.Last().Header
		if got := [2]string{h.Get("Authorization"), h.Get("Api-Key")}; got != want {
			t.Errorf("%s: the headers are %q", name, got)
		}
	}
}

// Usage is found where servers put it.
func TestPlacesOfUsage(t *testing.T) {
	for body, want := range map[string]messages.Usage{
		`{"choices":[],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":3}}}`:                                       {Input: 7, Output: 3},
		`{"choices":[{"delta":{},"usage":{"prompt_tokens":7,"completion_tokens":3,"cached_tokens":2}}]}`:                    {Input: 7, Output: 3, Cached: 2},
		`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"num_cached_tokens":2}}`:                            {Input: 7, Output: 3, Cached: 2},
		`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cache_write_tokens":4}}}`: {Input: 7, Output: 3, CacheWrite: 4},
		`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":15}}`:                                {Input: 7, Output: 8, Reasoning: 5},
		`{"choices":[],"usage":{"completion_tokens":3,"total_tokens":15}}`:                                                  {Output: 3},
	} {
		_, p := start(t, data(delta(`{"content":"x"}`), stop, body))
		if got := generate(t, p, ask()).Usage; got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}
