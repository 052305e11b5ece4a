package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/tool"
)

const secret = "k-0123456789"

// A37: a program that dies under a call fails that call, with its last words, and is started again
// by the next one.
func TestDeath(t *testing.T) {
	var log buffer
	c := program("server", "API_KEY="+secret)
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	all := tools(t, ready(t, c))
	const words = "MCP server there did not answer: its program has ended: exit status 3: out of cheese, and the key is [hidden]"
	_, err := all["die"].Call(t.Context(), []byte(`{}`))
	if !errors.As(err, new(*tool.UnknownError)) || err.Error() != words+": it is not known whether the call had its effect" {
		t.Errorf("a call with OnUnknown Pause fails with %v", err)
	}
	if got := call(t.Context(), all["add"], `{"a":1,"b":1}`); got != "2" {
		t.Errorf("the next call gives %q", got)
	}
	if _, err := all["die_reading"].Call(t.Context(), []byte(`{}`)); errors.As(err, new(*tool.UnknownError)) || err == nil || err.Error() != words {
		t.Errorf("a call with OnUnknown ReadOnly fails with %v", err)
	}
	for name, want := range map[string]string{"odd_line": "it wrote what is no message: invalid request", "large": "exceeded the configured maximum"} {
		if _, err := all[name].Call(t.Context(), []byte(`{}`)); !errors.As(err, new(*tool.UnknownError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s fails with %v, want %s", name, err, want)
		}
	}
	if got := call(t.Context(), all["wipe"], `{}`); got != "error: no disk, and the key is [hidden]" {
		t.Error(got)
	}
	if spec := all["secretive"].Spec(); spec.Description != "the key is [hidden]" || !strings.Contains(string(spec.Parameters), `"title":"[hidden]"`) {
		t.Errorf("a tool is described by %s, %s", spec.Description, spec.Parameters)
	}
	if all["verbose"] != nil {
		t.Error("a tool has a description of 64 KiB")
	}
	if got := call(t.Context(), all["leak"], `{}`); got != "the key is [hidden]" {
		t.Error(got)
	}
	if got := call(t.Context(), all["tattle"], `{}`); got != "error: MCP server there refused the call: not with [hidden]" {
		t.Error(got)
	}
	if text := log.String(); strings.Contains(text, secret) || !strings.Contains(text, "out of cheese") {
		t.Errorf("the log is\n%s", text)
	}
}

// A server that cannot be started is one whose calls fail and which has no tools.
func TestBroken(t *testing.T) {
	for want, c := range map[string]mcp.Config{
		"its program has ended: exit status 9: no license found": program("broken"),
		"no/such/program cannot be run":                          {Name: "there", Command: []string{"./no/such/program"}},
		"connection refused":                                     {Name: "there", URL: refusing(t)},
	} {
		s := connect(t, c)
		if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it is ready with %v, want %s", err, want)
		}
		if all := tools(t, s); len(all) != 0 {
			t.Errorf("it has the tools %v", all)
		}
	}
}

// refusing is an address where no one listens.
func refusing(t *testing.T) string {
	t.Helper()
	site := httptest.NewServer(nil)
	defer site.Close()
	return site.URL
}

