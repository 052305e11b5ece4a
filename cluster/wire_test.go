package cluster_test

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// wire carries a node's connections until it is cut.
type wire struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
	// frozen is closed when bytes pass again; nil: they do.
	frozen chan struct{}
	// writing is how many writes wait for that.
	writing atomic.Int32
}

// passing is a connection whose bytes pass while the wire is not frozen.
type passing struct {
	net.Conn
	wire *wire
}

func (c passing) wait() {
	c.wire.mu.Lock()
	frozen := c.wire.frozen
	c.wire.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// Read returns what has come only when the wire passes it on.
func (c passing) Read(b []byte) (int, error) {
	c.wait()
	n, err := c.Conn.Read(b)
	c.wait() // it came while the wire froze
	return n, err
}

// Write waits until the wire takes it.
func (c passing) Write(b []byte) (int, error) {
	c.wire.writing.Add(1)
	c.wait()
	c.wire.writing.Add(-1)
	return c.Conn.Write(b)
}

// freeze holds all bytes back, as the stop of a process does, until thaw.
func (wi *wire) freeze() {
	wi.mu.Lock()
	defer wi.mu.Unlock()
	wi.frozen = make(chan struct{})
}

func (wi *wire) thaw() {
	wi.mu.Lock()
	defer wi.mu.Unlock()
	if wi.frozen != nil {
		close(wi.frozen)
		wi.frozen = nil
	}
}

// Dial makes it a nats.CustomDialer.
func (wi *wire) Dial(network, address string) (net.Conn, error) {
	wi.mu.Lock()
	defer wi.mu.Unlock()
	if wi.down {
		return nil, errors.New("the wire is cut")
	}
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	wi.conns = append(wi.conns, c)
	return passing{c, wi}, nil
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
