package cli

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// defaultConfig is the file that is read if none is named.
const defaultConfig = "reprise.yaml"

// wordDelay is the demo model's pause before each word, so that streaming can
// be seen.
const wordDelay = 20 * time.Millisecond

// fromFile puts what a reprise.yaml defines into cfg.
func fromFile(path string, cfg *cluster.Config) error {
	c, err := config.Load(path)
	if err != nil {
		return err
	}
	if cfg.Agents, err = definitions(c, toolbox.Command); err != nil {
		return err
	}
	for _, p := range c.Providers {
		if p.Used {
			cfg.Providers[p.Name] = openai.New(p.APIKey.Reveal(), openAIOptions(p.Name, p.BaseURL)...)
		}
	}
	return nil
}

// definitions are the agents of a file; command makes a tool of a program.
func definitions(c *config.Config, command func(toolbox.CommandConfig) (tool.Tool, error)) ([]actors.Definition, error) {
	return c.Definitions(toolbox.ByName, func(t config.ToolConfig) (tool.Tool, error) {
		var env []string
		for name, value := range t.Env {
			env = append(env, name+"="+value.Reveal())
		}
		slices.Sort(env)
		return command(toolbox.CommandConfig{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters, Command: t.Command, Dir: t.Dir,
			Env: env, Class: t.Class, Reconcile: t.Reconcile, Timeout: t.Timeout,
		})
	}, toolbox.Names()...)
}

func openAIOptions(name, baseURL string) []openai.Option {
	options := []openai.Option{openai.Name(name)}
	if baseURL != "" {
		options = append(options, openai.BaseURL(baseURL))
	}
	return options
}

// demoAgents are what dev runs without a file. An empty model is chosen by
// whether there is a key.
func demoAgents(model string, cfg *cluster.Config) error {
	if key := os.Getenv("OPENAI_API_KEY"); key != "" {
		cfg.Providers["openai"] = openai.New(key, openAIOptions("openai", os.Getenv("OPENAI_BASE_URL"))...)
		if model == "" {
			model = "openai/gpt-5.5"
		}
	}
	if model == "" {
		model = "demo/demo"
	}
	if _, _, err := cfg.Providers.Split(model); err != nil {
		return &failure{code: exitUsage, what: fmt.Sprintf("--model: %v", err), do: "for openai/… set OPENAI_API_KEY; other providers are declared in a reprise.yaml"}
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

// withDemo are the providers that are always there.
func withDemo(options ...demo.Option) providers.Set {
	return providers.Set{config.DemoProvider: demo.New(options...)}
}