// A server that is there later has its tools then.
func TestThereLater(t *testing.T) {
	var mu sync.Mutex
	refused := 0
	c := web(t, newThere(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			refused++
			early := refused <= 2
			mu.Unlock()
			if early {
				http.Error(w, "not yet", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	s := connect(t, c)
	src := source(t, s, mcp.Selection{Only: []string{"add"}})
	now, changed := src.Tools()
	if err := s.Ready(t.Context()); err == nil || len(now) != 0 {
		t.Fatalf("it is ready with %v and %d tools", err, len(now))
	}
	<-changed
	if now, _ = src.Tools(); len(now) != 1 || call(t.Context(), now[0], `{"a":1,"b":1}`) != "2" {
		t.Errorf("the tools are %v", now)
	}
}

// A call that the server over HTTP has hung up on is of unknown outcome; one that it has refused, or
// that did not reach it, is not; neither ends another call. Headers are sent to it, and shown to no one
// else.
func TestRefusedOverHTTP(t *testing.T) {
	var mu sync.Mutex
	answer := http.HandlerFunc(nil)
	h := newThere()
	h.release = make(chan struct{})
	c := web(t, h, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			f := answer
			mu.Unlock()
			switch {
			case r.Header.Get("Authorization") != "Bearer "+secret:
				http.Error(w, "who are you", http.StatusUnauthorized)
			case f != nil && calls(r):
				f(w, r)
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	if err := connect(t, c).Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("without a key it is ready with %v", err)
	}
	c.URL += "/?key=" + secret
	c.Headers = map[string]string{"Authorization": "Bearer " + secret}
	all := tools(t, ready(t, c))
	other := make(chan string)
	go func() { other <- call(t.Context(), all["slow"], `{}`) }()
	<-h.started
	const panics = `"method":"notifications/elicitation/complete"}` // would in the SDK
	for _, f := range []struct {
		unknown bool
		want    string
		answer  http.HandlerFunc
	}{
		{false, "refused the call: HTTP 400 Bad Request", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusBadRequest)
			for range 64 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
			t.Error("64 MiB of an error were read")
		}},
		{false, "refused the call: HTTP 403 Forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
		{true, "did not answer: ", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "of "+r.URL.String(), http.StatusBadGateway)
		}},
		{false, "it redirects (HTTP 307)", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}},
		{true, "did not answer: ", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{true, "HTTP 500 Internal Server Error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		{true, `the answer is of the type "text/html"`, answers("text/html", `{"jsonrpc":"2.0","id":%s,"result":{}}`)},
		{true, "the answer cannot be read: ", answers("application/json", `{"jsonrpc":"2.0","id":%s,"result":`)},
		{true, "more than 16777216 bytes", answers("application/json", `{"jsonrpc":"2.0","id":%s,"result":{"a":"`+strings.Repeat("a", 16<<20)+`"}}`)},
		{true, "what it wrote cannot be read: ", answers("application/json", `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{"a":null}}}`)},
		{false, "the tool asks for input", answers("application/json", `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{}}}`)},
		{false, "refused the call: no", answers("text/event-stream", `data: {"jsonrpc":"2.0",`+panics+"\n\n"+`data: {"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no"}}`+"\n\n")},
	} {
		mu.Lock()
		answer = f.answer
		mu.Unlock()
		_, err := all["env"].Call(t.Context(), []byte(`{}`))
		if err == nil || !strings.Contains(err.Error(), f.want) || errors.As(err, new(*tool.UnknownError)) != f.unknown || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v, want %s", err, f.want)
		}
		mu.Lock()
		answer = nil
		mu.Unlock()
	}
	if got := call(t.Context(), all["add"], `{"a":1,"b":1}`); got != "2" {
		t.Errorf("afterwards a call gives %q", got)
	}
	close(h.release)
	if got := <-other; got != "released" {
		t.Errorf("the call that ran meanwhile gives %q", got)
	}
}

// answers answers a call with a body, into which its id is put.
func answers(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", kind)
		fmt.Fprintf(w, body, m.ID)
	}
}

// calls reports whether a request is a call of a tool.
func calls(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(`"tools/call"`))
}

// A server that was restarted knows no session of before: a call is sent again over a new one.
func TestSessionIsGone(t *testing.T) {
	for name, body := range map[string]string{"text": "no such session", "JSON-RPC": `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var forgotten, newest string
			c := web(t, newThere(), func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					newest = r.Header.Get("Mcp-Session-Id")
					gone := newest != "" && newest == forgotten
					mu.Unlock()
					if gone {
						http.Error(w, body, http.StatusNotFound)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			all := tools(t, ready(t, c))
			mu.Lock()
			forgotten = newest
			mu.Unlock()
			if got := call(t.Context(), all["add"], `{"a":1,"b":1}`); got != "2" {
				t.Errorf("a call to the restarted server gives %q", got)
			}
		})
	}
}

// A call under which its connection is cut is of unknown outcome and is not sent again, whatever the
// server answers to the request for the rest of its stream.
func TestCutUnderCall(t *testing.T) {
	const said = `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`
	for body, status := range map[string]int{"": http.StatusNotFound, "no": http.StatusBadRequest, said: http.StatusBadRequest, said + " ": http.StatusNotFound} {
		h := newThere()
		h.events, h.release = sdk.NewMemoryEventStore(nil), make(chan struct{})
		var cut atomic.Bool
		var sent atomic.Int32
		all := tools(t, ready(t, web(t, h, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if cut.Load() && r.Method == http.MethodGet || calls(r) && sent.Add(1) > 1 {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					_, _ = io.WriteString(w, body)
					return
				}
				next.ServeHTTP(w, r)
			})
		})))
		go func() {
			<-h.started
			cut.Store(true)
			h.site.CloseClientConnections()
		}()
		_, err := all["slow"].Call(t.Context(), []byte(`{}`))
		if !errors.As(err, new(*tool.UnknownError)) || sent.Load() != 1 {
			t.Errorf("HTTP %d %s: it was sent %d times and failed with %v", status, body, sent.Load(), err)
		}
		close(h.release)
	}
}

// A server may refuse the notification that a call is cancelled: other calls under way do not notice.
func TestRefusedCancel(t *testing.T) {
	h := newThere()
	h.release = make(chan struct{})
	refused := make(chan struct{}, 10)
	all := tools(t, ready(t, web(t, h, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"notifications/cancelled"`)) {
				http.Error(w, "no", http.StatusForbidden)
				refused <- struct{}{}
				return
			}
			next.ServeHTTP(w, r)
		})
	})))
	other := make(chan string, 1)
	go func() { other <- call(t.Context(), all["slow"], `{}`) }()
	<-h.started
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-h.started
		cancel()
	}()
	if _, err := all["slow"].Call(ctx, []byte(`{}`)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-refused
	if got := call(t.Context(), all["add"], `{"a":1,"b":2}`); got != "3" {
		t.Error(got)
	}
	close(h.release)
	if got := <-other; got != "released" {
		t.Error(got)
	}
}

