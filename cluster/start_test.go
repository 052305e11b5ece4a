package cluster_test

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
)

// brittle is a wire that breaks once, when certain words have been written one after the
// other, and then refuses to connect for some times.
type brittle struct {
	wire
	mu       sync.Mutex
	words    []string // those that are to come; none: it has broken
	refusals int
}

// Dial makes it a nats.CustomDialer.
func (b *brittle) Dial(network, address string) (net.Conn, error) {
	b.mu.Lock()
	if len(b.words) == 0 {
		if b.refusals--; b.refusals == 0 {
			b.heal()
		}
	}
	b.mu.Unlock()
	c, err := b.wire.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return heard{c, b}, nil
}

// broken reports whether it has broken.
func (b *brittle) broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.words) == 0
}

// heard is a connection whose words are looked for.
type heard struct {
	net.Conn
	way *brittle
}

// Write breaks the wire when it is time.
func (c heard) Write(p []byte) (int, error) {
	b := c.way
	b.mu.Lock()
	for rest, found := p, true; found && len(b.words) > 0; {
		if _, rest, found = bytes.Cut(rest, []byte(b.words[0])); found {
			if b.words = b.words[1:]; len(b.words) == 0 {
				b.cut()
			}
		}
	}
	b.mu.Unlock()
	return c.Conn.Write(p)
}

// A node starts though all its connections break while it does, wherever that is, and
// are back half a second later.
func TestStartOverABreak(t *testing.T) { // A30
	listens := "SUB " + messages.Subjects{}.NodeOrders("") + " "
	for where, words := range map[string][]string{
		"the log":       {"$JS.API.STREAM."},
		"the members":   {"KV_reprise_members"},
		"the leases":    {"KV_reprise_leases"},
		"the endpoints": {"SUB agents.prompt."},
		"the operators": {listens},
		"the last look": {listens, "STREAM.INFO.REPRISE_DEF"},
	} {
		t.Run(where, func(t *testing.T) {
			w, way := newWorld(t), &brittle{words: words, refusals: 6}
			n := w.node(func(c *cluster.Config) { c.NATSOptions = append(c.NATSOptions, nats.SetCustomDialer(way)) })
			if !way.broken() {
				t.Error("it does not break there")
			}
			if got := w.say(n.Client(), "assistant/a", "u1", "hello"); got.text != "you said hello" {
				t.Errorf("%+v", got)
			}
		})
	}
}
