package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// Config is a whole reprise.yaml that has no mistakes in it. Sections keep the
// order of the file.
type Config struct {
	// File is the name it was read from.
	File      string
	Agents    []AgentConfig
	Tools     []ToolConfig
	Providers []ProviderConfig
	MCP       []MCPConfig
	// Prices are by provider/model. Nil: none are written.
	Prices map[string]messages.Price
	// Encryption says where the wrapping key is. Zero: the file does not say.
	Encryption EncryptionConfig
	// Telemetry says where spans of turns are sent. Zero: the file does not say.
	Telemetry TelemetryConfig
	// RetainTo is the folder that agents are archived in before they are deleted.
	// Empty: archive, below the data folder.
	RetainTo string

	places map[string]place // where tools are declared and named
}

// AgentConfig is one entry of agents. What was not written is zero.
type AgentConfig struct {
	// Definition is the agent without tools, sources and hooks.
	actors.Definition
	// Tools are names: of ToolConfigs or of built-in tools.
	Tools []string
	// MCP are further tools, those of servers.
	MCP []MCPUse
	// PromptApproves reports whether who prompts the agent may decide about its calls that
	// wait for approval. Otherwise only who may publish commands to it decides. Nil: the file
	// does not say.
	PromptApproves *bool
}

// models are all models of the agent, the one to begin with first.
func (a AgentConfig) models() []string {
	list := append([]string{a.Model}, a.Fallbacks...)
	if a.Compact.Model != "" {
		list = append(list, a.Compact.Model)
	}
	return list
}

// Models returns the models of all agents, sorted.
func (c *Config) Models() (models []string) {
	for _, a := range c.Agents {
		models = append(models, a.models()...)
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// ToolConfig is one entry of tools: a program that gets its arguments as JSON on
// standard input and answers on standard output, or an agent.
type ToolConfig struct {
	// CommandConfig is the program, or without Command what an agent has of it: its name,
	// description, parameters and approval. ApproveIf returns an error for arguments that it
	// cannot judge, and ends soon whatever they hold.
	toolbox.CommandConfig `json:"-"`
	// Env is set on top of what the program inherits.
	Env map[string]Secret
	// Agent is the kind of agent that does it; Command is then empty. Without
	// Parameters it has one argument, input.
	Agent string
	// Detached is wait: false: the call does not wait for the agent's answer.
	Detached bool
	// MaxChildren is how many agents a turn may ask before this tool refuses. Zero:
	// messages.MaxChildren.
	MaxChildren int
}

// ProviderConfig is one entry of providers.
type ProviderConfig struct {
	Name string
	// APIKey is empty for a server that wants none.
	APIKey Secret
	// BaseURL is empty for the provider's own.
	BaseURL string
	// Profile is the server that is spoken to. Empty: by the host of BaseURL.
	Profile string
	// Rules come before those of the profile.
	Rules profile.Rules
	// Headers, Query and ExtraBody are part of every request.
	Headers, Query map[string]Secret
	ExtraBody      map[string]json.RawMessage
	// Timeout bounds a call. Zero: no limit.
	Timeout time.Duration
	// Used reports whether an agent names a model of this provider. Only then is
	// the provider sure to have what it needs.
	Used bool
}

// Secret is a text that no log line, error or JSON shows.
type Secret string

// Reveal is the text itself.
func (s Secret) Reveal() string { return string(s) }

// Format shows that there is a secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	if s != "" {
		_, _ = io.WriteString(f, "[secret]")
	}
}

// MarshalText shows that there is a secret.
func (s Secret) MarshalText() ([]byte, error) { return fmt.Append(nil, s), nil }

// DemoProvider is the provider that is always there and needs no key.
const DemoProvider = "demo"

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 1 << 20

// Load reads a file with the variables of the process. Its error is [Problems].
func Load(path string) (*Config, error) {
	data, err := read(path, "give the path of a reprise.yaml")
	if err != nil {
		return nil, err
	}
	return Parse(path, data, os.LookupEnv)
}

// read reads a file; do is what to do if there is none.
func read(path, do string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Problems{{File: path, What: "there is no such file", Do: do}}
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, Problems{{File: path, What: "this is a folder, not a file", Do: do}}
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, nil
}

func unreadable(path string, err error) error {
	if cause := new(fs.PathError); errors.As(err, &cause) {
		err = cause.Err
	}
	return Problems{{File: path, What: "the file cannot be read: " + err.Error(), Do: "check its permissions"}}
}

// Parse reads data, which is in a file called name, with the variables that
// env knows. Its error is [Problems].
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	found := &collector{file: name}
	root := parseYAML(found, data)
	if root == nil {
		return nil, found.err()
	}
	places := make(map[string]place)
	r := &reader{
		collector: found, env: env, lines: splitLines(data),
		config: &Config{File: name, places: places}, places: places,
	}
	r.root(root)
	if err := found.err(); err != nil {
		return nil, err
	}
	return r.config, nil
}
