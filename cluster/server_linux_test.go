package cluster_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// A disk that was full for a moment stops a stream of the server until that is
// started again. The node says so, waits for room and starts it; what waited continues.
func TestFullDiskHeals(t *testing.T) { // A30
	for _, sync := range []string{"always", "relaxed"} {
		t.Run(sync, func(t *testing.T) { testFullDisk(t, sync) })
	}
}

func testFullDisk(t *testing.T, sync string) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	w := &world{t: t, ctx: ctx, dir: t.TempDir(), log: new(embeddedtest.Words)}
	cfg := cluster.Config{Data: w.dir, Sync: sync, Logger: w.log.Logger(), HTTP: "127.0.0.1:0"}
	agents(echo(), nil)(&cfg)
	n, err := cluster.Start(ctx, cfg)
	w.ok(err)
	defer func() { _ = n.Close() }()
	agent, err := messages.ParseAgentID("assistant/a")
	w.ok(err)
	embeddedtest.FullDisk(t, filepath.Join(w.dir, "jetstream", "$G", "streams", w.streamOf(agent), "msgs", "1.blk"))
	noRoom := filepath.Join(w.dir, "PROBE") // where it looks whether there is room
	w.ok(os.MkdirAll(filepath.Join(noRoom, "full"), 0o700))

	asking := make(chan error, 1)
	go func() {
		got, err := w.ask(n.Client(), "assistant/a", input("1", "hello"))
		if err == nil && got.end.Output != "you said hello" {
			t.Errorf("answered %+v", got.end)
		}
		asking <- err
	}()
	w.eventually("the node tells", func() bool { return strings.Contains(w.log.String(), "make room on its disk") })
	if _, codes := w.readiness(n); !slices.Contains(codes, "store") {
		t.Errorf("/readyz gives the reasons %q, want store", codes)
	}
	told := false
	for line, err := range n.Client().QueryStore(ctx, messages.Query{View: "doctor"}) {
		w.ok(err)
		var e gateway.Examined
		w.ok(json.Unmarshal(line, &e))
		told = told || e.Finding != nil && e.Finding.Status == "fail" && strings.Contains(e.Finding.Detail, w.streamOf(agent)+" stores nothing any more")
	}
	if !told {
		t.Error("doctor does not tell that a stream takes nothing")
	}
	w.ok(os.RemoveAll(noRoom))
	w.ok(<-asking)
	w.eventually("the node tells that it is over", func() bool { return strings.Contains(w.log.String(), "was started again") })
	w.eventually("the node is ready", func() bool {
		status, _ := w.readiness(n)
		return status == http.StatusOK
	})
	if err := n.Err(); err != nil {
		t.Errorf("ended by %v", err)
	}
}

// streamOf is the name of the stream that holds an agent's frames.
func (w *world) streamOf(a messages.AgentID) string {
	return natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
}
