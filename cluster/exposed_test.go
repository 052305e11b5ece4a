package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// TestLoginOfEmbedded holds that a node works whose embedded server wants a login, that others
// need it, and that without one none listens where other machines reach it.
func TestLoginOfEmbedded(t *testing.T) {
	t.Parallel()
	var log embeddedtest.Words
	cfg := cluster.Config{Data: t.TempDir(), Sync: "relaxed", Listen: "0.0.0.0:0", Logger: log.Logger()}
	agents(echo(), nil)(&cfg)
	if n, err := cluster.Start(t.Context(), cfg); !errors.Is(err, embedded.ErrExposed) {
		if err == nil {
			_ = n.Close()
		}
		t.Fatalf("a server without a login listens on every address: %v", err)
	}
	cfg.Insecure = true
	open, err := cluster.Start(t.Context(), cfg)
	must(t, err)
	if !open.Exposed() || !strings.Contains(log.String(), "requires no login") {
		t.Errorf("exposed: %v; it says %s", open.Exposed(), log.String())
	}
	must(t, open.Close())
	cfg.Insecure = false
	cfg.Listen, cfg.Login = "127.0.0.1:0", embedded.Login{User: "ops", Password: "hush"}
	n, err := cluster.Start(t.Context(), cfg)
	must(t, err)
	defer func() { _ = n.Close() }()
	if n.Exposed() {
		t.Error("exposed with a login, on the loopback")
	}
	for _, err := range n.Client().Ask(t.Context(), "assistant/a", "hi") {
		must(t, err)
	}
	if nc, err := nats.Connect(n.URL(), unhurried); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("a client without the login: %v", err)
	}
	nc, err := nats.Connect(n.URL(), unhurried, nats.UserInfo("ops", "hush"))
	must(t, err)
	nc.Close()
	if said := log.String(); strings.Contains(said, "hush") {
		t.Errorf("it says %s", said)
	}
}
