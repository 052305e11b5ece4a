package gateway

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// forAnyHost are the paths that answer whatever the Host header is: probes name a node as
// they reach it, and what they read names no agent.
var forAnyHost = []string{"/healthz", "/readyz"}

// hosts are the names by which browsers may call an HTTP address. A page whose own name was
// made to lead to this machine (DNS rebinding) calls it by that name.
type hosts struct {
	named []string
	// checked is false for an address that other machines reach and that was given no
	// names: it cannot know them.
	checked bool
}

func hostsOf(listens net.Addr, named []string) hosts {
	h := hosts{checked: len(named) > 0}
	for _, name := range named {
		h.named = append(h.named, hostname(name))
	}
	if tcp, ok := listens.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		h.checked = true
	}
	return h
}

// guard refuses what is asked of another host than these.
func (h hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.checked && !h.has(hostname(r.Host)) && !slices.Contains(forAnyHost, r.URL.Path) {
			http.Error(w, fmt.Sprintf("the request is for the host %q, which is not this one: call it localhost, or start the node with --http-host NAME for each name that it has", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h hosts) has(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(h.named, name)
}

// hostname returns a Host header's name as names are compared: without port, brackets, the
// dot at its end and the case of letters.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
