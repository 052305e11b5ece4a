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

// changed is the definition of a fork that differs from that of its kind, and of which definition of
// the kind it was made. The zero value is none.
type changed struct{ of, def *definition }

// defined returns the definition of turns that begin from here on. If that of a fork cannot be stored
// now, it returns the one that the fork has, nil if it has none, and the error.
func (a *agent) defined() (*definition, error) {
	base := a.kind.now.Load()
	if a.state.Forks.Set().IsZero() || base.turn.Unknown() {
		return base, nil
	}
	err := a.redefine(base)
	return a.changed.def, err
}

// redefine makes the definition of a fork with changes of its kind's, unless it was made of that. One
// that cannot be made on this node is like that of a kind that is not defined here.
func (a *agent) redefine(base *definition) error {
	if a.changed.of == base {
		return nil
	}
	def, err := a.kind.change(a.ctx, base.Definition, a.state.Forks.Set())
	if err != nil && messages.AsError(err).Code != messages.Unavailable {
		a.warn("the definition of a fork cannot be made on this node; it begins nothing here", "error", err)
		def, err = undefined.now.Load(), nil
	}
	if err == nil {
		a.changed = changed{base, def}
	}
	return err
}

// with returns the kind's definition with the changes of a fork. Its error is a refusal.
func (k *kind) with(ctx context.Context, set messages.ForkChanges) (*definition, error) {
	base := k.now.Load()
	if set.IsZero() || base.turn.Unknown() {
		return base, nil
	}
	if err := base.lacks(set.Tools); err != nil {
		return nil, messages.Refuse(messages.BadInput, "the fork cannot be made with these changes: %v", err)
	}
	return k.change(ctx, base.Definition, set)
}

// prepareChanged makes a definition ready to run that has the changes of a fork.
func prepareChanged(ctx context.Context, cfg Config, d Definition, set messages.ForkChanges) (*definition, error) {
	d = d.with(set)
	if err := d.Validate(cfg.Providers); err != nil {
		return nil, messages.Refuse(messages.BadInput, "the fork cannot be made with these changes: %v", err)
	}
	def, err := prepare(ctx, cfg, d)
	switch {
	case err != nil && messages.AsError(err).Code == messages.TooLarge:
		return nil, messages.Refuse(messages.TooLarge, "the fork cannot be made with these changes: %v", err)
	case err != nil:
		return nil, messages.Refuse(messages.Unavailable, "the definition of the fork cannot be stored now: %v", err)
	}
	return def, nil
}

// With returns the definition with the changes of a fork. What names a model or a tool that it has no
// more is left out. Changes that name a tool which it does not have are refused.
func (d Definition) With(set messages.ForkChanges) (Definition, error) {
	if err := d.lacks(set.Tools); err != nil {
		return Definition{}, messages.Refuse(messages.BadInput, "the tools cannot be chosen: %v", err)
	}
	return d.with(set), nil
}

// with returns the definition with the changes of a fork, as With does; a chosen tool that its source
// does not have now is left out, too.
func (d Definition) with(set messages.ForkChanges) Definition {
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
	if len(set.Tools) > 0 {
		d.Tools = slices.DeleteFunc(slices.Clone(d.Tools), func(t tool.Tool) bool { return !slices.Contains(set.Tools, t.Spec().Name) })
		d.StopOn = slices.DeleteFunc(slices.Clone(d.StopOn), func(name string) bool { return !slices.Contains(set.Tools, name) })
	}
	return d
}

// lacks returns an error if the definition does not have one of the wanted tools.
func (d Definition) lacks(wanted []string) error {
	var names []string
	for _, t := range d.Tools {
		names = append(names, t.Spec().Name)
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("kind %s has no tool %q: it has %s", d.Kind, name, strings.Join(names, ", "))
		}
	}
	return nil
}
