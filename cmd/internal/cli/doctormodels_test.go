package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// imitated returns the address of a server that is imitated, which answers with a word, and
// then with a call.
func imitated(t *testing.T, of providertest.Imitation, whole bool, arguments string) string {
	t.Helper()
	answers := providertest.Steps(scripted.Step{Text: "ok", Usage: messages.Usage{Input: 12, Output: 4}}, scripted.Step{Calls: []scripted.Call{{Name: "report", Arguments: arguments}}})
	if arguments == "" {
		answers[1] = answers[0]
	}
	for i := range answers {
		answers[i].Whole = whole
	}
	s, err := providertest.Start(providertest.Play(answers...), providertest.Config{Key: key, Imitate: of})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.URL
}

// Each model is asked over its API, and what works is said.
func TestDoctorModels(t *testing.T) {
	w := newWorld(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>Welcome</title>"))
	}))
	t.Cleanup(page.Close)
	mute := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"choices":[{"message":{},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(mute.Close)
	hung := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(hung) })
	const fits = `{"number":7}`
	file := func(models string) {
		w.file("reprise.yaml", `agents:
  a: {models: [`+models+`]}
  parrot: {model: demo/demo}
providers:
  openai: {api_key: `+key+`, profile: openai, base_url: "`+imitated(t, providertest.Imitation{Server: "openai", Model: "gpt-5.5"}, false, fits)+`"}
  qwen: {api_key: `+key+`, profile: vllm, base_url: "`+imitated(t, providertest.Imitation{Server: "vllm", Template: "qwen", Model: "qwen3.8"}, true, `{"number":"seven"}`)+`"}
  gemini: {api_key: `+key+`, profile: gemini, base_url: "`+imitated(t, providertest.Imitation{Server: "gemini"}, false, "")+`"}
  stranger: {api_key: sk-another-key-1234, profile: openai, base_url: "`+imitated(t, providertest.Imitation{Server: "openai", Model: "gpt-4.1"}, false, fits)+`"}
  narrow: {api_key: `+key+`, profile: vllm, rules: {refused: [max_output_tokens]}, base_url: "`+imitated(t, providertest.Imitation{Server: "vllm", Template: "qwen", Model: "qwen3.8"}, false, `{"number":7,"more":1}`)+`"}
  page: {base_url: "`+page.URL+`"}
  mute: {base_url: "`+mute.URL+`"}
  silent: {base_url: "`+silent.URL+`"}
  hasty: {base_url: "`+silent.URL+`", timeout: 100ms}
`)
	}
	file("openai/gpt-5.5, qwen/qwen3.8, gemini/gemini-3-pro, narrow/qwen3.8")
	w.run("doctor", "--models").exits(0,
		"ok    openai/gpt-5.5 answer  profile openai, API responses; it ended with stop; 12 tokens in, 4 out", "ok    openai/gpt-5.5 stream", "ok    openai/gpt-5.5 tools", "ok    openai/gpt-5.5 schema",
		"warn  qwen/qwen3.8 stream", "ok    qwen/qwen3.8 tools", "warn  qwen/qwen3.8 schema", "seven",
		"ok    gemini/gemini-3-pro stream", "warn  gemini/gemini-3-pro tools", "ok    narrow/qwen3.8 tools", "warn  narrow/qwen3.8 schema", "more")
	file("mute/m")
	w.run("doctor", "--models").exits(1, "fail  mute/m answer  the answer is empty; it ended with stop")
	file("stranger/gpt-4.1, page/m")
	r := w.run("doctor", "--models").exits(1,
		"fail  stranger/gpt-4.1 answer  auth (HTTP 401): Incorrect API key", "fail  page/m answer", "check the base URL")
	if strings.Contains(r.out+r.err, "sk-another-key-1234") {
		t.Errorf("the key is shown: %s%s", r.out, r.err)
	}
	if o := w.run("doctor", "--models", "-o", "json").exits(1).objects()[0]; o["ok"] != false || len(o["checks"].([]any)) != 2 {
		t.Errorf("%v", o)
	}
	file("silent/m")
	w.run("doctor", "--models", "--timeout", "1s").exits(1, "fail  silent/m answer", "no whole answer within 1s")
	file("hasty/m")
	w.run("doctor", "--models").exits(1, "fail  hasty/m answer", "not complete after 100ms", "timeout")
	file("demo/demo")
	w.run("doctor", "--models").exits(0, "no agent has a model that is asked over a network")
	w.run("doctor", "--models", "--deep").exits(2, "nothing else")
	w.run("doctor", "--models", "--config", "none.yaml").exits(1, "none.yaml")
}
