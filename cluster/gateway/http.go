package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Reason is why a node is not ready.
type Reason struct {
	// Code is a word to branch on: starting, nats, membership, store, draining or ending.
	Code string `json:"code"`
	// Text is the reason in words for a person.
	Text string `json:"text"`
}

// Readiness is what /readyz answers.
type Readiness struct {
	Ready bool `json:"ready"`
	// Reasons are why not. Empty, not null, if it is.
	Reasons []Reason `json:"reasons"`
}

// HTTPConfig configures a node's HTTP address.
type HTTPConfig struct {
	// Address is host:port; port 0 takes any free one.
	Address string
	// Hosts are names by which it may be called, beside those of the loopback. Empty: on
	// the loopback no others, elsewhere any.
	Hosts []string
	// Unready returns the reasons why the node is not ready; none: it is. Called from many
	// goroutines; it must not block.
	Unready func() []Reason
	Metrics http.Handler
	Logger  *slog.Logger
}

// HTTP is a node's HTTP address. It reports whether the process lives (/healthz),
// whether the node is ready (/readyz: 200, or 503 with the reasons) and what it
// counts (/metrics), to everyone who asks, and takes nothing. A Host header that
// names another host is refused with status 421, but not on the first two; see
// HTTPConfig.Hosts.
type HTTP struct {
	server   *http.Server
	listener net.Listener
	done     chan struct{}
}

// ListenHTTP opens the address and serves it until Close.
func ListenHTTP(cfg HTTPConfig) (*HTTP, error) {
	listener, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, struct {
			OK bool `json:"ok"`
		}{true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		reasons := cfg.Unready()
		status := http.StatusOK
		if len(reasons) > 0 {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, Readiness{len(reasons) == 0, append([]Reason{}, reasons...)})
	})
	mux.Handle("GET /metrics", cfg.Metrics)
	h := &HTTP{listener: listener, done: make(chan struct{}), server: &http.Server{
		Handler:     guarded(hostsOf(listener.Addr(), cfg.Hosts).guard(mux)),
		ReadTimeout: 10 * time.Second, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, // requests are small
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}}
	go func() {
		defer close(h.done)
		if err := h.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the HTTP address is not served any more", "address", h.Address(), "error", err)
		}
	}()
	return h, nil
}

// guarded adds what every answer says to a browser.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may have gone
}

// Address is where it listens: host:port.
func (h *HTTP) Address() string { return h.listener.Addr().String() }

// Close stops it once what it is answering is answered, within a second.
func (h *HTTP) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.server.Shutdown(ctx) != nil {
		_ = h.server.Close()
	}
	<-h.done
}
