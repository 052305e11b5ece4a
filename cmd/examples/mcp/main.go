// Mcp gives an agent the tools of an MCP server that runs as a program. Here the server is this program, started
// again with the argument serve.
//
//	go run ./cmd/examples/mcp
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/tool"
)

func main() {
	do := run
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		do = serve
	}
	if err := do(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shop, err := mcp.New(mcp.Config{Name: "shop", Command: []string{os.Args[0], "serve"}}) // or URL
	if err != nil {
		return err
	}
	defer shop.Close()
	if err := shop.Ready(ctx); err != nil { // not needed: the tools come when the server is there
		return err
	}
	tools, err := shop.Select(mcp.Selection{OnUnknown: []mcp.OnUnknownRule{{Tool: "find_*", OnUnknown: tool.ReadOnly}}})
	if err != nil {
		return err
	}
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "support", Model: "demo/demo", Sources: []tool.Source{tools}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	for ev, err := range node.Client().Ask(ctx, "support/ann", "find_order number=7") {
		if err != nil {
			return err
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
	}
	return nil
}

func serve(ctx context.Context) error {
	type order struct {
		Number int `json:"number"`
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	find := func(_ context.Context, _ *sdk.CallToolRequest, o order) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("order %d is on its way", o.Number)}}}, nil, nil
	}
	sdk.AddTool(server, &sdk.Tool{Name: "find_order", Description: "Find an order"}, find)
	return server.Run(ctx, &sdk.StdioTransport{})
}
