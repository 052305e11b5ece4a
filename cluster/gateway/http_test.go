package gateway_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cluster/gateway"
)

// TestForeignHost holds that a page of another name cannot use a node of this machine
// through the browser, and that probes may call it by any name.
func TestForeignHost(t *testing.T) {
	h, err := gateway.ListenHTTP(gateway.HTTPConfig{
		Address: "127.0.0.1:0", Hosts: []string{"Agents.Example.com"}, Logger: slog.New(slog.DiscardHandler),
		Unready: func() []gateway.Reason { return nil }, Metrics: http.NotFoundHandler(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	_, port, _ := strings.Cut(h.Address(), ":")
	for _, c := range []struct {
		host, path string
		status     int
	}{
		{"evil.example", "/", http.StatusMisdirectedRequest},
		{"evil.example:" + port, "/readyz/x", http.StatusMisdirectedRequest},
		{"evil.example", "//readyz", http.StatusMisdirectedRequest},
		{"localhost.evil.example", "/", http.StatusMisdirectedRequest},
		{"127.0.0.1.evil.example", "/", http.StatusMisdirectedRequest},
		{"192.0.2.1", "/", http.StatusMisdirectedRequest},
		{"evil.example", "/healthz", http.StatusOK},
		{"evil.example", "/readyz", http.StatusOK},
		{"evil.example", "/metrics", http.StatusMisdirectedRequest},
		{"localhost:" + port, "/metrics", http.StatusNotFound}, // as the test's own handler answers
		{"localhost:" + port, "/", http.StatusNotFound},
		{"127.0.0.1:" + port, "/", http.StatusNotFound},
		{"[::1]:" + port, "/", http.StatusNotFound},
		{"agents.example.com.", "/", http.StatusNotFound},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Address()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if got.StatusCode != c.status || c.status == http.StatusMisdirectedRequest && !strings.Contains(string(body), "--http-host") {
			t.Errorf("host %s, path %s: %s %s; want %d", c.host, c.path, got.Status, body, c.status)
		}
	}
}
