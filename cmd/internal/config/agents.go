package config

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

func (r *reader) agents(n *node) {
	r.entries(n, "agents", func(f field) {
		if err := messages.ValidateToken("agent name", f.name); err != nil {
			r.add(f.at, "rename the agent: its name is part of addresses", "%v", err)
		}
		r.places[spot("agent", f.name)] = f.at
		r.config.Agents = append(r.config.Agents, r.agent(f))
	})
}

// maxPayload is the largest number of bytes that a limit of payloads may be.
const maxPayload = 1 << 30

func (r *reader) agent(f field) AgentConfig {
	a := AgentConfig{Definition: actors.Definition{Kind: f.name}}
	var choice, stops *node
	var costs []*node
	owner := titled("agent", f.name)
	r.fields(f.value, &agentKeys, owner, map[string]func(*node){
		"model":            func(n *node) { a.Model = r.model(n) },
		"models":           func(n *node) { r.modelList(n, &a) },
		"instructions":     r.line("instructions", &a.Instructions),
		"tools":            func(n *node) { r.agentTools(n, &a) },
		"tool_choice":      func(n *node) { choice = n },
		"stop_on":          func(n *node) { stops = n },
		"approval_timeout": r.duration("approval_timeout", &a.ApprovalTimeout),
		"prompt_approves":  func(n *node) { a.PromptApproves = new(bool); r.flag("prompt_approves", a.PromptApproves)(n) },
		"max_steps":        r.count("max_steps", &a.MaxSteps),
		"max_queue":        r.countTo(actors.MostQueued, "max_queue", &a.MaxQueue),
		"max_attempts":     r.count("max_attempts", &a.MaxAttempts),
		"parallel":         r.count("parallel", &a.Parallel),
		"show_at_most":     r.countTo(maxPayload, "show_at_most", &a.ShowAtMost),
		"budget":           func(n *node) { costs = r.budget(n, &a) },
		"when_reached": func(n *node) {
			s, _ := r.word(n, "when_reached", []string{"fail", "pause"})
			a.PauseAtLimit = s == "pause"
		},
		"compact":  func(n *node) { r.compact(n, &a) },
		"settings": func(n *node) { a.Settings = r.settings(n) },
		"retain":   func(n *node) { r.retain(n, &a) },
	})
	r.hasModel(f, owner)
	r.choices(choice, stops, &a)
	for _, n := range costs {
		r.costs = append(r.costs, costly{n.at, a.Definition})
	}
	return a
}

// hasModel holds that an agent says once which models it uses.
func (r *reader) hasModel(f field, owner string) {
	if f.value.kind != mapping && f.value.kind != empty {
		return
	}
	one, several := f.value.get("model"), f.value.get("models")
	switch {
	case one == nil && several == nil:
		r.add(f.at, "add model: provider/name, such as openai/gpt-5.5, or demo/demo to try without a key", "%s has no model", owner)
	case one != nil && several != nil:
		r.add(several.at, "keep models, with the one to begin with first", "%s has both model and models", owner)
	}
}

// modelList reads the model to begin with and those that take its place.
func (r *reader) modelList(n *node, a *AgentConfig) {
	const example = "[openai/gpt-5.5, openai/gpt-5.5-mini]"
	if n.kind != list {
		r.list(n, "models", example, nil)
		if n.kind == empty {
			r.add(n.at, "write a list, such as "+example, "models names no model")
		}
		return
	}
	var names []string
	for _, item := range n.items {
		name := r.listedModel(item, a)
		if name != "" && slices.Contains(names, name) {
			r.add(item.at, "keep one of them", "model %s is listed twice", shown(item.text))
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		r.add(n.at, "write a list, such as "+example, "models names no model")
		return
	}
	a.Model, a.Fallbacks = names[0], names[1:]
	if len(a.Fallbacks) == 0 {
		a.Fallbacks = nil
	}
}

// listedModel reads an entry of models: a name, or a model with settings of its own.
func (r *reader) listedModel(n *node, a *AgentConfig) (name string) {
	if n.kind != mapping {
		return r.model(n)
	}
	var own *node
	r.fields(n, &modelKeys, "an entry of models", map[string]func(*node){
		"model":    func(n *node) { name = r.model(n) },
		"settings": func(n *node) { own = n },
	})
	switch {
	case n.get("model") == nil:
		r.add(n.at, "write {model: provider/name, settings: {…}}", "an entry of models has no model")
	case own != nil:
		if a.ModelSettings == nil {
			a.ModelSettings = make(map[string]providers.Settings)
		}
		a.ModelSettings[name] = r.settings(own)
	}
	return name
}

// choices reads what an agent must do with its tools.
func (r *reader) choices(choice, stops *node, a *AgentConfig) {
	if choice != nil {
		if s, ok := r.text(choice, "tool_choice"); ok && s != "auto" {
			words := append([]string{"auto", "required", "none"}, a.Tools...)
			switch {
			case !slices.Contains(words, s):
				r.add(choice.at, meant(s, words, "values of tool_choice"), "tool_choice is %s, which the agent does not have", shown(choice.text))
			case s == "required" && len(a.Tools)+len(a.MCP) == 0:
				r.add(choice.at, "add tools, or remove tool_choice", "tool_choice is required, and the agent has no tools")
			}
			a.ToolChoice = s
		}
	}
	if stops == nil {
		return
	}
	r.list(stops, "stop_on", "[submit]", func(item *node, name string) {
		switch {
		case !slices.Contains(a.Tools, name):
			r.add(item.at, meant(name, a.Tools, "tools of the agent"), "stop_on names %s, which is no tool of the agent", shown(item.text))
		case slices.Contains(a.StopOn, name):
			r.add(item.at, "keep one of them", "tool %s is listed twice", shown(item.text))
		default:
			a.StopOn = append(a.StopOn, name)
		}
	})
}

// model checks the form of a model's name; whether its provider exists is seen
// when the providers are read.
func (r *reader) model(n *node) string {
	s, ok := r.text(n, "model")
	if !ok {
		return ""
	}
	provider, name, ok := strings.Cut(s, "/")
	const do = "write provider/model, such as openai/gpt-5.5"
	switch {
	case !ok || provider == "":
		r.add(n.at, do, "model %s names no provider", shown(n.text))
		return ""
	case name == "":
		r.add(n.at, do, "model %s names only a provider", shown(n.text))
		return ""
	}
	r.models = append(r.models, use{provider, n})
	return s
}

// agentTools reads names of tools, and entries with the tools of MCP servers.
func (r *reader) agentTools(n *node, a *AgentConfig) {
	named := *n
	named.items = slices.DeleteFunc(slices.Clone(n.items), func(item *node) bool { return item.kind == mapping })
	for _, item := range n.items {
		if item.kind == mapping {
			r.mcpUse(item, a)
		}
	}
	r.list(&named, "tools", "[clock, calculator]", func(item *node, name string) {
		key := spot("name", a.Kind, name)
		if first, twice := r.places[key]; twice {
			r.add(item.at, "keep one of them", "tool %s is listed twice, first in line %d", shown(item.text), first.line)
			return
		}
		r.places[key] = item.at
		a.Tools = append(a.Tools, name)
	})
}

// spot is the key of a place, by which it is found again when the file is read.
func spot(words ...string) string { return strings.Join(words, "\x00") }
