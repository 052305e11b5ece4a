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
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/tool"
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
	// RetainTo is the folder that agents are archived in before they are deleted.
	// Empty: archive, below the data folder.
	RetainTo string

	places map[string]place // where tools are declared and named
}

// AgentConfig is one entry of agents. A zero limit was not written.
type AgentConfig struct {
	Kind string
	// Model is provider/model: model, or the first of models.
	Model string
	// Fallbacks are the rest of models, in order: one takes over for the rest of
	// a turn when those before it have failed for good.
	Fallbacks    []string
	Instructions string
	// Tools are names: of ToolConfigs or of built-in tools.
	Tools []string
	// MCP are further tools, those of servers.
	MCP []MCPUse
	// ToolChoice is required (some tool), none, or the name of one of Tools,
	// until a tool was used in the turn. Empty, or written as auto: the model
	// chooses.
	ToolChoice string
	// StopOn are those of Tools whose result ends the turn as its output.
	StopOn []string
	// ApprovalTimeout denies calls that nobody has decided about, where their
	// tool does not say. Zero: they wait.
	ApprovalTimeout time.Duration
	Settings        providers.Settings
	// ModelSettings are those of single models, by provider/model.
	ModelSettings map[string]providers.Settings
	MaxSteps      int
	MaxQueue      int
	MaxAttempts   int
	Parallel      int
	// ShowAtMost is how many bytes a model is shown of a text that is too large for
	// the log. Zero: actors.Definition's default.
	ShowAtMost int
	// TurnLimits are budget.turn; the steps of a turn are MaxSteps.
	TurnLimits messages.Limits
	// AgentLimits are budget.agent: for all turns together.
	AgentLimits messages.Limits
	// PauseAtLimit is when_reached: pause. A turn that reaches one of its limits,
	// MaxSteps too, waits for a person to raise it. Otherwise it fails.
	PauseAtLimit bool
	// Compact says when and how what a model sees of the past is made shorter.
	Compact actors.Compaction
	// PromptApproves says whether whoever prompts the agent may decide about its
	// calls that wait for approval. Otherwise only who may publish commands to it
	// decides. Nil: the file does not say.
	PromptApproves *bool
	// Retain is how long an agent may rest before it is archived and deleted. Zero:
	// for ever.
	Retain time.Duration
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
	Name string
	// Agent is the kind of agent that does it; Command is then empty. Without
	// Parameters it has one argument, input.
	Agent string
	// Detached is wait: false: the call does not wait for the agent's answer.
	Detached bool
	// MaxChildren is how many agents a turn may ask before this tool refuses. Zero:
	// messages.MaxChildren.
	MaxChildren int
	// Command is the program and its arguments; a relative program is found
	// from Dir.
	Command     []string
	Description string
	// Parameters is the JSON schema of the arguments: an object.
	Parameters json.RawMessage
	OnUnknown  tool.OnUnknown
	// Reconcile is the program that reports what became of a call, for tool.Reconcile
	// and no other OnUnknown.
	Reconcile []string
	// Approval says which calls wait for a person: those of never (the default),
	// of always, or those that ApproveIf says so of.
	Approval tool.Approval
	// ApproveIf is what approval has in place of never and always: an expression
	// on the arguments, of the language at expr-lang.org, such as
	// args.cents > 5000. Set for tool.Asked and no other; its error, which it
	// gives for arguments that it cannot judge, counts as yes. Safe for concurrent
	// use, and bounded in time whatever the arguments.
	ApproveIf func(arguments json.RawMessage) (bool, error) `json:"-"`
	// ApproveRepeats wants approval also for a call with the arguments of another one in
	// the same turn. OnUnknown is tool.Pause or tool.Rerun.
	ApproveRepeats bool
	// ApprovalTimeout denies a call that nobody has decided about. Zero: the
	// agent's.
	ApprovalTimeout time.Duration
	// KeyField is a field that is added to the arguments on standard input and
	// holds the idempotency key. The model is not told of it. Empty: none.
	KeyField string
	// Timeout ends a call that takes longer. Zero: tool.DefaultTimeout.
	Timeout time.Duration
	// MaxOutput is the most bytes of output. Zero: toolbox.DefaultMaxOutput.
	MaxOutput int
	// Env is set on top of what the program inherits; see toolbox.CommandConfig.
	Env map[string]Secret
	// Dir is where the program runs: the folder of the file, or dir seen from it.
	Dir string
}

// ProviderConfig is one entry of providers.
type ProviderConfig struct {
	Name string
	// Type is openai.
	Type string
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
	// Used says whether an agent names a model of this provider. Only then is
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
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, os.LookupEnv)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Problems{{File: path, What: "there is no such file", Do: "give the path of a reprise.yaml"}}
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, Problems{{File: path, What: "this is a folder, not a file", Do: "give the path of a reprise.yaml"}}
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

// Parse reads data, which stands in a file called name, with the variables that
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
