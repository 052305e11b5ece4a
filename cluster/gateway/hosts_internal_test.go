package gateway

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHostsElsewhere holds that an address that other machines reach takes any host until
// its names are given.
func TestHostsElsewhere(t *testing.T) {
	everywhere := &net.TCPAddr{IP: net.IPv4zero}
	for _, c := range []struct {
		listens net.Addr
		named   []string
		host    string
		status  int
	}{
		{everywhere, nil, "evil.example", http.StatusOK},
		{everywhere, []string{"node.example"}, "evil.example", http.StatusMisdirectedRequest},
		{everywhere, []string{"node.example"}, "node.example:8080", http.StatusOK},
		{everywhere, []string{"node.example"}, "localhost:8080", http.StatusOK},
		{&net.TCPAddr{IP: net.IPv6loopback}, nil, "evil.example", http.StatusMisdirectedRequest},
	} {
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		hostsOf(c.listens, c.named).guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%v %v, host %s: %d, want %d", c.listens, c.named, c.host, w.Code, c.status)
		}
	}
}
