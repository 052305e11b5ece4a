package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// connect connects as any NATS client would.
func connect(t *testing.T, w *world) *nats.Conn {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, ".reprise", "address"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(strings.TrimSpace(string(b)), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// subscribe receives what is published from now on.
func subscribe(t *testing.T, w *world, subject string) *nats.Subscription {
	t.Helper()
	nc := connect(t, w)
	sub, err := nc.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return sub
}

// publish sends plain text with an id.
func publish(t *testing.T, w *world, subject, text, id string) {
	t.Helper()
	nc := connect(t, w)
	msg := nats.NewMsg(subject)
	msg.Data = []byte(text)
	msg.Header.Set("Reprise-Id", id)
	if err := nc.PublishMsg(msg); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}
