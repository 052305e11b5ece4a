package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server rests as long as it is to, or until a call wants it, but never less than the least pause.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		wanted      bool
		pause, want time.Duration
	}{{false, mostPause, mostPause}, {true, mostPause, leastPause}, {false, leastPause, leastPause}} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{wanted: make(chan struct{}, 1)}
			if c.wanted {
				note(s.wanted)
				note(s.wanted)
			}
			began := time.Now()
			s.rest(t.Context(), c.pause)
			if got := time.Since(began); got != c.want {
				t.Errorf("a pause of %v, wanted: %t, lasts %v", c.pause, c.wanted, got)
			}
		})
	}
}

// Secrets of a configuration are in no text.
func TestHiding(t *testing.T) {
	t.Setenv("PASSED_KEY", "passed-1234")
	c := Config{
		URL: "https://there/mcp?a=query-1234&a=second-1234&b=sl%2Fash-1234", Headers: map[string]string{"X-Key": "plain-1234", "Authorization": "Bearer after-1234", "Cookie": "session=cookie-1234; b=other-1234"},
		Env:     []string{"MY_TOKEN=token-1234", "LONG_TOKEN=token-1234-long", "MODE=loud-1234", "PASSED_KEY", `QUOTE_KEY=a"quote-1234`},
		Command: []string{"run", "--api-key", "flag-1234", "--token=equal-1234", "free-1234"},
	}
	hidden := replacer(secrets(c, false))
	for text, want := range map[string]string{
		"query-1234": "[hidden]", "second-1234": "[hidden]", "sl/ash-1234": "[hidden]", "sl%2Fash-1234": "[hidden]",
		"plain-1234": "[hidden]", "after-1234": "[hidden]", "session": "session", "Bearer": "Bearer", "cookie-1234": "[hidden]", "other-1234": "[hidden]",
		"token-1234": "[hidden]", "token-1234-long": "[hidden]", "loud-1234": "loud-1234", "passed-1234": "[hidden]", `a\"quote-1234`: "[hidden]",
		"flag-1234": "[hidden]", "equal-1234": "[hidden]", "free-1234": "free-1234",
	} {
		if got := hidden.Replace(text); got != want {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
	if got := replacer(secrets(c, true)).Replace("plain-1234 after-1234 cookie-1234 token-1234 query-1234 sl/ash-1234"); got != "[hidden] [hidden] [hidden] [hidden] query-1234 sl/ash-1234" {
		t.Errorf("a schema has %q", got)
	}
}

// A message that is larger than any is to be ends in an error.
func TestBounded(t *testing.T) {
	for text, fits := range map[string]bool{"1234": true, "12345": false} {
		b := &bounded{body{strings.NewReader(text)}, 4}
		var read int
		var err error
		for err == nil {
			var n int
			n, err = b.Read(make([]byte, 3))
			read += n
		}
		if (err.Error() == "EOF") != fits || read > 4 {
			t.Errorf("%q: %d bytes and %v", text, read, err)
		}
	}
}

// A stream of what changes begins with an event, so that the SDK does not give up the session when the
// stream is cut again and again. The server is not asked to resume from that event.
func TestOwnEvent(t *testing.T) {
	var asked []string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-Id"))
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	defer site.Close()
	d := &roundTripper{http.DefaultTransport.(*http.Transport), nil, func() {}, func() {}}
	last := ""
	for range 2 {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL, nil)
		r.Header.Set("Last-Event-Id", last)
		resp, err := d.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		id, _ := strings.CutPrefix(string(text), "id: ")
		if id = strings.TrimSpace(id); id == "" || id == last {
			t.Errorf("a stream begins with %q, one before with %s", text, last)
		}
		last = id
	}
	if strings.Join(asked, "") != "" {
		t.Errorf("it was asked for what followed %q", asked)
	}
}

// A server that leaves the first request of new versions unanswered is spoken to in an older one next.
func TestOlderVersion(t *testing.T) {
	there := sdk.NewServer(&sdk.Implementation{Name: "there", Version: "1"}, nil)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return there }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			if ctx.Err() != nil {
				t.Error("it was asked again")
			}
			cancel() // its time is over
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	s := &Server{config: Config{URL: site.URL}, web: http.DefaultTransport.(*http.Transport)}
	if _, err := s.dial(ctx); err == nil {
		t.Fatal("it answered")
	}
	l, err := s.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.close()
}

