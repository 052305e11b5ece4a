package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// Close leaves nothing behind; it comes before all parallel tests.
func TestCloseLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	never := scripted.NewGate()
	log := new(embeddedtest.Words)
	for round := range 2 { // the second recovers what the first left
		cfg := cluster.Config{Data: dir, Sync: "relaxed", Logger: log.Logger()}
		agents(scripted.New(scripted.Held(never, scripted.Say("never"))), nil)(&cfg)
		n, err := cluster.Start(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan error, 3)
		started := make(chan struct{}, 3)
		for range 3 {
			go func() {
				var last error
				var streams sync.Once // in the second round there are two calls: that of the first was lost
				for e, err := range n.Client().AskFacts(ctx, "assistant/a", input("1", "hello")) {
					if last = err; e.Type == "model.requested" {
						streams.Do(func() { started <- struct{}{} })
					}
				}
				asked <- last
			}()
		}
		for range 3 {
			<-started
		}
		following, told := make(chan error, 1), make(chan struct{})
		go func() {
			var last error
			var first sync.Once
			for _, err := range n.Client().Query(ctx, "assistant/a", messages.Query{View: "events", Follow: true}) {
				last = err
				first.Do(func() { close(told) })
			}
			following <- last
		}()
		<-told
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for range 3 {
			if err := <-asked; err == nil || !strings.Contains(err.Error(), "shutting down") {
				t.Errorf("round %d: a running stream is told %v", round, err)
			}
		}
		if err := <-following; err == nil || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("round %d: a follower is told %v", round, err)
		}
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := ours()
		if left == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("still running:\n%s", left)
		}
	}
}

// ours are the goroutines that a node or its libraries have started.
func ours() (left string) {
	var buf bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&buf, 2)
	for _, g := range strings.Split(buf.String(), "\n\n") {
		if strings.Contains(g, "testing.tRunner(") || strings.Contains(g, "testing.(*T)") || strings.Contains(g, "testing.Main") {
			continue
		}
		for _, of := range []string{"reprise-dev/reprise/", "asynkron/", "nats-io/", "google.golang.org/grpc"} {
			if strings.Contains(g, of) {
				left += g + "\n\n"
				break
			}
		}
	}
	return left
}

// Installations with different roots share a process and a server, and a node
// may be given a connection of the caller's.
func TestRootsAndConnections(t *testing.T) {
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	closed := make(chan struct{}, 100)
	mine, err := nats.Connect(w.url, unhurried, nats.NoEcho(), nats.ClosedHandler(func(*nats.Conn) { closed <- struct{}{} }))
	w.ok(err)
	defer mine.Close()
	kinds := func(kind string) change {
		return func(c *cluster.Config) {
			c.Conn, c.NATS, c.Root = mine, "", kind
			c.Agents = []actors.Definition{{Kind: "assistant", Model: "test/" + kind}}
		}
	}
	one, two := w.node(kinds("one")), w.node(kinds("two"))
	for _, n := range []*cluster.Node{one, two} {
		if n.Partitions() != messages.Partitions {
			t.Errorf("%d partitions", n.Partitions())
		}
		_, err := n.Client().Send(w.ctx, "assistant/a", input("same", "hello"))
		w.ok(err)
		w.until(n.Client(), "assistant/a", ofType("turn.completed"))
		if got := count(w.events(n.Client(), "assistant/a"), "input.accepted"); got != 1 {
			t.Errorf("%d inputs", got)
		}
		for i := range 8 { // prompts share their subjects: whose endpoint gets one is the server's choice
			agent := fmt.Sprintf("assistant/p%d", i)
			w.say(n.Client(), agent, "same", "hello")
			if got := count(w.events(n.Client(), agent), "turn.completed"); got != 1 {
				t.Errorf("%s: %d turns", agent, got)
			}
		}
	}
	w.ok(one.Close())
	w.ok(two.Close())
	if !mine.IsConnected() || len(closed) != 0 {
		t.Error("the caller's connection was touched")
	}
}

// A key that a server refused is in no event, no log line and no error.
func TestSecretsStaySecret(t *testing.T) { // A56
	const key = "sk-very-secret-key"
	w := newWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, `{"error":{"message":"bad key `+r.Header.Get("Authorization")+`"}}`)
	}))
	defer server.Close()
	c := w.node(func(cfg *cluster.Config) {
		cfg.Providers = providers.Set{"openai": openai.New(key, openai.BaseURL(server.URL))}
		cfg.Agents = []actors.Definition{{Kind: "assistant", Model: "openai/x"}}
	}).Client()
	got, err := w.ask(c, "assistant/a", input("1", "hello"))
	var refused *messages.Error
	if !errors.As(err, &refused) || strings.Contains(err.Error(), key) || strings.Contains(got.text, key) {
		t.Errorf("told %v", err)
	}
	events := w.events(c, "assistant/a")
	if count(events, "model.failed") != 1 {
		t.Errorf("%+v", events)
	}
	for _, e := range events {
		if strings.Contains(string(e.Data), key) {
			t.Errorf("%s tells the key", e.Type)
		}
	}
	if strings.Contains(w.log.String(), key) {
		t.Error("the log tells the key")
	}
}
