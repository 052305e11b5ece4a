package config

import (
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

func (r *reader) agents(n *node) {
	r.entries(n, "agents", func(f field) {
		if err := messages.ValidateToken("agent name", f.name); err != nil {
			r.add(f.at, "rename the agent: its name is part of addresses", "%v", err)
		}
		r.config.Agents = append(r.config.Agents, r.agent(f))
	})
}

func (r *reader) agent(f field) AgentConfig {
	a := AgentConfig{Kind: f.name}
	owner := titled("agent", f.name)
	r.fields(f.value, owner, map[string]func(*node){
		"model":        func(n *node) { a.Model = r.model(n) },
		"instructions": r.line("instructions", &a.Instructions),
		"tools":        func(n *node) { a.Tools = r.toolNames(n, f.name) },
		"max_steps":    r.count("max_steps", &a.MaxSteps),
		"max_queue":    r.count("max_queue", &a.MaxQueue),
		"max_attempts": r.count("max_attempts", &a.MaxAttempts),
		"parallel":     r.count("parallel", &a.Parallel),
		"settings":     func(n *node) { r.settings(n, &a) },
	})
	if (f.value.kind == mapping || f.value.kind == empty) && f.value.get("model") == nil {
		r.add(f.at, "add model: provider/name, such as openai/gpt-5.5, or demo/demo to try without a key", "%s has no model", owner)
	}
	return a
}

// settings are the fields that people look for in the agent itself.
var settings = []string{"temperature", "top_p", "max_output_tokens", "reasoning_effort"}

func (r *reader) settings(n *node, a *AgentConfig) {
	r.fields(n, "settings", map[string]func(*node){
		"temperature":       r.float("temperature", 2, &a.Settings.Temperature),
		"top_p":             r.float("top_p", 1, &a.Settings.TopP),
		"max_output_tokens": r.count("max_output_tokens", &a.Settings.MaxOutputTokens),
		"reasoning_effort":  r.line("reasoning_effort", &a.Settings.ReasoningEffort),
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
	if !ok || provider == "" || name == "" {
		r.add(n.at, "write provider/model, such as openai/gpt-5.5", "model %s names no provider", shown(n.text))
		return ""
	}
	r.models = append(r.models, use{provider, n})
	return s
}

func (r *reader) toolNames(n *node, agent string) []string {
	var names []string
	r.list(n, "tools", "[clock, calculator]", func(item *node, name string) {
		key := namePlace(agent, name)
		if first, twice := r.places[key]; twice {
			r.add(item.at, "keep one of them", "tool %s is listed twice, first in line %d", shown(item.text), first.line)
			return
		}
		r.places[key] = item.at
		names = append(names, name)
	})
	return names
}

func toolPlace(name string) string       { return "tool\x00" + name }
func namePlace(kind, name string) string { return "name\x00" + kind + "\x00" + name }
