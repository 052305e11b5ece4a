package cli_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

const oneAgent = `agents:
  assistant:
    model: demo/demo
    instructions: Be brief.
`

// servers runs n servers of a cluster in this process and returns their addresses.
func servers(t *testing.T, n int) string {
	t.Helper()
	all, err := embedded.StartCluster(t.Context(), n, embedded.Config{
		Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range all {
			_ = s.Shutdown()
		}
	})
	return embedded.ClientURLs(all)
}

// A store some of which has one copy: serve and doctor say so, store scale mends it
// while the node works.
func TestStoreUpgrade(t *testing.T) {
	if os.Getenv("REPRISE_REPLICAS") == "" {
		t.Skip("three servers under load take most of a minute: make test-replicas")
	}
	w := newWorld(t)
	w.file("reprise.yaml", oneAgent)
	urls := servers(t, 3)
	nc, err := nats.Connect(urls, nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "reprise_leases", History: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.run("store", "scale", "--nats", urls).exits(2, "--replicas 0")
	node := w.node("serve", "--nats", urls, "--replicas", "3")
	w.env = append(w.env, "NATS_URL="+urls)
	w.run("doctor").exits(0, "KV_reprise_leases has 1", "store scale --replicas 3")
	w.run("store", "scale", "--replicas", "3", "--dry-run").exits(0, "to do KV_reprise_leases", "1 of 3 copies", "ok    REPRISE_DEF")
	if r := w.run("store", "scale", "--replicas", "3", "-o", "json").exits(0); !whole(r.objects(), 3) {
		t.Errorf("%s", r.out)
	}
	w.run("store", "scale", "--replicas", "3").exits(0, "ok    KV_reprise_leases", "buckets have 3 copies")
	w.run("store", "scale", "--replicas", "1").exits(1, "has 3 copies already")
	w.run("ask", "assistant/a", "hello").exits(0)
	if r := w.run("doctor").exits(0); strings.Contains(r.out, "copies") {
		t.Errorf("%s", r.out)
	}
	if node.end(syscall.SIGTERM); !strings.Contains(node.rest.String(), "store scale --replicas 3") {
		t.Errorf("serve said %q", node.rest)
	}
	again := w.node("serve") // with as many copies as the store has
	if again.end(syscall.SIGTERM); strings.Contains(again.rest.String(), "store scale") {
		t.Errorf("serve said %q", again.rest)
	}
}

// whole reports whether each of the streams has so many copies.
func whole(all []map[string]any, copies int) bool {
	for _, s := range all {
		if s["whole"] != true || fmt.Sprint(s["replicas"]) != fmt.Sprint(copies) {
			return false
		}
	}
	return len(all) > 20
}

// What a server cannot do is said in words.
func TestServersThatCannot(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", oneAgent)
	alone := servers(t, 1)
	w.run("serve", "--nats", alone, "--replicas", "3").exits(1, "stands alone", "ask for 1")
	w.run("serve", "--nats", alone, "--replicas", "6").exits(2, "1 to 5 copies")
	w.run("store", "scale", "--nats", alone, "--replicas", "3").exits(1, "no store with root reprise")
	w.node("serve", "--nats", alone).end(syscall.SIGTERM) // now there is a store
	more := w.node("serve", "--nats", alone, "--replicas", "3")
	more.end(syscall.SIGTERM)
	if said := more.rest.String(); !strings.Contains(said, "cluster of at least 3 servers") || strings.Contains(said, "store scale") {
		t.Errorf("serve said %q", said)
	}
	w.run("store", "scale", "--nats", alone, "--replicas", "3").exits(1, "stands alone", "cluster of 3 servers")
}
