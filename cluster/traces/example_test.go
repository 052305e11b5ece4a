package traces_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/reprise-dev/reprise/cluster/traces"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The spans of a turn, made of its events and sent to a collector of OpenTelemetry.
func ExampleNewSender() {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path, r.Header.Get("X-Team"))
	}))
	defer collector.Close()
	sender, err := traces.NewSender(collector.URL, map[string]string{"X-Team": "support"}, traces.Resource{Service: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	spans := projections.Spans{Agent: messages.AgentID{Tenant: "default", Kind: "support", Key: "ann"}}
	projections.Fold(&messages.Frame{First: 1, Time: time.Unix(1767225600, 0), Events: []messages.Event{
		messages.InputAccepted{Input: "u1", Turn: "t2", Disposition: messages.Started, Content: messages.TextContent("Hi")},
		messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}},
		messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}, Output: "Hello."},
	}}, 0, &spans)
	lost, err := sender.Send(context.Background(), spans.Take())
	fmt.Println(lost, err)
	// Output:
	// POST /v1/traces support
	// 0 <nil>
}
