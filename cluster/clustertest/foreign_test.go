//go:build unix

package clustertest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/cluster/protocoltest"
)

// A client of the agent protocol cannot ask again under an id. When the node that answers it dies or
// leaves, its stream ends with the rest of the answer, or with one error, and never in silence.
func TestForeignClientsOfANodeThatGoes(t *testing.T) { // A100
	for name, goes := range map[string]func(*clustertest.Node){"killed": (*clustertest.Node).Kill, "drained": (*clustertest.Node).Stop} {
		t.Run(name, func(t *testing.T) {
			w := clustertest.New(t, clustertest.Nodes(2))
			it := protocoltest.Start(w.Context(), t, w.URL())
			gate := w.HoldModel(func(c clustertest.ModelCall) bool { return strings.HasPrefix(c.Input, "held") && c.Step == 1 })
			defer gate.Release()
			streams := make([]*protocoltest.Stream, 12)
			for i := range streams {
				agent := fmt.Sprintf("worker/f%d", i)
				streams[i] = it.Prompt(fmt.Sprintf("agents.prompt.worker.default.f%d", i), clustertest.Text(fmt.Sprintf("held%d", i), clustertest.Pay), 30*time.Second)
				w.Until(agent, "tool.completed")
			}
			goes(w.Node(0))
			gate.Release()
			refused := 0
			for i, s := range streams {
				text, _, end := s.Rest()
				switch want := clustertest.Output(fmt.Sprintf("held%d", i), clustertest.Pay); {
				case end.Type == "end" && text == want:
				case end.Type == "error" && end.Code != 0 && end.Text != "":
					if refused++; refused == 1 {
						t.Log(end.Text)
					}
				default:
					t.Errorf("stream %d gives %q and ends with %+v, want %q or an error of the endpoint", i, text, end, want)
				}
			}
			t.Logf("%d of %d streams ended with an error", refused, len(streams))
		})
	}
}
