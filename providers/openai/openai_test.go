package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

const key = "sk-test-0123456789abcdef"

func start(t *testing.T, answers ...providertest.Answer) (*providertest.Server, *openai.Provider) {
	t.Helper()
	return startAs(t, "openai", answers...)
}

// startAs returns a server and a provider with the profile of that name.
func startAs(t *testing.T, name string, answers ...providertest.Answer) (*providertest.Server, *openai.Provider) {
	t.Helper()
	server, err := profile.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := providertest.Start(providertest.Play(answers...), providertest.Config{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, openai.New(key, openai.BaseURL(s.URL), openai.Name("here"), openai.Profile(server))
}

// data is an answer of these events, the last of which ends the stream.
func data(events ...string) providertest.Answer {
	return providertest.Answer{Data: append(events, "[DONE]")}
}

const stop = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func ask(items ...messages.Item) providers.Request {
	return providers.Request{Model: "m", Items: append([]messages.Item{messages.Text(messages.RoleUser, "hi")}, items...)}
}

func generate(t *testing.T, p providers.Provider, r providers.Request) providers.Response {
	t.Helper()
	resp, err := p.Generate(t.Context(), r, nil)
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	return resp
}

func fail(t *testing.T, p providers.Provider, r providers.Request) *providers.Error {
	t.Helper()
	resp, err := p.Generate(t.Context(), r, nil)
	var e *providers.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %+v and error %v, want a *providers.Error", resp, err)
	}
	return e
}

func TestSuite(t *testing.T) {
	for name, shape := range map[string]func(*providertest.Answer){
		"streamed":    func(*providertest.Answer) {},
		"interleaved": func(a *providertest.Answer) { a.Interleave = true },                                       // A38
		"null index":  func(a *providertest.Answer) { a.Interleave, a.Index = true, providertest.NullIndex },      // A38
		"no index":    func(a *providertest.Answer) { a.Interleave, a.Index = true, providertest.NoIndex },        // A38
		"whole":       func(a *providertest.Answer) { a.Whole = a.Gate == nil && (a.Err == nil || a.Text == "") }, // others must stream
	} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, func(t *testing.T, steps ...scripted.Step) providers.Provider {
				answers := providertest.Steps(steps...)
				for i := range answers {
					shape(&answers[i])
				}
				_, p := start(t, answers...)
				return p
			})
		})
	}
}

// A51: a delta is shown while the call still runs.
func TestDeltaBeforeTheEnd(t *testing.T) {
	gate := scripted.NewGate()
	_, p := start(t, providertest.Answer{Step: scripted.Step{Text: "one two", Pieces: 2, After: 1, Gate: gate}})
	shown := 0
	resp, err := p.Generate(t.Context(), ask(), func(providers.Delta) {
		shown++
		gate.Release() // only a delta that was shown lets the server continue
	})
	if err != nil || shown != 2 || resp.Items[0].Content.Text() != "one two" {
		t.Fatalf("got %+v, %v after %d deltas", resp, err, shown)
	}
}

func TestInterruptBeforeTheFirstByte(t *testing.T) {
	s, p := start(t)
	gate := s.Hold()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-gate.Reached()
		cancel(errors.New("a person said stop"))
	}()
	_, err := p.Generate(ctx, ask(), nil)
	if e := providers.AsError(err); e.Kind != providers.Canceled || !strings.Contains(e.Message, "a person said stop") {
		t.Fatalf("got %v", err)
	}
	<-s.Last().Gone // the server noticed too
}

