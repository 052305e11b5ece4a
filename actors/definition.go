package actors

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Definition is what all agents of a kind have in common. The zero value of
// every limit is its default.
type Definition struct {
	// Kind is the name that addresses use; a token as in messages.ValidateToken.
	Kind string
	// Model is provider/model, such as openai/gpt-5.5.
	Model string
	// Fallbacks are asked in order, for the rest of a turn, when a model has
	// failed for good. Each is provider/model.
	Fallbacks []string
	// Instructions come before the history in every model call.
	Instructions string
	Tools        []tool.Tool
	// Sources have further tools, which may come and go while the runtime watches them
	// ([Runtime.Watch]): a turn has those that there are when it begins. An agent that is loaded in the
	// middle of a turn goes on with those that there are then. StopOn and ToolChoice name none
	// of them. A name that several have, or one of Tools, belongs to none of them.
	Sources  []tool.Source
	Settings providers.Settings
	// ModelSettings are settings of single models, by provider/model, and come before
	// Settings. What a fallback's provider refuses it does not take from Settings, nor ExtraBody,
	// which only the server of Model is known to accept.
	ModelSettings map[string]providers.Settings
	// MaxSteps is how many model calls a turn may make. Default 20.
	MaxSteps int
	// MaxQueue is how many inputs may wait behind the running turn, at most 2,000. Default 1000.
	MaxQueue int
	// MaxAttempts is how often a model call that fails for a passing reason is
	// tried in all. Default 5.
	MaxAttempts int
	// Parallel is how many tools of one step may run at once. Default 8.
	Parallel int
	// ToolChoice makes a turn use a tool before it answers: required for any, or
	// the name of one. none forbids tools. Empty or auto: the model chooses.
	ToolChoice string
	// StopOn are tools whose result is the turn's output.
	StopOn []string
	// ApprovalTimeout denies a call that nobody has decided about; a tool's own
	// comes first. Zero: it waits for ever.
	ApprovalTimeout time.Duration
	// TurnLimits bound a turn beside MaxSteps; AgentLimits bound all turns of an
	// agent together. Zero values are no limit. A limit of cost holds for models
	// that Config.Prices knows. Before each model call what it is expected to use
	// is reserved: its input by size, its answer by the MaxOutputTokens of its model;
	// where that is zero an answer may exceed the limit by its own length.
	TurnLimits, AgentLimits messages.Limits
	// ShowAtMost is how many bytes a model is shown of a text that is kept beside
	// the log, because it was too large for it. Of a longer one it is shown the
	// first three quarters and the last quarter of as many bytes, with a line
	// between them that says how much is left out. Zero: projections.DefaultShow, 1 MiB.
	// Of all such texts of one request together it is shown at most 32 MiB, or
	// ShowAtMost if that is more: the newest ones, and 4 KiB of each older one.
	ShowAtMost int
	// PauseAtLimit makes a turn that reaches a limit, MaxSteps included, wait for
	// a person; else it fails. Either can be resumed with higher ones.
	PauseAtLimit bool
	// Compact says when and how what a model sees of the past is made shorter.
	Compact Compaction
	// Retain is how long an agent may rest, with nothing to do and nothing to wait
	// for, before it is archived and deleted. Zero: for ever. An owner that takes
	// an agent over counts as a sign of life. One whose turn waits for a person does
	// not rest: ApprovalTimeout bounds that.
	Retain time.Duration
	// Hooks are asked at points of every turn.
	Hooks []Hook
}

// The defaults of a Definition's limits.
const (
	DefaultMaxSteps    = 20
	DefaultMaxQueue    = 1000
	DefaultMaxAttempts = 5
	DefaultParallel    = 8
)

// mostQueued is the largest MaxQueue. Package turn refuses inputs that could not all end in one
// frame: that many with ids as short as they are made here.
const mostQueued = 2000

// withDefaults is d with every zero limit replaced by its default.
func (d Definition) withDefaults() Definition {
	for _, f := range []struct {
		limit *int
		def   int
	}{{&d.MaxSteps, DefaultMaxSteps}, {&d.MaxQueue, DefaultMaxQueue}, {&d.MaxAttempts, DefaultMaxAttempts}, {&d.Parallel, DefaultParallel}} {
		if *f.limit == 0 {
			*f.limit = f.def
		}
	}
	return d
}

