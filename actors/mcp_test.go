package actors_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// A37: an agent whose MCP server is unavailable starts. It has the tools of the server, and
// those that the server adds later, from its next turn on. If the server ends, calls of its
// tools fail.
func TestMCPServer(t *testing.T) {
	there := sdk.NewServer(&sdk.Implementation{Name: "there", Version: "1"}, nil)
	offer := func(name string, run func()) {
		sdk.AddTool(there, &sdk.Tool{Name: name}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
			run()
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name + " ran"}}}, nil, nil
		})
	}
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return there }, nil)
	open := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-open:
			handler.ServeHTTP(w, r)
		default:
			http.Error(w, "not yet", http.StatusForbidden)
		}
	}))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	offer("early", func() {})
	offer("dies", site.CloseClientConnections)

	server, err := mcp.New(mcp.Config{Name: "there", URL: site.URL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	source, err := server.Select(mcp.Selection{Prefix: "x_"})
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New(scripted.Say("no tools"),
		scripted.Ask(call("c1", "x_early")), scripted.Ask(call("c2", "x_dies")), scripted.Say("two"),
		scripted.Ask(call("c3", "x_late")), scripted.Say("three"))
	s := actorstest.New(t, nil)
	node := s.Start(with(config(model), func(d *actors.Definition) { d.Sources = []tool.Source{source} }))
	watch(t, node)

	node.Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	renewed(node, func() { close(open) })
	node.Must(ada, say("u2", "go"))
	all := s.Until(ada, "turn.completed", 2)
	failed := actorstest.Of[messages.ToolFailed](all)
	if len(failed) != 1 || failed[0].Call != "c2" || failed[0].Kind != "unknown" || !strings.HasPrefix(failed[0].Message, "MCP server there did not answer: ") {
		t.Errorf("got %+v, want the failure of c2 because its server ended", failed)
	}
	renewed(node, func() { offer("late", func() {}) })
	node.Must(ada, say("u3", "go"))
	all = s.Until(ada, "turn.completed", 3)
	var ran []string
	for _, done := range actorstest.Of[messages.ToolCompleted](all) {
		ran = append(ran, done.Output)
	}
	if got := strings.Join(ran, ", "); got != "early ran, late ran" {
		t.Errorf("got the results %s, want early ran, late ran", got)
	}
	if n := count(all, "agent.configured"); n != 3 {
		t.Errorf("got %d agent.configured, want 3", n)
	}
	if spec := model.Requests()[1].Tools; len(spec) != 2 || spec[1].Name != "x_early" || !strings.Contains(string(spec[1].Parameters), `"type":"object"`) {
		t.Errorf("the model: got tools %+v, want two with the schema of x_early", spec)
	}
}
