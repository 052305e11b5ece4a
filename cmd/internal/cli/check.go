package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

func (a *app) check() *cobra.Command {
	var keys string
	cmd := &cobra.Command{
		Use: "check [FILE]", GroupID: groupCheck, Args: cobra.MaximumNArgs(1),
		Short: "Check a reprise.yaml and report every mistake",
		Long: `Check a reprise.yaml and report every mistake with its line, column and what to do. Default:
./reprise.yaml. The wrapping key that serve would encrypt with is checked, too. No MCP server is
started and no model is called.`,
		Example: `  reprise check
  reprise check conf/reprise.yaml -o json`,
		RunE: func(_ *cobra.Command, args []string) error {
			file := defaultConfig
			if len(args) > 0 {
				file = args[0]
			}
			return a.runCheck(file, keys)
		},
	}
	keyFlag(cmd, &keys)
	return cmd
}

// checked is what check says of a file in JSON.
type checked struct {
	OK        bool     `json:"ok"`
	File      string   `json:"file"`
	Agents    []string `json:"agents,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	Providers []string `json:"providers,omitempty"`
	MCP       []string `json:"mcp,omitempty"`
	// Models are those that are asked over an API.
	Models []checkedModel `json:"models,omitempty"`
	// Wrapping are the ids of the wrapping keys.
	Wrapping []string        `json:"wrapping,omitempty"`
	Problems config.Problems `json:"problems,omitempty"`
	// Warnings are problems for some nodes alone: those with --nats.
	Warnings config.Problems `json:"warnings,omitempty"`
}

// checkedModel is how a model is asked.
type checkedModel struct {
	Model   string `json:"model"`
	Profile string `json:"profile"`
	// API is chat or responses.
	API string `json:"api"`
}

// validAgents returns what is wrong with the agents of a file.
func validAgents(c *config.Config) error {
	agents, err := definitions(c, runnable)
	if err != nil {
		return err
	}
	return validate(c, agents)
}

func (a *app) runCheck(file, keyFile string) error {
	c, err := config.Load(file)
	if err == nil {
		err = validAgents(c)
	}
	if err == nil {
		err = c.MCPPrograms()
	}
	if err != nil {
		return a.problems(file, err)
	}
	keys, err := wrappingKeys(keyFile, c.Encryption)
	if err != nil {
		return a.problems(file, keyProblem(keyFile, c, err))
	}
	result := checked{
		OK: true, File: file, Models: modelsOf(c),
		Agents:    each(c.Agents, func(agent config.AgentConfig) string { return agent.Kind }),
		Tools:     each(c.Tools, func(t config.ToolConfig) string { return t.Name }),
		Providers: each(c.Providers, func(p config.ProviderConfig) string { return p.Name }),
		MCP:       each(c.MCP, func(m config.MCPConfig) string { return m.Name }),
		Wrapping:  each(keys, encrypted.Key.ID),
	}
	unarchived := c.Unarchived()
	errors.As(unarchived, &result.Warnings)
	if a.json() {
		return a.object(result)
	}
	encrypted := "nothing is encrypted"
	if len(keys) > 0 {
		encrypted = counted("wrapping key", result.Wrapping)
	}
	servers := ""
	if len(result.MCP) > 0 {
		servers = counted("MCP server", result.MCP) + "; "
	}
	a.printf("%s is fine: %s; %s; %s%s; %s\n", file, counted("agent", result.Agents), counted("tool", result.Tools), servers, counted("provider", result.Providers), encrypted)
	for _, m := range result.Models {
		a.printf("model %s: profile %s, API %s\n", m.Model, m.Profile, m.API)
	}
	if unarchived != nil {
		a.note("it does not work with serve --nats: %v", unarchived)
	}
	return nil
}

// modelsOf returns how the models of the agents are asked.
func modelsOf(c *config.Config) (list []checkedModel) {
	set := make(providers.Set)
	addProviders(set, c)
	for _, model := range c.Models() {
		p, name, err := set.Split(model)
		if asked, ok := p.(*openai.Provider); ok && err == nil {
			server, api := asked.Speaks(name)
			list = append(list, checkedModel{model, server, api})
		}
	}
	return list
}

// keyProblem returns what is wrong with a key, at its place: in the file, or where the
// flag or the environment names it.
func keyProblem(keyFile string, c *config.Config, err error) error {
	p := config.Problem{File: c.File, Line: c.Encryption.Line, Col: c.Encryption.Col, What: err.Error(), Do: "write 32 bytes in hex or base64, to a file that this user may read"}
	switch {
	case keyFile != "":
		p.File, p.Line, p.Col = "--key-file", 0, 0
	case p.Line == 0:
		p.File = keyVariable
	}
	return config.Problems{p}
}

// runnable makes a tool of a program that is there.
func runnable(c toolbox.CommandConfig) (tool.Tool, error) {
	t, err := toolbox.Command(c)
	if err == nil {
		_, err = c.Program()
	}
	return t, err
}

func counted(what string, names []string) string {
	switch len(names) {
	case 0:
		return "no " + what + "s"
	case 1:
		return what + " " + names[0]
	}
	return fmt.Sprintf("%d %ss (%s)", len(names), what, strings.Join(names, ", "))
}

// problems returns err, or what it means for the exit code once its problems are written as JSON.
func (a *app) problems(file string, err error) error {
	result := checked{File: file}
	if !a.json() || !errors.As(err, &result.Problems) {
		return err
	}
	if err := a.object(result); err != nil {
		return err
	}
	return silent(exitFailed)
}