// pipes is a network within the process. It listens to itself.
type pipes chan net.Conn

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestConnectionsAreUsedAgain(t *testing.T) {
	long := scripted.Step{Text: strings.Repeat("word ", 1000), Pieces: 50} // too long for one segment: the end mark comes apart
	s, _ := start(t, providertest.Steps(slices.Repeat([]scripted.Step{{}, long}, 10)...)...)
	synctest.Test(t, func(t *testing.T) { // a server that is slow to end is not waited for
		var dials atomic.Int32
		network := make(pipes)
		server := &http.Server{Handler: s}
		go func() { _ = server.Serve(network) }() // ends with Close
		defer server.Close()
		transport := &http.Transport{DialContext: func(ctx context.Context, to, addr string) (net.Conn, error) {
			dials.Add(1)
			return network.dial(ctx, to, addr)
		}}
		defer transport.CloseIdleConnections()
		p := openai.New(key, openai.BaseURL(s.URL), openai.HTTPClient(&http.Client{Transport: transport}))
		for range 20 {
			generate(t, p, ask())
		}
		if n := dials.Load(); n != 1 {
			t.Fatalf("20 calls opened %d connections, want 1", n)
		}
	})
}

// A server that keeps the connection open after a whole answer, or after an error, is not waited
// for, though its usage is.
func TestServerThatDoesNotEnd(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		end    string
	}{
		"end mark": {200, "data: [DONE]\n\n"}, "usage": {200, `data: {"choices":[],"usage":{"prompt_tokens":7}}` + "\n\n"}, "nothing": {200, ""},
		"error": {400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := offline(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, "data: "+stop+"\n\n")
					_ = http.NewResponseController(w).Flush()
					<-time.After(2 * time.Second) // of a fake clock
					_, _ = io.WriteString(w, c.end)
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				})
				begin := time.Now()
				resp, err := p.Generate(t.Context(), ask(), nil)
				if took := time.Since(begin); (err != nil) != (c.status != 200) || err == nil && resp.Finish != "stop" || took > 10*time.Second || (resp.Usage.Input == 7) != (name == "usage") {
					t.Fatalf("got %+v, %v after %v", resp, err, took)
				}
			})
		})
	}
}

// A server may name a reason to stop in each chunk of a long answer.
func TestReasonInEachChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := offline(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 10 {
				_, _ = io.WriteString(w, "data: "+delta(`{"content":"x"},"finish_reason":"stop"`)+"\n\n")
				_ = http.NewResponseController(w).Flush()
				<-time.After(2 * time.Second) // of a fake clock
			}
		})
		if resp := generate(t, p, ask()); resp.Items[0].Content.Text() != "xxxxxxxxxx" {
			t.Errorf("got %+v", resp)
		}
	})
}

// offline returns a provider that is answered by h within the process.
func offline(t *testing.T, h http.HandlerFunc) *openai.Provider {
	network := make(pipes)
	server, transport := &http.Server{Handler: h}, &http.Transport{DialContext: network.dial}
	go func() { _ = server.Serve(network) }() // ends with Close
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return openai.New(key, openai.BaseURL("http://server"), openai.HTTPClient(&http.Client{Transport: transport}))
}

func TestOptionsAndSettings(t *testing.T) {
	s, _ := start(t, data(stop), data(stop))
	zero, half, third, fourth, seed, no := float32(0), float32(0.5), float32(0.25), float32(-1), int64(7), false
	r := ask()
	r.Settings = providers.Settings{
		Temperature: &zero, TopP: &half, MaxOutputTokens: 7, ReasoningEffort: "low", Stop: []string{"a", "b"}, Seed: &seed, PresencePenalty: &third,
		FrequencyPenalty: &fourth, Verbosity: "high", ServiceTier: "flex", ParallelToolCalls: &no, CacheKey: "k",
		ExtraBody: map[string]json.RawMessage{"n": json.RawMessage(`1`), "service_tier": json.RawMessage(`"priority"`)},
	}
	r.Tools = []providers.ToolSpec{{Name: "f", Description: "does", Parameters: []byte(`{"type":"object","$comment":"kept"}`)}, {Name: "g"}}
	generate(t, openai.New(key, openai.BaseURL(s.URL), openai.Header("X-Title", "reprise"), openai.Query("api-version", "1&2"),
		openai.ExtraBody("user", json.RawMessage(`"me"`)), openai.Rules(profile.Rules{TokenLimit: "max_completion_tokens"})), r)
	const members = `"max_completion_tokens":7,"temperature":0,"top_p":0.5,"presence_penalty":0.25,"frequency_penalty":-1,"reasoning_effort":"low",` +
		`"verbosity":"high","prompt_cache_key":"k","seed":7,"stop":["a","b"],"parallel_tool_calls":false,"stream":true,"stream_options":{"include_usage":true},` +
		`"n":1,"service_tier":"priority","user":"me"}`
	c := s.Last().Chat()
	if !strings.HasSuffix(string(s.Last().Body), members) {
		t.Fatalf("settings arrived as %s", s.Last().Body)
	}
	if !strings.Contains(string(c.Tools[0].Function.Parameters), "kept") || !json.Valid(c.Tools[1].Function.Parameters) {
		t.Fatalf("tools arrived as %+v", c.Tools)
	}
	if got := s.Last().Header.Get("X-Title"); got != "reprise" {
		t.Fatalf("header arrived as %q", got)
	}
	if got := s.Last().Query.Get("api-version"); got != "1&2" {
		t.Fatalf("query arrived as %q", got)
	}
	generate(t, openai.New(key, openai.BaseURL(s.URL)), r)
	if !strings.Contains(string(s.Last().Body), `"max_tokens":7`) {
		t.Fatalf("the limit arrived as %s", s.Last().Body)
	}
}

