package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// defaultConfig is the file that is read if none is named.
const defaultConfig = "reprise.yaml"

// wordDelay is the demo model's pause before each word, so that streaming can
// be seen.
const wordDelay = 20 * time.Millisecond

// fromFile puts what a reprise.yaml defines into cfg, whose Data is set if it has a
// data folder. promptApproves is the default of prompt_approves for agents that do not set it.
// It starts nothing.
func fromFile(path, keyFile string, cfg *cluster.Config, promptApproves bool) (*config.Config, error) {
	c, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	if cfg.Agents, err = definitions(c, toolbox.Command); err != nil {
		return nil, err
	}
	if err = c.Unarchived(); err != nil && cfg.Data == "" {
		return nil, err
	}
	cfg.Prices, cfg.Archive = c.Prices, c.RetainTo
	if cfg.WrappingKeys, err = wrappingKeys(keyFile, c.Encryption); err != nil {
		return nil, err
	}
	approves := make(map[string]bool)
	for _, a := range c.Agents {
		approves[a.Kind] = promptApproves
		if a.PromptApproves != nil {
			approves[a.Kind] = *a.PromptApproves
		}
	}
	cfg.PromptDecides = func(kind, _ string) bool { return approves[kind] }
	addProviders(cfg.Providers, c)
	return c, nil
}

// addProviders adds those providers of a file that its agents use.
func addProviders(set providers.Set, c *config.Config) {
	for _, p := range c.Providers {
		if p.Used {
			set[p.Name] = openai.New(p.APIKey.Reveal(), openAIOptions(p)...)
		}
	}
}

// validate returns what a node would refuse of a file's agents.
func validate(c *config.Config, agents []actors.Definition) error {
	set := withDemo()
	addProviders(set, c)
	var wrong config.Problems
	for _, d := range agents {
		wrong = append(wrong, c.OfAgent(d.Kind, errors.Join(d.Validate(set), checkTools(set, d)))...)
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// checkTools returns the error of an agent whose tools one of its models cannot be sent.
func checkTools(set providers.Set, d actors.Definition) error {
	if len(d.Tools) == 0 && len(d.Sources) == 0 {
		return nil
	}
	for _, model := range append([]string{d.Model}, d.Fallbacks...) {
		p, name, err := set.Split(model)
		if asked, ok := p.(*openai.Provider); ok && err == nil {
			if err := asked.CheckTools(name, d.ModelSettings[model].Or(d.Settings).ReasoningEffort); err != nil {
				return fmt.Errorf("agent %s: %s: %w", d.Kind, model, err)
			}
		}
	}
	return nil
}

// definitions are the agents of a file; command makes a tool of a program.
func definitions(c *config.Config, command func(toolbox.CommandConfig) (tool.Tool, error)) ([]actors.Definition, error) {
	return c.Definitions(toolbox.ByName, command, toolbox.Names()...)
}

func openAIOptions(p config.ProviderConfig) []openai.Option {
	options := []openai.Option{openai.Name(p.Name), openai.Rules(p.Rules), openai.Timeout(p.Timeout)}
	if p.BaseURL != "" {
		options = append(options, openai.BaseURL(p.BaseURL))
	}
	if server, err := profile.ByName(p.Profile); err == nil { // else by the host
		options = append(options, openai.Profile(server))
	}
	for name, value := range p.Headers {
		options = append(options, openai.Header(name, value.Reveal()))
	}
	for name, value := range p.Query {
		options = append(options, openai.Query(name, value.Reveal()))
	}
	for name, value := range p.ExtraBody {
		options = append(options, openai.ExtraBody(name, value))
	}
	return options
}

// withDemo are the providers that are always there.
func withDemo(options ...demo.Option) providers.Set {
	return providers.Set{config.DemoProvider: demo.New(options...)}
}
