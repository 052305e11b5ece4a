package actors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// MostQueued is the largest MaxQueue. Package turn refuses inputs that could not all end in one
// frame: that many with ids as short as they are made here.
const MostQueued = 2000

// Validate returns what is wrong with the definition, in the names of reprise.yaml.
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
			return fmt.Errorf("agent %s: %s is %d: it must not be negative", d.Kind, l.name, l.value)
		}
	}
	if d.MaxQueue > MostQueued {
		return fmt.Errorf("agent %s: max_queue is %d: write at most %d, for the inputs that wait must be able to end in one frame", d.Kind, d.MaxQueue, MostQueued)
	}
	for _, validate := range []func(providers.Set) error{d.validateSettings, d.validateLimits, d.validateTools, d.validateCompact, d.validateHooks} {
		if err := validate(set); err != nil {
			return err
		}
	}
	return nil
}

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
	return d.settingsWithout(model, refused), refused
}

// settingsWithout returns the settings of a model whose provider refuses some.
func (d Definition) settingsWithout(model string, refused []string) providers.Settings {
	s := d.Settings
	if model != d.Model {
		s = s.Without(refused)
	}
	if provider, _, _ := strings.Cut(d.Model, "/"); !strings.HasPrefix(model, provider+"/") {
		s.ExtraBody = nil
	}
	return d.ModelSettings[model].Or(s)
}

func (d Definition) validateLimits(providers.Set) error {
	if d.Retain < 0 {
		return fmt.Errorf("agent %s: retain is %s: it must not be negative", d.Kind, d.Retain)
	}
	if d.ApprovalTimeout < 0 {
		return fmt.Errorf("agent %s: approval_timeout is %s: it must not be negative", d.Kind, d.ApprovalTimeout)
	}
	if d.TurnLimits.MaxSteps != 0 {
		return fmt.Errorf("agent %s: a turn's steps are limited by max_steps, not by its budget", d.Kind)
	}
	for _, l := range []messages.Limits{d.TurnLimits, d.AgentLimits} {
		if l.MaxSteps < 0 || l.MaxTokens < 0 || l.MaxCost < 0 || l.MaxDuration < 0 {
			return fmt.Errorf("agent %s: a limit of its budget is negative: write 0 for no limit", d.Kind)
		}
	}
	return nil
}

// ValidatePrices returns an error if a limit of cost could not be enforced, because prices does not list one
// of the models.
func (d Definition) ValidatePrices(prices map[string]messages.Price) error {
	if d.TurnLimits.MaxCost == 0 && d.AgentLimits.MaxCost == 0 {
		return nil
	}
	if unpriced := d.Unpriced(prices); len(unpriced) > 0 {
		return fmt.Errorf("agent %s: max_cost cannot be enforced: the model %s has no price", d.Kind, unpriced[0])
	}
	return nil
}

// Unpriced returns the models, with that of summaries, that prices does not list.
func (d Definition) Unpriced(prices map[string]messages.Price) []string {
	return slices.DeleteFunc(append(d.models(), d.Compact.Model), func(model string) bool {
		_, ok := prices[model]
		return ok || model == ""
	})
}

func (d Definition) validateTools(providers.Set) error {
	words := []string{"auto", "required", "none"} // of tool_choice
	names := make(map[string]bool)
	for i, t := range d.Tools {
		if t == nil {
			return fmt.Errorf("agent %s: tool %d is nil", d.Kind, i+1)
		}
		spec := t.Spec()
		switch {
		case spec.Name == "":
			return fmt.Errorf("agent %s: tool %d has no name", d.Kind, i+1)
		case names[spec.Name]:
			return fmt.Errorf("agent %s: two tools are named %q: rename one of them", d.Kind, spec.Name)
		case slices.Contains(words, spec.Name):
			return fmt.Errorf("agent %s: a tool cannot be named %s: that is a word of tool_choice", d.Kind, spec.Name)
		}
		names[spec.Name] = true
		if err := validateRules(t, spec); err != nil {
			return fmt.Errorf("agent %s: tool %s: %w", d.Kind, spec.Name, err)
		}
	}
	for _, name := range d.StopOn {
		if !names[name] {
			return fmt.Errorf("agent %s: stop_on names %q, which is none of its tools", d.Kind, name)
		}
	}
	if c := d.ToolChoice; c != "" && !names[c] && !slices.Contains(words, c) {
		return fmt.Errorf("agent %s: tool_choice %q: write auto, required, none or the name of one of its tools", d.Kind, c)
	}
	return nil
}

// validateRules checks a tool's settings for unknown outcomes and approvals.
func validateRules(t tool.Tool, spec tool.Spec) error {
	switch spec.OnUnknown {
	case "", tool.ReadOnly, tool.Rerun, tool.Reconcile, tool.Pause:
	default:
		return fmt.Errorf("on_unknown %q: write %s, %s, %s or %s", spec.OnUnknown, tool.ReadOnly, tool.Rerun, tool.Reconcile, tool.Pause)
	}
	switch _, gated := t.(tool.Gated); {
	case spec.OnUnknown == tool.Reconcile && !tool.Reconciles(t):
		return errors.New("its on_unknown is reconcile, but it has no method Reconcile and no function of ReconcileWith")
	case !slices.Contains([]tool.Approval{tool.Never, tool.Always, tool.Asked}, spec.Approval):
		return fmt.Errorf("approval %q: leave it empty, or write %s or %s", spec.Approval, tool.Always, tool.Asked)
	case spec.Approval == tool.Asked && !gated:
		return errors.New("its approval is asked, but it has no method NeedsApproval")
	}
	return nil
}

func (d Definition) validateCompact(set providers.Set) error {
	c, kind := d.Compact, d.Kind
	switch {
	case c.AtTokens < 0 || c.Keep < 0:
		return fmt.Errorf("agent %s: at_tokens and keep of compact must not be negative", kind)
	case c.How != "" && c.How != messages.CompactSummary && c.How != messages.CompactWindow:
		return fmt.Errorf("agent %s: compact how %q: write summary or window", kind, c.How)
	}
	if c.Model == "" {
		return nil
	}
	if _, _, err := set.Split(c.Model); err != nil {
		return fmt.Errorf("agent %s: compact: %w", kind, err)
	}
	return nil
}

func (d Definition) validateHooks(providers.Set) error {
	seen := make(map[string]bool)
	for i, h := range d.Hooks {
		if h.Name == "" {
			return fmt.Errorf("agent %s: hook %d has no name", d.Kind, i+1)
		}
		if seen[h.Name] {
			return fmt.Errorf("agent %s: two hooks are named %q: rename one of them", d.Kind, h.Name)
		}
		seen[h.Name] = true
	}
	return nil
}
