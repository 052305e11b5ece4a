package openai_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
)

// TestRedirect holds that neither the key nor the history goes to where a server
// redirects, and that what is found there is never the model's answer.
func TestRedirect(t *testing.T) {
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stolen.Add(1)
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"not the model"},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(thief.Close)
	host := strings.TrimPrefix(thief.URL, "http://")
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for name, options := range map[string][]openai.Option{
			"usual client": nil,
			"own client":   {openai.HTTPClient(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }})},
		} {
			t.Run(http.StatusText(status)+", "+name, func(t *testing.T) {
				e := redirect(t, status, "http://user:hush-hush@"+host+"/hush/v1;hush?token=hush-hush", options...)
				if !strings.Contains(e.Message, host) || !strings.Contains(e.Message, "base_url") || strings.Contains(e.Error(), "hush") {
					t.Fatalf("got %q; want the host, what to do, and no login", e)
				}
			})
		}
	}
	if n := stolen.Load(); n > 0 {
		t.Fatalf("the other server got %d requests", n)
	}
}

// TestRedirectTarget holds that a path of the same server is named, and that a redirect to
// what is no address is one too, and shows nothing of it.
func TestRedirectTarget(t *testing.T) {
	if e := redirect(t, http.StatusPermanentRedirect, "/v2/chat?hush"); !strings.Contains(e.Message, "/v2/chat:") || strings.Contains(e.Error(), "hush") {
		t.Errorf("got %v", e)
	}
	for _, to := range []string{"", "http://u:hush@[::bad/", "http://u:hush@h/%zz?hush", "mailto:hush", "file:///hush"} {
		if e := redirect(t, http.StatusFound, to); !strings.Contains(e.Message, "no address") || strings.Contains(fmt.Sprintf("%v %#v", e, e), "hush") {
			t.Errorf("%s: got %v", to, e)
		}
	}
	if e := redirect(t, http.StatusFound, "/"+strings.Repeat("x", 100_000)); len(e.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(e.Error()))
	}
	if e := redirect(t, http.StatusFound, "/"+strings.Repeat("x", 165)+key); strings.Contains(e.Error(), key[:8]) {
		t.Errorf("a part of the key is in %v", e)
	}
}

// redirect returns the error of a call that a server redirects; without a target, it does not
// end its answer.
func redirect(t *testing.T, status int, to string, options ...openai.Option) *providers.Error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(status)
		if _ = http.NewResponseController(w).Flush(); to == "" {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	e := fail(t, openai.New(key, append([]openai.Option{openai.BaseURL(s.URL)}, options...)...), ask())
	if e.Kind != providers.Redirected || e.Status != status || e.Temporary {
		t.Fatalf("got %#v; want a permanent error of kind redirected", e)
	}
	return e
}

// A key in the query is in no error, although errors of the network show the address.
func TestKeyInQuery(t *testing.T) {
	s, _ := start(t)
	_ = s.Close()
	const secret = "very/secret+value"
	e := fail(t, openai.New("", openai.BaseURL(s.URL), openai.Query("subscription-key", secret)), ask())
	if e.Kind != providers.Network || strings.Contains(e.Error(), "secret") || e.Err != nil && strings.Contains(e.Err.Error(), "secret") {
		t.Fatalf("got %v", e)
	}
}
