package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// demoAgents are what dev runs without a file. An empty model is chosen by
// whether there is a key.
func demoAgents(model string, cfg *cluster.Config) error {
	if key := os.Getenv("OPENAI_API_KEY"); key != "" {
		cfg.Providers["openai"] = openai.New(key, openAIOptions(config.ProviderConfig{Name: "openai", BaseURL: os.Getenv("OPENAI_BASE_URL")})...)
		if model == "" {
			model = "openai/gpt-5.5"
		}
	}
	if model == "" {
		model = "demo/demo"
	}
	if _, _, err := cfg.Providers.Split(model); err != nil {
		return &failure{
			code: exitUsage, what: fmt.Sprintf("--model: %v", err),
			do: "for openai/… set OPENAI_API_KEY; other providers are declared in a reprise.yaml",
		}
	}
	cfg.Agents = []actors.Definition{
		{
			Kind: "assistant", Model: model,
			Instructions: "You are a helpful assistant. Be brief. Use your tools to calculate and to tell the time.",
			Tools:        builtin("clock", "calculator"),
		},
		{
			Kind: "parrot", Model: model,
			Instructions: "You are a parrot. Use the tool echo on what the user says, then repeat it.",
			Tools:        builtin("echo"),
		},
		{
			Kind: "support", Model: model,
			Instructions: "You help the customers of a shop. Be brief. Use your tool to pay an order back.",
			Tools:        []tool.Tool{demoRefund()},
		},
		{
			Kind: "team", Model: model,
			Instructions: "You lead a team. Be brief. Ask the one of your team who can do it, and tell what came of it.",
			Tools: []tool.Tool{
				actors.AsTool("support", "Ask support to pay back an order of a customer"),
				actors.AsTool("assistant", "Ask an assistant who tells the time"),
			},
		},
	}
	return nil
}

func builtin(names ...string) []tool.Tool {
	var tools []tool.Tool
	for _, name := range names {
		if t, ok := toolbox.ByName(name); ok {
			tools = append(tools, t)
		}
	}
	return tools
}

// refund is what the demo agent support fills in.
type refund struct {
	Order int `json:"order" jsonschema:"number of the order"`
	Cents int `json:"cents" jsonschema:"how much to pay back, in cents"`
}

// askAbove is the largest refund, in cents, that needs no approval.
const askAbove = 5000

// demoRefund only answers that it pays an order back, so that approvals can be
// tried.
func demoRefund() tool.Tool {
	return tool.New("refund", "Pay an order back (a demo: no money moves)", tool.Rerun, func(_ context.Context, r refund) (string, error) {
		return fmt.Sprintf("Paid %d cents back for order %d.", r.Cents, r.Order), nil
	}).ApproveIf(func(r refund) bool { return r.Cents > askAbove })
}