// A program inherits what commands do and what its configuration names, and nothing else of the node.
func TestEnvironment(t *testing.T) {
	t.Setenv("NODE_SECRET", secret)
	t.Setenv("PASSED_ON", "1")
	all := tools(t, ready(t, program("server", "OWN=1", "PASSED_ON")))
	got := " " + call(t.Context(), all["env"], `{}`) + " "
	for name, want := range map[string]bool{"PATH": true, "OWN": true, "PASSED_ON": true, "NODE_SECRET": false} {
		if strings.Contains(got, " "+name+" ") != want {
			t.Errorf("the program has %s: %t, in %s", name, !want, got)
		}
	}
}

// Programs end with their server, also those that do not want to, and later calls fail with the reason.
func TestClose(t *testing.T) {
	l := newLife(t)
	s := ready(t, program("deaf", l.env()))
	ended := l.begun()
	all := tools(t, s)
	s.Close()
	ended()
	if got := call(t.Context(), all["add"], `{"a":1,"b":1}`); got != "error: MCP server there: it was stopped with its node" {
		t.Error(got)
	}
}

// What a program has started ends with it, and keeps no call waiting though it holds the output open.
func TestFamily(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // has no process groups
	}
	l := newLife(t)
	s := ready(t, program("family", l.env()))
	ended := l.begun()
	all := tools(t, s)
	if got := call(t.Context(), all["die_reading"], `{}`); !strings.Contains(got, "its program has ended: exit status 3") {
		t.Error(got)
	}
	ended()
	if got := call(t.Context(), all["add"], `{"a":1,"b":1}`); got != "2" {
		t.Error(got)
	}
	ended = l.begun()
	s.Close()
	ended()
}

// A server with more tools than any agent can have is not used.
func TestTooManyTools(t *testing.T) {
	many := sdk.NewServer(&sdk.Implementation{Name: "there", Version: "1"}, nil)
	for n := range 1001 {
		many.AddTool(&sdk.Tool{Name: fmt.Sprint("t", n), InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	}
	site := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return many }, nil))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	if err := connect(t, mcp.Config{Name: "there", URL: site.URL}).Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("it is ready with %v", err)
	}
}

// Programs end with a node that is killed; on Linux also those that do not look at their input.
func TestNodeIsKilled(t *testing.T) {
	role := "deaf"
	if runtime.GOOS != "linux" {
		role = "server"
	}
	l := newLife(t)
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), roleVariable+"=node", l.env(), "SERVER_ROLE="+role)
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	ended := l.begun()
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait()
	ended()
}

// node is a process that has a server until it is killed.
func node() {
	s, err := mcp.New(program(os.Getenv("SERVER_ROLE"), lifeVariable))
	if err != nil {
		os.Exit(8)
	}
	_ = s.Ready(context.Background())
	select {}
}

// A server that does not answer at all delays no one for longer than they wait.
func TestSilent(t *testing.T) {
	hold := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(hold); site.CloseClientConnections(); site.Close() })
	s := connect(t, mcp.Config{Name: "there", URL: site.URL})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Ready(ctx); err == nil || !strings.Contains(err.Error(), "it has not answered yet") {
		t.Errorf("it is ready with %v", err)
	}
}

// buffer is a log that may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
