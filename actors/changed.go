package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// changed is the definition of a fork that differs from that of its kind. The zero value is none.
type changed struct{ of, def *definition }

// defined returns the definition of turns that begin from here on. That of a fork with changes is
// prepared again when its kind's has changed; while that fails, the agent begins nothing.
func (a *agent) defined() *definition {
	base := a.kind.now.Load()
	set := a.state.Forks.Set()
	switch {
	case set.IsZero() || base.turn.Unknown():
		return base
	case a.changed.of == base:
		return a.changed.def
	}
	def, err := a.kind.with(a.ctx, set)
	if err != nil {
		a.warn("the definition of a fork cannot be made; it begins nothing until it can", "error", err)
		return undefined.now.Load()
	}
	a.changed = changed{base, def}
	return def
}

// with returns the kind's definition with the changes of a fork. Its error is a refusal.
func (k *kind) with(ctx context.Context, set messages.ForkChanges) (*definition, error) {
	base := k.now.Load()
	if set.IsZero() || base.turn.Unknown() {
		return base, nil
	}
	return k.change(ctx, base.Definition, set)
}

// prepareChanged makes a definition ready to run that has the changes of a fork.
func prepareChanged(ctx context.Context, cfg Config, d Definition, set messages.ForkChanges) (*definition, error) {
	d, err := d.with(set)
	if err == nil {
		err = d.Validate(cfg.Providers)
	}
	if err != nil {
		return nil, messages.Refuse(messages.BadInput, "the fork cannot be made with these changes: %v", err)
	}
	def, err := prepare(ctx, cfg, d)
	if err != nil {
		return nil, messages.Refuse(messages.Unavailable, "the definition of the fork cannot be stored now: %v", err)
	}
	return def, nil
}

// with returns the definition with the changes of a fork. What names a model or a tool that it has no
// more is left out.
func (d Definition) with(set messages.ForkChanges) (Definition, error) {
	if set.Instructions != nil {
		d.Instructions = *set.Instructions
	}
	if set.Model != "" {
		d.Model = set.Model
		d.Fallbacks = slices.DeleteFunc(slices.Clone(d.Fallbacks), func(m string) bool { return m == set.Model })
		d.ModelSettings = maps.Clone(d.ModelSettings)
		maps.DeleteFunc(d.ModelSettings, func(m string, _ providers.Settings) bool {
			return !slices.Contains(append(d.models(), d.Compact.Model), m)
		})
	}
	if len(set.Tools) == 0 {
		return d, nil
	}
	var tools []tool.Tool
	var names []string
	for _, t := range d.Tools {
		name := t.Spec().Name
		if names = append(names, name); slices.Contains(set.Tools, name) {
			tools = append(tools, t)
		}
	}
	for _, name := range set.Tools {
		if !slices.Contains(names, name) {
			return d, fmt.Errorf("kind %s has no tool %q: it has %s", d.Kind, name, strings.Join(names, ", "))
		}
	}
	d.Tools = tools
	d.StopOn = slices.DeleteFunc(slices.Clone(d.StopOn), func(name string) bool { return !slices.Contains(set.Tools, name) })
	return d, nil
}
