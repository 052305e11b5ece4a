package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
)

// What a server does not have, or does not permit, is said with what to do.
func TestOpenSaysWhatAServerLacks(t *testing.T) {
	for conf, says := range map[string]string{
		"": "put a jetstream block",
		"jetstream: enabled\naccounts: { A: { users: [{user: u, password: p}] }, B: { jetstream: enabled } }":     "off for this user's account",
		"jetstream: enabled\nauthorization: { users: [{user: u, password: p, permissions: { publish: \"x\" }}] }": "does not permit this user",
		"jetstream: enabled\nauthorization: { users: [{user: u, password: p}] }":                                  "3 copies were asked for",
	} {
		nc, err := natslog.Connect(configured(t, conf), nats.UserInfo("u", "p"), nats.Timeout(time.Minute), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		_, err = natslog.Open(context.Background(), natslog.Config{Conns: []*nats.Conn{nc}, Replicas: 3, Logger: quiet})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", conf, err, says)
		}
	}
}

// What is only slow to answer is asked again, what is wrong is not.
func TestAwait(t *testing.T) {
	nc := connect(t)
	slow := []error{fmt.Errorf("look up: %w", eventlog.ErrUnavailable), context.DeadlineExceeded, nats.ErrTimeout, nats.ErrDisconnected, fmt.Errorf("bucket b: %w", nats.ErrReconnectBufExceeded), nil}
	asked := 0
	if err := natslog.Await(t.Context(), nc, quiet, func(context.Context) error { asked++; return slow[asked-1] }); err != nil || asked != len(slow) {
		t.Errorf("asked %d times: %v", asked, err)
	}
	wrong := errors.New("wrong")
	asked = 0
	if err := natslog.Await(t.Context(), nc, quiet, func(context.Context) error { asked++; return wrong }); !errors.Is(err, wrong) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// Of a connection that is gone it is said that it is, and not that a stream has no leader.
func TestGoneForGood(t *testing.T) {
	nc, err := natslog.Connect(configured(t, "jetstream: enabled"), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if err := natslog.Explained(nats.ErrReconnectBufExceeded, nc, 1); !strings.Contains(err.Error(), "does not come back") {
		t.Error(err)
	}
}

// A key has a revision until it is deleted.
func TestRevision(t *testing.T) {
	nc := connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: freshRoot().Root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = js.DeleteKeyValue(context.Background(), kv.Bucket()) })
	check := func(when string, want uint64) {
		t.Helper()
		if got, err := natslog.Revision(t.Context(), nc, kv.Bucket(), "k"); err != nil || got != want {
			t.Errorf("%s: revision %d, %v; want %d", when, got, err, want)
		}
	}
	check("never put", 0)
	rev, err := kv.Put(t.Context(), "k", []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	check("put", rev)
	if err := kv.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	check("deleted", 0)
	if _, err := natslog.Revision(t.Context(), nc, "nowhere", "k"); err == nil {
		t.Error("a bucket that is not there has a revision")
	}
}