// Validate says what is wrong with the definition, by the names that
// reprise.yaml uses.
func (d Definition) Validate(set providers.Set) error {
	if err := messages.ValidateToken("kind", d.Kind); err != nil {
		return err
	}
	if d.Model == "" {
		return fmt.Errorf("agent %s: model is missing: write provider/model, such as openai/gpt-5.5", d.Kind)
	}
	models := d.models()
	for i, model := range models {
		if _, _, err := set.Split(model); err != nil {
			return fmt.Errorf("agent %s: %w", d.Kind, err)
		}
		if slices.Contains(models[:i], model) {
			return fmt.Errorf("agent %s: model %s is listed twice: keep one of them", d.Kind, model)
		}
	}
	for _, l := range []struct {
		name  string
		value int
	}{{"max_steps", d.MaxSteps}, {"max_queue", d.MaxQueue}, {"max_attempts", d.MaxAttempts}, {"parallel", d.Parallel}, {"show_at_most", d.ShowAtMost}} {
		if l.value < 0 {
			return fmt.Errorf("agent %s: %s is %d: it must be positive", d.Kind, l.name, l.value)
		}
	}
	if d.MaxQueue > mostQueued {
		return fmt.Errorf("agent %s: max_queue is %d: write at most %d, for the inputs that wait must be able to end in one frame", d.Kind, d.MaxQueue, mostQueued)
	}
	if err := d.validateSettings(set); err != nil {
		return err
	}
	if err := d.validateLimits(); err != nil {
		return err
	}
	if err := d.validateTools(); err != nil {
		return err
	}
	if err := d.Compact.validate(d.Kind, set); err != nil {
		return err
	}
	return validateHooks(d.Kind, d.Hooks)
}

func (d Definition) models() []string { return append([]string{d.Model}, d.Fallbacks...) }

// validateSettings returns an error for settings of models that the agent does not have, and
// for each of those that a model refuses although they were set for it.
func (d Definition) validateSettings(set providers.Set) error {
	models := append(d.models(), d.Compact.Model)
	for _, model := range slices.Sorted(maps.Keys(d.ModelSettings)) {
		if !slices.Contains(models, model) {
			return fmt.Errorf("agent %s: it has settings for %s, which is none of its models", d.Kind, model)
		}
	}
	if d.Compact.Model == "" {
		models = d.models()
	}
	var found []error
	for _, model := range models {
		p, name, _ := set.Split(model) // it has been checked
		settings, refused := d.settings(p, model, name)
		for _, setting := range settings.Names() {
			if slices.Contains(refused, setting) {
				found = append(found, fmt.Errorf("agent %s: %s refuses or ignores the setting %s: remove it, or set the provider's api if its other API has it", d.Kind, model, setting))
			}
		}
	}
	return errors.Join(found...)
}

// settings returns the settings of a model, and which ones its provider refuses.
func (d Definition) settings(p providers.Provider, model, name string) (s providers.Settings, refused []string) {
	if r, ok := p.(providers.Refuser); ok {
		refused = r.Refuses(name)
	}
	s = d.Settings
	if model != d.Model {
		s = s.Without(refused)
	}
	if provider, _, _ := strings.Cut(d.Model, "/"); !strings.HasPrefix(model, provider+"/") {
		s.ExtraBody = nil
	}
	return d.ModelSettings[model].Or(s), refused
}

func (d Definition) validateLimits() error {
	if d.Retain < 0 {
		return fmt.Errorf("agent %s: retain is %s: it must be positive", d.Kind, d.Retain)
	}
	if d.ApprovalTimeout < 0 {
		return fmt.Errorf("agent %s: approval_timeout is %s: it must be positive", d.Kind, d.ApprovalTimeout)
	}
	if d.TurnLimits.MaxSteps != 0 {
		return fmt.Errorf("agent %s: a turn's steps are limited by max_steps, not by its budget", d.Kind)
	}
	for _, l := range []messages.Limits{d.TurnLimits, d.AgentLimits} {
		if l.MaxSteps < 0 || l.MaxTokens < 0 || l.MaxCost < 0 || l.MaxDuration < 0 {
			return fmt.Errorf("agent %s: a limit of its budget is negative: it must be positive", d.Kind)
		}
	}
	return nil
}

