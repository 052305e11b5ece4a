package actors

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Definition is what all agents of a kind have in common. The zero value of
// every limit is its default.
type Definition struct {
	// Kind is the name that addresses use; a token as in messages.ValidateToken.
	Kind string `json:"kind"`
	// Model is provider/model, such as openai/gpt-5.5.
	Model string `json:"model"`
	// Fallbacks are asked in order, for the rest of a turn, when a model has
	// failed and is not tried again. Each is provider/model.
	Fallbacks []string `json:"fallbacks,omitempty"`
	// Instructions come before the history in every model call.
	Instructions string      `json:"instructions"`
	Tools        []tool.Tool `json:"-"`
	// Sources have further tools, which may come and go while the runtime watches them
	// ([Runtime.Watch]): a turn has those that there are when it begins. An agent that is loaded in the
	// middle of a turn continues with those that there are then. StopOn and ToolChoice name none
	// of them. A name that several have, or one of Tools, belongs to none of them.
	Sources  []tool.Source      `json:"-"`
	Settings providers.Settings `json:"settings,omitzero"`
	// ModelSettings are settings of single models, by provider/model, and come before
	// Settings. What a fallback's provider refuses it does not take from Settings, nor ExtraBody,
	// which only the server of Model is known to accept.
	ModelSettings map[string]providers.Settings `json:"model_settings,omitempty"`
	// MaxSteps is how many model calls a turn may make. Default 20.
	MaxSteps int `json:"max_steps"`
	// MaxQueue is how many inputs may wait behind the running turn, at most 2,000. Default 1000.
	MaxQueue int `json:"max_queue"`
	// MaxAttempts is how often a model call that fails for a passing reason is
	// tried in all. Default 5.
	MaxAttempts int `json:"max_attempts"`
	// Parallel is how many tools of one step may run at once. Default 8.
	Parallel int `json:"parallel"`
	// ToolChoice makes a turn use a tool before it answers: required for any, or
	// the name of one. none forbids tools. Empty or auto: the model chooses.
	ToolChoice string `json:"tool_choice,omitempty"`
	// StopOn are tools whose result is the turn's output.
	StopOn []string `json:"stop_on,omitempty"`
	// ApprovalTimeout denies a call that no one has decided about; a tool's own
	// comes first. Zero: it waits forever.
	ApprovalTimeout time.Duration `json:"approval_timeout,omitempty"`
	// TurnLimits bound a turn beside MaxSteps; AgentLimits bound all turns of an
	// agent together. Zero values are no limit. A limit of cost does
	// not count models that Config.Prices does not list; see ValidatePrices. Before each model call what it is expected to use
	// is reserved: its input by size, its answer by the MaxOutputTokens of its model;
	// where that is zero an answer may exceed the limit by its own length.
	TurnLimits  messages.Limits `json:"turn_limits,omitzero"`
	AgentLimits messages.Limits `json:"agent_limits,omitzero"`
	// ShowAtMost is how many bytes a model is shown of a text that is kept beside
	// the log, because it was too large for it. Of a longer one it is shown the
	// first three quarters and the last quarter of as many bytes, with a line
	// between them that names how much is left out. Zero: projections.DefaultShow, 1 MiB.
	// Of all such texts of one request together it is shown at most 32 MiB, or
	// ShowAtMost if that is more: the newest ones, and 4 KiB of each older one.
	ShowAtMost int `json:"show_at_most,omitempty"`
	// PauseAtLimit makes a turn that reaches a limit, MaxSteps included, wait for
	// a person; else it fails. Either can be resumed with higher ones.
	PauseAtLimit bool `json:"pause_at_limit,omitempty"`
	// Compact is when and how what a model sees of the past is made shorter.
	Compact Compaction `json:"compact,omitzero"`
	// Retain is how long an agent may have nothing to do and nothing to wait
	// for before it is archived and deleted, from its newest event on. Zero: forever.
	// A new owner of an idle agent writes none. An agent whose turn waits for a person
	// has something to do: ApprovalTimeout bounds that. Forks, and agents with forks, stay.
	Retain time.Duration `json:"-"`
	// Hooks are asked at points of every turn.
	Hooks []Hook `json:"-"`
}

// The defaults of a Definition's limits.
const (
	DefaultMaxSteps    = 20
	DefaultMaxQueue    = 1000
	DefaultMaxAttempts = 5
	DefaultParallel    = 8
)

// withDefaults returns d with every zero limit replaced by its default.
func (d Definition) withDefaults() Definition {
	d.MaxSteps = cmp.Or(d.MaxSteps, DefaultMaxSteps)
	d.MaxQueue = cmp.Or(d.MaxQueue, DefaultMaxQueue)
	d.MaxAttempts = cmp.Or(d.MaxAttempts, DefaultMaxAttempts)
	d.Parallel = cmp.Or(d.Parallel, DefaultParallel)
	return d
}

// stored is a definition as it is stored under its hash: what is not in Definition's JSON is
// added.
type stored struct {
	Definition
	Tools []storedTool `json:"tools,omitempty"`
	Hooks []string     `json:"hooks,omitempty"` // names, as they are asked
	// Around are those of Hooks that wrap calls of models.
	Around []string `json:"around,omitempty"`
	// Refused are the settings of the definition that a model is not sent, because its provider
	// refuses them.
	Refused map[string][]string `json:"refused,omitempty"`
}

type storedTool struct {
	tool.Spec
	Agent       string `json:"agent,omitempty"` // the kind of agent that the tool is
	Detached    bool   `json:"detached,omitempty"`
	MaxChildren int    `json:"max_children,omitempty"`
}

// encode returns the definition as it is stored, with all that its requests are made of; equal
// definitions have equal bytes.
func (d Definition) encode(set providers.Set) ([]byte, error) {
	s := stored{Definition: d}
	for _, h := range sortHooks(d.Hooks) {
		if s.Hooks = append(s.Hooks, h.Name); h.AroundModel != nil {
			s.Around = append(s.Around, h.Name)
		}
	}
	for _, m := range append(d.models(), d.Compact.Model) {
		s.refuse(set, m)
	}
	for _, t := range d.Tools {
		spec := storedTool{Spec: t.Spec()}
		spec.OnUnknown = onUnknown(spec.Spec)
		if child, ok := t.(*AgentTool); ok {
			spec.OnUnknown, spec.Agent, spec.Detached, spec.MaxChildren = "", child.kind, child.detached, child.maxChildren
		}
		s.Tools = append(s.Tools, spec)
	}
	return json.Marshal(s)
}

// refuse adds the settings that a model is not sent. A model that no provider has is found later.
func (s *stored) refuse(set providers.Set, model string) {
	provider, name, err := set.Split(model)
	if err != nil || model == s.Model {
		return
	}
	_, refused := s.settings(provider, model, name)
	refused = slices.DeleteFunc(slices.Clone(refused), func(name string) bool { return !slices.Contains(s.Settings.Names(), name) })
	if len(refused) == 0 {
		return
	}
	if s.Refused == nil {
		s.Refused = make(map[string][]string)
	}
	s.Refused[model] = slices.Sorted(slices.Values(refused))
}

// onUnknown returns the tool's OnUnknown, never its zero value.
func onUnknown(s tool.Spec) tool.OnUnknown { return cmp.Or(s.OnUnknown, tool.Pause) }

func (d Definition) models() []string { return append([]string{d.Model}, d.Fallbacks...) }
