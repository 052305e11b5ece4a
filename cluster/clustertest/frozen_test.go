//go:build unix

package clustertest_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/messages"
)

// The server keeps giving requests to a node that is frozen. Those who prompt or read
// are answered all the same, for the client asks another endpoint.
func TestFrozenDoor(t *testing.T) { // A92 A91
	w := clustertest.New(t, clustertest.Nodes(3))
	const agent = "worker/read"
	if got := w.Ask(agent, "first", clustertest.Pay); got.Err != nil {
		t.Fatal(got.Err)
	}
	frozen := w.Node(0)
	if w.Owner(agent) == frozen {
		frozen = w.Node(1)
	}
	frozen.Freeze()
	began := time.Now()
	for i := range 2 {
		for _, view := range []string{"show", "events", "history", "usage"} {
			if lines := lines(t, w, messages.Query{View: view}, agent); lines == 0 {
				t.Errorf("%s has no lines", view)
			}
		}
		for _, view := range []string{"agents", "usage"} {
			for lines(t, w, messages.Query{View: view}, "") == 0 { // each node follows the log by itself
			}
		}
		if got := w.Ask(agent, fmt.Sprint("frozen", i), clustertest.Look); got.Err != nil {
			t.Error(got.Err)
		}
		w.Do(agent, messages.SetState{Patch: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
	}
	t.Logf("14 questions took %v", time.Since(began).Round(time.Millisecond))
	frozen.Thaw()
	w.Prove()
}

// lines counts those of a view: of an agent, or of the tenant.
func lines(t *testing.T, w *clustertest.World, q messages.Query, agent string) (n int) {
	t.Helper()
	view := w.Client().QueryTenant(w.Context(), messages.DefaultTenant, q)
	if agent != "" {
		view = w.Client().Query(w.Context(), agent, q)
	}
	for _, err := range view {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
