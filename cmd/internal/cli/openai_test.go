package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// modelServer answers every chat completion with one word and sends what it was asked with to
// asked.
func modelServer(t *testing.T) (url string, asked chan string) {
	asked = make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		asked <- body.Model + " " + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "text/event-stream")
		for _, chunk := range []string{`{"delta":{"role":"assistant","content":"Grüezi"}}`, `{"delta":{},"finish_reason":"stop"}`} {
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[%s]}\n\n", chunk)
		}
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", asked
}

const key = "sk-abcdefghijklmnopqrstuvwxyz"

func TestDevUsesOpenAI(t *testing.T) {
	w := newWorld(t)
	url, asked := modelServer(t)
	w.env = append(w.env, "OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+url)
	node := w.dev()
	w.run("ask", "assistant/main", "hello").exits(0, "Grüezi")
	if got := <-asked; got != "gpt-5.5 Bearer "+key {
		t.Errorf("the model was asked as %q", got)
	}
	w.run("events", "assistant/main", "-o", "json").exits(0, "openai/gpt-5.5")
	node.kill()
	if said := node.ready + node.rest.String() + node.errs.String(); strings.Contains(said, key) {
		t.Errorf("the key is shown: %s", said)
	}
}

func TestFileUsesOpenAI(t *testing.T) {
	w := newWorld(t)
	url, asked := modelServer(t)
	w.env = append(w.env, "SOME_KEY="+key, "WORD=shhh")
	w.file("reprise.yaml", `
agents:
  assistant: {model: mine/small, tools: [lookup]}
  clerk: {model: demo/demo, tools: [lookup]}
tools:
  lookup:
    command: [/bin/sh, -c, 'echo "the word is $WORD_GIVEN"']
    description: Look the word up
    read_only: true
    env: {WORD_GIVEN: "${WORD}"}
providers:
  mine: {api_key: "${SOME_KEY}", base_url: "`+url+`"}
  unused: {api_key: "${NOT_SET}"}
`)
	w.run("check").exits(0, "2 agents")
	w.dev()
	w.run("ask", "assistant/main", "hello").exits(0, "Grüezi")
	if got := <-asked; got != "small Bearer "+key {
		t.Errorf("the model was asked as %q", got)
	}
	w.run("ask", "clerk/main", "use lookup").exits(0, "the word is shhh")
	w.run("dev", "--model", "demo/demo", "--listen", "127.0.0.1:0").exits(2, "--model")
}

// TestFileShapesRequests holds that the headers, the query and the body that a file gives a provider reach its server.
func TestFileShapesRequests(t *testing.T) {
	w := newWorld(t)
	requests := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- fmt.Sprint(r.URL.Path, " ", r.URL.Query(), " ", r.Header.Get("X-Team"), " ", r.Header.Get("X-Key"), " ", string(body))
		_, _ = fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	w.env = append(w.env, "GATE_KEY="+key)
	w.file("reprise.yaml", `
agents: {assistant: {model: gate/m, settings: {seed: 7}}}
providers:
  gate:
    base_url: "`+server.URL+`/v1"
    headers: {X-Team: agents, X-Key: "${GATE_KEY}"}
    query: {api-version: "2024-10-21"}
    extra_body: {user: me}
    rules: {seed: random_seed}
`)
	w.dev()
	w.run("ask", "assistant/main", "hello").exits(0, "Yes.")
	got := <-requests
	for _, want := range []string{"/v1/chat/completions map[api-version:[2024-10-21]] agents " + key + " ", `"user":"me"`, `"random_seed":7`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestFailedTurnIsSeen holds that show, ls and doctor name an agent whose model refused it.
func TestFailedTurnIsSeen(t *testing.T) {
	w := newWorld(t)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"Incorrect API key"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(refusing.Close)
	w.env = append(w.env, "OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+refusing.URL)
	w.dev()
	w.run("ask", "assistant/main", "hello").exits(1, "Incorrect API key")
	w.run("show", "assistant/main").exits(0, "last turn", "t4 failed (auth) at", "Incorrect API key", "resume assistant/main")
	w.run("ls").exits(0, "LAST", "failed (auth)")
	w.run("ls", "--last", "failed").exits(0, "assistant/main")
	w.run("ls", "--last", "aborted").exits(2, "write failed")
	w.run("ls", "--last", "failed", "--kind", "parrot").exits(0, "no such agents")
	w.run("doctor").exits(0, "auth: 1", "assistant/main", "ls --last failed")
}

// An answer that did not end by itself is shown as what it is, and a failure by its kind.
func TestAskShowsHowAnswersEnd(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "longest") {
			http.Error(w, `{"error":{"message":"too many words","code":"context_length_exceeded"}}`, http.StatusBadRequest)
			return
		}
		finish := "length"
		if strings.Contains(string(body), "strange") {
			finish = "blocklist"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"Once upon"},"finish_reason":%q}]}`, finish)
	}))
	t.Cleanup(server.Close)
	w.env = append(w.env, "OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+server.URL)
	w.dev()
	w.run("ask", "assistant/main", "a long story").exits(0, "Once upon", "cut off", "(length)")
	w.run("turns", "assistant/main").exits(0, "completed", "length")
	w.run("ask", "assistant/main", "the longest story").exits(1, "failed (context_length)", "too many words", "compact the agent", "continues without what was refused")
	w.run("turns", "assistant/main", "-o", "json").exits(0, `"kind":"context_length"`, `"status":400`)
	w.run("ask", "assistant/main", "a strange story").exits(0, "Once upon", "the answer ended with blocklist")
}