// lister is a server that answers requests for its tools.
type lister func(ctx context.Context, cursor string) (*sdk.ListToolsResult, error)

// dialed connects to a server until the test ends.
func dialed(t *testing.T, s *Server, answer lister) *line {
	t.Helper()
	there := sdk.NewServer(&sdk.Implementation{Name: "there", Version: "1"}, nil)
	there.AddTool(&sdk.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	there.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if p, ok := r.GetParams().(*sdk.ListToolsParams); ok {
				return answer(ctx, p.Cursor)
			}
			return next(ctx, method, r)
		}
	})
	ours, theirs := sdk.NewInMemoryTransports()
	other, err := there.Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{ended: make(chan struct{})}
	if l.session, err = s.client().Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.session.Close(), other.Close() })
	return l
}

// A list of tools has an end.
func TestList(t *testing.T) {
	pages := 0
	for want, answer := range map[string]lister{
		"names one before it": func(context.Context, string) (*sdk.ListToolsResult, error) {
			return &sdk.ListToolsResult{NextCursor: "x", Tools: []*sdk.Tool{}}, nil
		},
		"more than 1000 tools or pages": func(context.Context, string) (*sdk.ListToolsResult, error) {
			pages++
			return &sdk.ListToolsResult{NextCursor: strconv.Itoa(pages), Tools: []*sdk.Tool{}}, nil
		},
		"more than 16777216 bytes": func(context.Context, string) (*sdk.ListToolsResult, error) {
			pages++
			large := &sdk.Tool{Name: "a", Description: strings.Repeat("a", 1<<20), InputSchema: json.RawMessage(`{"type":"object"}`)}
			return &sdk.ListToolsResult{NextCursor: strconv.Itoa(pages), Tools: []*sdk.Tool{large}}, nil
		},
	} {
		l := dialed(t, &Server{}, answer)
		if _, err := list(t.Context(), l.session); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := list(ended, l.session); !errors.Is(err, context.Canceled) {
			t.Errorf("without time left: %v", err)
		}
	}
}

// A list that changes all the time is not listed all the time.
func TestListsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{listed: make(chan struct{}, 1), changed: make(chan struct{})}
		var lists atomic.Int64
		l := dialed(t, s, func(context.Context, string) (*sdk.ListToolsResult, error) {
			n := lists.Add(1)
			note(s.listed)
			return &sdk.ListToolsResult{Tools: []*sdk.Tool{{Name: strconv.FormatInt(n, 10), InputSchema: json.RawMessage(`{"type":"object"}`)}}}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		note(s.listed)
		if err := s.follow(ctx, l); !errors.Is(err, context.DeadlineExceeded) || lists.Load() < 10 || lists.Load() > 40+listBurst {
			t.Errorf("in ten minutes it was listed %d times, and %v", lists.Load(), err)
		}
	})
}

// A server that lists its tools no more is given up, unless a call may keep it from that.
func TestHangs(t *testing.T) {
	for name, c := range map[string]struct {
		ended []error
		runs  bool
		kept  bool
	}{
		"idle":                        {nil, false, false},
		"a call runs":                 {nil, true, true},
		"one had no answer":           {[]error{context.DeadlineExceeded}, true, false},
		"one had an answer since":     {[]error{context.DeadlineExceeded, nil}, true, true},
		"one was cancelled since":     {[]error{context.DeadlineExceeded, context.Canceled}, true, false},
		"one had an answer before it": {[]error{nil, context.DeadlineExceeded}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{shows: make(map[string]func(string))}
				l := dialed(t, s, func(ctx context.Context, _ string) (*sdk.ListToolsResult, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				for _, err := range c.ended {
					s.end(s.begin(nil), err)
				}
				if c.runs {
					s.begin(nil)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				_ = s.follow(ctx, l)
				if kept := ctx.Err() != nil; kept != c.kept {
					t.Errorf("it is kept: %t", kept)
				}
			})
		})
	}
}

type body struct{ *strings.Reader }

func (body) Close() error { return nil }