// A34: what is forced reaches the server in its own words.
func TestToolChoice(t *testing.T) {
	tools := []providers.ToolSpec{{Name: "f"}, {Name: "g"}}
	for _, c := range []struct {
		choice, want string
		tools        []providers.ToolSpec
	}{
		{"", ``, tools},
		{"required", `"required"`, tools},
		{"none", `"none"`, tools},
		{"g", `{"type":"function","function":{"name":"g"}}`, tools},
		{"", ``, nil},
		{"none", ``, nil}, // servers refuse a choice among nothing
	} {
		s, p := start(t, data(stop))
		r := ask()
		r.Tools, r.ToolChoice = c.tools, c.choice
		generate(t, p, r)
		if got := string(s.Last().Chat().Choice); got != c.want {
			t.Errorf("%q of %d tools arrived as %s, want %s", c.choice, len(c.tools), got, c.want)
		}
	}
}

func TestRequestsThatGoNowhere(t *testing.T) {
	s, p := start(t)
	half := float32(0.5)
	tools := []providers.ToolSpec{{Name: "f"}}
	call := messages.Item{Type: messages.ItemCall, CallID: "c1", Name: "f"}
	for name, c := range map[string]struct {
		r    providers.Request
		kind providers.ErrorKind
		says string
	}{
		"temperature":           {providers.Request{Model: "gpt-5.5", Settings: providers.Settings{Temperature: &half}}, providers.Unsupported, "temperature"},
		"a bad schema":          {providers.Request{Model: "m", Tools: []providers.ToolSpec{{Name: "f", Parameters: []byte("{")}}}, providers.BadRequest, ""},
		"a choice of nothing":   {providers.Request{Model: "m", ToolChoice: "required"}, providers.BadRequest, "required"},
		"a choice of another":   {providers.Request{Model: "m", Tools: tools, ToolChoice: "g"}, providers.BadRequest, `"g"`},
		"call without a result": {ask(call), providers.BadRequest, "c1"},
		"result without a call": {ask(messages.Item{Type: messages.ItemCallOutput, CallID: "c9"}), providers.BadRequest, "c9"},
		"an unknown role":       {ask(messages.Text("critic", "x")), providers.BadRequest, "critic"},
		"an unknown part":       {ask(messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: messages.Content{{Type: "audio"}}}), providers.Unsupported, "audio"},
		"no type":               {ask(messages.Item{}), providers.BadRequest, "type"},
	} {
		t.Run(name, func(t *testing.T) {
			if e := fail(t, p, c.r); e.Kind != c.kind || e.Temporary || !strings.Contains(e.Message, c.says) {
				t.Fatalf("got %#v", e)
			}
		})
	}
	if s.Calls() != 0 {
		t.Fatalf("%d requests were sent", s.Calls())
	}
}
