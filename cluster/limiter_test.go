package cluster_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// A node says once that NATS is away and once that it is back; what goes wrong in
// between it says at debug.
func TestServerAwayIsSaidOnce(t *testing.T) {
	w := newWorld(t)
	told := new(embeddedtest.Words)
	gate := scripted.NewGate()
	n := w.node(agents(scripted.New(scripted.Held(gate, scripted.Say("done"))), nil), func(c *cluster.Config) {
		c.Logger = slog.New(slog.NewTextHandler(told, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("go")))
	<-gate.Reached()
	says := func(what string) func() bool {
		return func() bool { return strings.Contains(told.String(), what) }
	}
	w.bounce(func() {
		w.eventually("it says that NATS is away", says("NATS cannot be reached"))
		gate.Release()
		w.eventually("the rest comes at debug", says(`level=DEBUG msg="the log does not take a frame`))
	})
	w.eventually("it says that NATS is back", says("NATS is back"))
	w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	_, after, _ := strings.Cut(told.String(), `level=DEBUG msg="the log does not take a frame`)
	during, _, _ := strings.Cut(after, `msg="NATS is back"`)
	if strings.Count(during, "level=WARN") != 1 { // that of the line that says it is back
		t.Errorf("it warned while NATS was away:\n%s", during)
	}
	if strings.Count(told.String(), "NATS cannot be reached") != 1 || strings.Count(told.String(), "NATS is back") != 1 {
		t.Errorf("it is not said once:\n%s", told)
	}
}
