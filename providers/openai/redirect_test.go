package openai_test

import (
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
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, options := range map[string][]openai.Option{
			"usual client": nil,
			"own client":   {openai.HTTPClient(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }})},
		} {
			t.Run(http.StatusText(status)+", "+name, func(t *testing.T) {
				e := fail(t, redirecting(t, status, "http://user:hush-hush@"+host+"/v1?token=hush-hush", options...), ask())
				if e.Kind != providers.Redirected || e.Status != status || e.Temporary {
					t.Fatalf("got %#v; want a permanent error of kind redirected", e)
				}
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

// TestRedirectElsewhereHere holds that a path of the same server is named whole, and that
// a redirect to nowhere is an answer that cannot be read.
func TestRedirectElsewhereHere(t *testing.T) {
	if e := fail(t, redirecting(t, http.StatusPermanentRedirect, "/v2/chat"), ask()); e.Kind != providers.Redirected || !strings.Contains(e.Message, "/v2/chat,") {
		t.Errorf("got %#v", e)
	}
	if e := fail(t, redirecting(t, http.StatusFound, ""), ask()); e.Kind != providers.BadAnswer {
		t.Errorf("without a Location: got %#v", e)
	}
}

func redirecting(t *testing.T, status int, to string, options ...openai.Option) *openai.Provider {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return openai.New(key, append([]openai.Option{openai.BaseURL(s.URL)}, options...)...)
}
