package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	hidden := hiding(Config{
		URL: "https://there/mcp?a=query-1234", Headers: map[string]string{"X-Key": "plain-1234", "Authorization": "Bearer after-1234"},
		Env: []string{"MY_TOKEN=token-1234", "MODE=loud-1234"},
	})
	for text, want := range map[string]string{
		"query-1234": "[hidden]", "plain-1234": "[hidden]", "after-1234": "[hidden]", "token-1234": "[hidden]", "loud-1234": "loud-1234",
	} {
		if got := hidden.Replace(text); got != want {
			t.Errorf("%s is shown as %s", text, got)
		}
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
	d := &door{http.DefaultTransport.(*http.Transport), nil, func() {}, func() {}}
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

type body struct{ *strings.Reader }

func (body) Close() error { return nil }
