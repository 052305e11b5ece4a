package actors

import (
	"encoding/json"
	"fmt"

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
	// Instructions come before the history in every model call.
	Instructions string
	Tools        []tool.Tool
	Settings     providers.Settings
	// MaxSteps is how many model calls a turn may make. Default 20.
	MaxSteps int
	// MaxQueue is how many inputs may wait behind the running turn. Default 1000.
	MaxQueue int
	// MaxAttempts is how often a model call that fails for a passing reason is
	// tried in all. Default 5.
	MaxAttempts int
	// Parallel is how many tools of one step may run at once. Default 8.
	Parallel int
}

// The defaults of a Definition's limits.
const (
	DefaultMaxSteps    = 20
	DefaultMaxQueue    = 1000
	DefaultMaxAttempts = 5
	DefaultParallel    = 8
)

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
	if _, _, err := set.Split(d.Model); err != nil {
		return fmt.Errorf("agent %s: %w", d.Kind, err)
	}
	for _, l := range []struct {
		name  string
		value int
	}{{"max_steps", d.MaxSteps}, {"max_queue", d.MaxQueue}, {"max_attempts", d.MaxAttempts}, {"parallel", d.Parallel}} {
		if l.value < 0 {
			return fmt.Errorf("agent %s: %s is %d: it must be positive", d.Kind, l.name, l.value)
		}
	}
	seen := make(map[string]bool)
	for _, t := range d.Tools {
		name := t.Spec().Name
		if name == "" || seen[name] {
			return fmt.Errorf("agent %s: tool %q is named twice or not at all", d.Kind, name)
		}
		seen[name] = true
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
}

type storedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Class       tool.Class      `json:"class"`
	TimeoutMS   int64           `json:"timeout_ms,omitempty"`
}

// encode is the definition as it is stored; equal definitions give equal bytes.
func (d Definition) encode() ([]byte, error) {
	s := stored{
		Kind: d.Kind, Model: d.Model, Instructions: d.Instructions, Settings: d.Settings,
		MaxSteps: d.MaxSteps, MaxQueue: d.MaxQueue, MaxAttempts: d.MaxAttempts, Parallel: d.Parallel,
	}
	for _, t := range d.Tools {
		spec := t.Spec()
		s.Tools = append(s.Tools, storedTool{spec.Name, spec.Description, spec.Parameters, class(spec), spec.Timeout.Milliseconds()})
	}
	return json.Marshal(s)
}

func class(s tool.Spec) tool.Class {
	if s.Class == "" {
		return tool.Once
	}
	return s.Class
}
