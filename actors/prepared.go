package actors

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// definition is a Definition made ready to run.
type definition struct {
	Definition
	turn   turn.Definition
	stored []byte           // as it is stored under its hash
	models map[string]model // by provider/model
	tools  map[string]tool.Tool
	specs  []providers.ToolSpec
	hooks  []Hook // as they are asked
	// reviews reports that hooks or tools are asked about answers before they are recorded.
	reviews bool
}

// around reports whether hooks wrap calls.
func (def *definition) around() bool {
	return has(def.hooks, func(h Hook) bool { return h.AroundModel != nil || h.AroundTool != nil })
}

// afterTool reports whether hooks are asked about results of tools.
func (def *definition) afterTool() bool {
	return has(def.hooks, func(h Hook) bool { return h.AfterTool != nil })
}

// model is where a model is reached.
type model struct {
	provider providers.Provider
	name     string // without the provider
	settings providers.Settings
}

func prepare(ctx context.Context, cfg Config, d Definition) (*definition, error) {
	d = d.withDefaults()
	encoded, err := d.encode(cfg.Providers)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", d.Kind, err)
	}
	digest, err := cfg.Store.PutDefinition(ctx, encoded)
	if err != nil {
		return nil, fmt.Errorf("agent %s: store its definition: %w", d.Kind, err)
	}
	def := &definition{Definition: d, stored: encoded, models: make(map[string]model), tools: make(map[string]tool.Tool), hooks: sortHooks(d.Hooks)}
	maxOutput := make(map[string]int)
	for _, m := range append(d.models(), d.Compact.Model) {
		if m == "" {
			continue
		}
		provider, name, err := cfg.Providers.Split(m)
		if err != nil {
			return nil, err
		}
		settings, _ := d.settings(provider, m, name)
		def.models[m] = model{provider, name, settings}
		maxOutput[m] = settings.MaxOutputTokens
	}
	def.turn = turn.Definition{
		Digest: string(digest), Model: d.Model, Fallbacks: d.Fallbacks, Instructions: string(messages.DigestOf([]byte(d.Instructions))),
		MaxSteps: d.MaxSteps, MaxQueue: d.MaxQueue, MaxAttempts: d.MaxAttempts, Parallel: d.Parallel, ToolChoice: d.choice(),
		TurnLimits: d.TurnLimits, AgentLimits: d.AgentLimits, PauseAtLimit: d.PauseAtLimit, Prices: cfg.Prices,
		Compact:    turn.Compact{AtTokens: d.Compact.AtTokens, Keep: d.Compact.Keep, How: d.Compact.How, Model: d.Compact.Model},
		ShowAtMost: d.show(), Overhead: len(d.Instructions), MaxOutput: maxOutput, Tools: make(map[string]turn.Tool),
	}
	if has(d.Hooks, func(h Hook) bool { return h.TurnStart != nil || h.BeforeModel != nil }) {
		def.turn.Hooks = append(def.turn.Hooks, turn.BeforeModel)
	}
	if has(d.Hooks, func(h Hook) bool { return h.TurnEnd != nil }) {
		def.turn.Hooks = append(def.turn.Hooks, turn.TurnEnd)
	}
	def.reviews = has(d.Hooks, func(h Hook) bool { return h.AfterModel != nil || h.BeforeTools != nil || h.BeforeTool != nil })
	for _, t := range d.Tools {
		def.add(t)
	}
	return def, nil
}

// add makes a tool known to the machine and to models.
func (def *definition) add(t tool.Tool) {
	spec := t.Spec()
	def.tools[spec.Name] = t
	def.specs = append(def.specs, providers.ToolSpec{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters})
	def.turn.Overhead += len(spec.Name) + len(spec.Description) + len(spec.Parameters)
	def.turn.Tools[spec.Name] = asChild(t, turn.Tool{
		OnUnknown: onUnknown(spec), Approval: turn.Approval(spec.Approval), Repeats: spec.ApproveRepeats,
		Expiry: cmp.Or(spec.ApprovalTimeout, def.ApprovalTimeout), Stop: slices.Contains(def.StopOn, spec.Name),
	})
	_, child := t.(*AgentTool)
	def.reviews = def.reviews || child || spec.Approval != tool.Never || spec.ApproveRepeats
}

// choice returns ToolChoice as the machine has it.
func (d Definition) choice() string {
	if d.ToolChoice == "auto" {
		return ""
	}
	return d.ToolChoice
}

// show returns how much of a blob a model is shown by the definition, in bytes.
func (d Definition) show() int { return cmp.Or(d.ShowAtMost, projections.DefaultShow) }
