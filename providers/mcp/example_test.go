package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/providers/mcp"
)

// The tools of an MCP server, here one over HTTP, for Definition.Sources.
func ExampleNew() {
	server := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	type order struct {
		Number int `json:"number"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "lookup", Description: "Find an order"}, func(_ context.Context, _ *sdk.CallToolRequest, o order) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("order %d is on its way", o.Number)}}}, nil, nil
	})
	site := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
	defer site.Close()

	shop, err := mcp.New(mcp.Config{Name: "shop", URL: site.URL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer shop.Close()
	if err := shop.Ready(context.Background()); err != nil {
		log.Fatal(err)
	}
	source, err := shop.Select(mcp.Selection{})
	if err != nil {
		log.Fatal(err)
	}
	tools, _ := source.Tools()
	for _, t := range tools {
		fmt.Println(t.Spec().Name, t.Spec().OnUnknown)
		fmt.Println(t.Call(context.Background(), json.RawMessage(`{"number":7}`)))
	}
	// Output:
	// lookup pause
	// order 7 is on its way <nil>
}
