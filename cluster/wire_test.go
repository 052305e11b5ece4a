package cluster_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
)

// wire carries a node's connections until it is cut.
type wire struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

// Dial makes it a nats.CustomDialer.
func (wi *wire) Dial(network, address string) (net.Conn, error) {
	wi.mu.Lock()
	defer wi.mu.Unlock()
	if wi.down {
		return nil, errors.New("the wire is cut")
	}
	c, err := net.Dial(network, address)
	if err == nil {
		wi.conns = append(wi.conns, c)
	}
	return c, err
}

// cut breaks all connections as the kill of a process does.
func (wi *wire) cut() {
	wi.mu.Lock()
	defer wi.mu.Unlock()
	wi.down = true
	for _, c := range wi.conns {
		_ = c.Close()
	}
	wi.conns = nil
}

func (wi *wire) heal() {
	wi.mu.Lock()
	defer wi.mu.Unlock()
	wi.down = false
}

// logged keeps what was logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends.
func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if os.Getenv("REPRISE_TEST_LOG") != "" {
		_, _ = os.Stderr.Write(b)
	}
	return l.buf.Write(b)
}

// String is everything so far.
func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
