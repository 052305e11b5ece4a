// Package providertest is a model server for tests and benchmarks: real HTTP in
// the Chat Completions wire format, played from a script, with every way to
// fail that a provider must survive. It also holds the suite that every
// Provider passes.
//
// # Guarantees
//
//   - A history that strict servers refuse is refused here, with status 400: a
//     call without a result, a result without a call, anything in between.
//   - Nothing is timed unless the script asks for it; a [scripted.Gate] or
//     [Server.Hold] stops a call at a known place for as long as a test needs.
//   - Only loopback addresses are listened on, unless Config says otherwise.
//
// # Imitations
//
// With Config.Imitate the server refuses what a server that people use
// refuses, with its status and body, and words its answers as that one does.
// What it checks and how it looks is data, in the files below servers,
// templates and responses, which name their sources; what is marked there as
// unconfirmed is a guess. Where the server has the Responses API or Anthropic's Messages API,
// the imitation has it too, at the same URL. It remembers the signatures, reasoning details,
// reasoning and encrypted content that it gave, and takes no others.
// [Server.Refusals] has what it refused.
package providertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/providers/scripted"
)

// Config shapes a server. The zero value is strict, records everything and
// listens on a free port of 127.0.0.1.
type Config struct {
	// Addr is where to listen. Empty: 127.0.0.1:0.
	Addr string
	// Key is the only bearer token let in. Others get 401 and, as careless
	// servers do, read their own token back. Empty: all are let in.
	Key string
	// Lenient lets any history through and reads no body.
	Lenient bool
	// Forget records no requests, only their number.
	Forget bool
	// Imitate is a server whose rules and forms take the place of those of a
	// plain strict one. Lenient has no effect then.
	Imitate Imitation
	// Context is how many bytes a request to an imitated server may have before
	// its context is exceeded. Zero: 4 MiB.
	Context int
}

// Script says how a request is answered. It may be called from many goroutines
// at once.
type Script func(*Request) Answer

// Play returns a script that gives one answer per request, in order, and status 500 once
// they are used up.
func Play(answers ...Answer) Script {
	var next atomic.Int64
	return func(*Request) Answer {
		if i := int(next.Add(1)); i <= len(answers) {
			return answers[i-1]
		}
		return Answer{Status: http.StatusInternalServerError, Message: "the script has ended"}
	}
}

// Server answers Chat Completions requests from a script. Safe for concurrent use.
type Server struct {
	// URL is the base URL to give to a client; it ends with /v1, or as that of
	// an imitated server does.
	URL string

	config Config
	model  *imitation // nil: none
	script Script
	http   *http.Server
	calls  atomic.Int64

	mu       sync.Mutex
	requests []*Request
	held     *scripted.Gate
	closed   context.CancelFunc
}

// Start starts a server. Its errors are those of listening, and of an
// imitation that does not exist.
func Start(script Script, c Config) (*Server, error) {
	var model *imitation
	base := "/v1"
	if c.Imitate.Server != "" {
		var err error
		if model, err = newImitation(c); err != nil {
			return nil, err
		}
		base = model.Bases[0]
	}
	l, err := net.Listen("tcp", cmp.Or(c.Addr, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("listen for model calls: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{URL: "http://" + l.Addr().String() + base, config: c, model: model, script: script, closed: cancel}
	s.http = &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = s.http.Serve(l) }() // ends with Close
	return s, nil
}

// Close drops all connections, also those of held calls, and frees the port.
func (s *Server) Close() error {
	s.closed()
	return s.http.Close()
}

// Calls is the number of requests so far, refused ones included.
func (s *Server) Calls() int { return int(s.calls.Load()) }

// Requests are the requests so far, in the order they came.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// Last is the newest request, nil if there was none.
func (s *Server) Last() *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return nil
	}
	return s.requests[len(s.requests)-1]
}

// Hold stops every call that comes from now on, before its answer's first
// byte, until Release. The gate that it returns shows when one has come.
func (s *Server) Hold() *scripted.Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = scripted.NewGate()
	}
	return s.held
}

// Release lets all held calls continue.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		s.held.Release()
		s.held = nil
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &Request{Number: int(s.calls.Add(1)), Header: r.Header, Query: r.URL.Query(), Gone: r.Context().Done()}
	var err error
	if req.Body, err = readBody(r); err != nil {
		return // the client is gone
	}
	held := s.record(req)
	if s.model != nil {
		s.imitate(w, r, req, held)
		return
	}
	if refusal := s.refuse(r, req); refusal != nil {
		_ = refusal.write(r.Context(), w, req.Number)
		return
	}
	if held.Wait(r.Context()) != nil {
		return
	}
	send(w, r, req, s.script(req))
}

func send(w http.ResponseWriter, r *http.Request, req *Request, a Answer) {
	if a.write(r.Context(), w, req.Number) != nil {
		panic(http.ErrAbortHandler) // cuts the connection
	}
}

func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(r.Body)
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, err
	}
	_, err := r.Body.Read(make([]byte, 1)) // its end lets the server notice that a client hangs up
	if err == io.EOF {
		err = nil
	}
	return body, err
}

// record keeps req and returns the gate it must wait at.
func (s *Server) record(req *Request) *scripted.Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.config.Forget {
		s.requests = append(s.requests, req)
	}
	return s.held
}

// refuse is the answer to a request that must not reach the script.
func (s *Server) refuse(r *http.Request, req *Request) *Answer {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		return &Answer{Status: http.StatusNotFound, Message: "no such endpoint: " + r.Method + " " + r.URL.Path}
	}
	if token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); s.config.Key != "" && token != s.config.Key {
		return &Answer{Status: http.StatusUnauthorized, Message: "incorrect key: " + token}
	}
	if s.config.Lenient {
		return nil
	}
	if err := Strict(req.Body); err != nil {
		return &Answer{Status: http.StatusBadRequest, Message: err.Error()}
	}
	return nil
}

// errorBody is how the server words an error.
func (a Answer) errorBody(status int) []byte {
	if a.as != nil {
		return a.as.failure(a.Message, status)
	}
	return errorBody(a.Message, status)
}

func errorBody(message string, status int) []byte {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{ // strings always marshal
		"message": message, "type": strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"), "code": strconv.Itoa(status),
	}})
	return b
}