func (d Definition) validateTools() error {
	names := make(map[string]bool)
	for _, t := range d.Tools {
		spec := t.Spec()
		if spec.Name == "" || names[spec.Name] {
			return fmt.Errorf("agent %s: tool %q is named twice or not at all", d.Kind, spec.Name)
		}
		if spec.Name == "auto" || spec.Name == "required" || spec.Name == "none" {
			return fmt.Errorf("agent %s: a tool cannot be named %s: that is a word of tool_choice", d.Kind, spec.Name)
		}
		names[spec.Name] = true
		if _, gated := t.(tool.Gated); spec.Approval == tool.Asked && !gated {
			return fmt.Errorf("agent %s: tool %s says that it is asked which calls want approval, but has no NeedsApproval", d.Kind, spec.Name)
		}
	}
	for _, name := range d.StopOn {
		if !names[name] {
			return fmt.Errorf("agent %s: stop_on names %q, which is none of its tools", d.Kind, name)
		}
	}
	switch d.ToolChoice {
	case "", "auto", "required", "none":
	default:
		if !names[d.ToolChoice] {
			return fmt.Errorf("agent %s: tool_choice %q: write auto, required, none or the name of one of its tools", d.Kind, d.ToolChoice)
		}
	}
	return nil
}

// stored is a definition as it is kept by its hash. Fields are only added.
type stored struct {
	Kind         string             `json:"kind"`
	Model        string             `json:"model"`
	Instructions string             `json:"instructions"`
	Settings     providers.Settings `json:"settings,omitzero"`
	Tools        []storedTool       `json:"tools,omitempty"`
	MaxSteps     int                `json:"max_steps"`
	MaxQueue     int                `json:"max_queue"`
	MaxAttempts  int                `json:"max_attempts"`
	Parallel     int                `json:"parallel"`

	Fallbacks         []string        `json:"fallbacks,omitempty"`
	ToolChoice        string          `json:"tool_choice,omitempty"`
	StopOn            []string        `json:"stop_on,omitempty"`
	ApprovalTimeoutMS int64           `json:"approval_timeout_ms,omitempty"`
	TurnLimits        messages.Limits `json:"turn_limits,omitzero"`
	AgentLimits       messages.Limits `json:"agent_limits,omitzero"`
	PauseAtLimit      bool            `json:"pause_at_limit,omitempty"`
	Hooks             []string        `json:"hooks,omitempty"` // names, as they are asked
	Compact           Compaction      `json:"compact,omitzero"`
	ShowAtMost        int             `json:"show_at_most,omitempty"`

	ModelSettings map[string]providers.Settings `json:"model_settings,omitempty"`
}

type storedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	OnUnknown   tool.OnUnknown  `json:"on_unknown,omitempty"` // of all but agents
	TimeoutMS   int64           `json:"timeout_ms,omitempty"`

	Approval          tool.Approval `json:"approval,omitempty"`
	ApproveRepeats    bool          `json:"approve_repeats,omitempty"`
	ApprovalTimeoutMS int64         `json:"approval_timeout_ms,omitempty"`

	Agent       string `json:"agent,omitempty"` // the kind that does it
	Detached    bool   `json:"detached,omitempty"`
	MaxChildren int    `json:"max_children,omitempty"`
}

// encode is the definition as it is stored; equal definitions give equal bytes.
func (d Definition) encode() ([]byte, error) {
	s := stored{
		Kind: d.Kind, Model: d.Model, Instructions: d.Instructions, Settings: d.Settings,
		MaxSteps: d.MaxSteps, MaxQueue: d.MaxQueue, MaxAttempts: d.MaxAttempts, Parallel: d.Parallel,
		Fallbacks: d.Fallbacks, ToolChoice: d.ToolChoice, StopOn: d.StopOn, ApprovalTimeoutMS: d.ApprovalTimeout.Milliseconds(),
		TurnLimits: d.TurnLimits, AgentLimits: d.AgentLimits, PauseAtLimit: d.PauseAtLimit, Compact: d.Compact,
		ShowAtMost: d.ShowAtMost, ModelSettings: d.ModelSettings,
	}
	for _, h := range sortHooks(d.Hooks) {
		s.Hooks = append(s.Hooks, h.Name)
	}
	for _, t := range d.Tools {
		spec := t.Spec()
		kept := storedTool{
			Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters, OnUnknown: onUnknown(spec), TimeoutMS: spec.Timeout.Milliseconds(),
			Approval: spec.Approval, ApproveRepeats: spec.ApproveRepeats, ApprovalTimeoutMS: spec.ApprovalTimeout.Milliseconds(),
		}
		if child, ok := t.(*AgentTool); ok {
			kept.OnUnknown, kept.Agent, kept.Detached, kept.MaxChildren = "", child.kind, child.detached, child.maxChildren
		}
		s.Tools = append(s.Tools, kept)
	}
	return json.Marshal(s)
}

// onUnknown returns the tool's OnUnknown, never its zero value.
func onUnknown(s tool.Spec) tool.OnUnknown {
	if s.OnUnknown == "" {
		return tool.Pause
	}
	return s.OnUnknown
}
