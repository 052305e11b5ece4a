package config

import (
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// limits are the fields of a budget that people look for in the agent itself.
var limits = []string{"max_tokens", "max_cost", "max_duration"}

// What a budget can be at most.
const (
	maxTokenBudget = 1_000_000_000
	maxMoney       = 1e9
	maxPrice       = 1e6 // for a million tokens
)

// budget reads the limits of a turn and of all turns together. It returns the places of the
// limits in money.
func (r *reader) budget(n *node, a *AgentConfig) []*node {
	var costs []*node
	part := func(name string, keys *section, into *messages.Limits) func(*node) {
		return func(n *node) {
			readers := map[string]func(*node){ // of which keys has max_steps for an agent alone
				"max_steps":    r.countTo(maxTokenBudget, "max_steps", &into.MaxSteps),
				"max_tokens":   r.countTo(maxTokenBudget, "max_tokens", &into.MaxTokens),
				"max_cost":     func(n *node) { r.cost(n, &into.MaxCost); costs = append(costs, n) },
				"max_duration": func(n *node) { r.lasting(n, &into.MaxDuration) },
			}
			r.fields(n, keys, "budget "+name, readers)
		}
	}
	r.fields(n, &budgetKeys, "budget", map[string]func(*node){
		"turn":  part("turn", &turnBudgetKeys, &a.TurnLimits),
		"agent": part("agent", &agentBudgetKeys, &a.AgentLimits),
	})
	return costs
}

func (r *reader) cost(n *node, into *messages.Cost) {
	before := len(r.found)
	var amount float64
	r.amount("max_cost", maxMoney, &amount)(n)
	*into = messages.CostOf(amount)
	if *into == 0 && len(r.found) == before && n.kind != noted {
		r.add(n.at, "write at least 0.000000001, or remove the line for no limit", "max_cost is too small")
	}
}

func (r *reader) lasting(n *node, into *int64) {
	var d time.Duration
	r.duration("max_duration", &d)(n)
	if *into = d.Milliseconds(); d > 0 && *into == 0 {
		r.add(n.at, "write at least 1ms", "max_duration is too short")
	}
}

// costly is a limit in money of an agent.
type costly struct {
	at    place
	agent actors.Definition
}

// prices reads the price table, then holds the agents' limits against it: one
// whose model has no price could never be reached.
func (r *reader) prices(n *node) {
	if n != nil {
		r.entries(n, "prices", func(f field) {
			if r.config.Prices == nil {
				r.config.Prices = make(map[string]messages.Price)
			}
			r.config.Prices[f.name] = r.price(f)
		})
	}
	for _, c := range r.costs {
		for _, model := range c.agent.Unpriced(r.config.Prices) {
			r.add(c.at, "add prices: {"+r.written(model)+": {input: …, output: …}}, in money for a million tokens",
				"max_cost cannot be enforced: the model %s has no price", r.named(model))
		}
	}
}

// named is a model as a problem shows it, and written as advice does: not where
// it came from a variable.
func (r *reader) named(model string) string {
	for _, m := range r.models {
		if m.model.text == model {
			return shown(model)
		}
	}
	return "that a variable names"
}

func (r *reader) written(model string) string {
	if name, ok := strings.CutPrefix(r.named(model), `"`); ok {
		return strings.TrimSuffix(name, `"`)
	}
	return "provider/model"
}

func (r *reader) price(f field) messages.Price {
	var p messages.Price
	var cached, written float64
	owner := "the price of " + shown(f.name)
	provider, name, ok := strings.Cut(f.name, "/")
	known := provider == DemoProvider || slices.ContainsFunc(r.config.Providers, func(c ProviderConfig) bool { return c.Name == provider })
	switch {
	case !ok || provider == "" || name == "":
		r.add(f.at, "write provider/model, such as openai/gpt-5.5", "%s names no model", owner)
	case !known:
		r.add(f.at, "name a provider of the file, or remove the price", "%s names an unknown provider", owner)
	}
	r.fields(f.value, &priceKeys, owner, map[string]func(*node){
		"input":       r.amount("input", maxPrice, &p.Input),
		"output":      r.amount("output", maxPrice, &p.Output),
		"cached":      func(n *node) { r.amount("cached", maxPrice, &cached)(n); p.Cached = &cached },
		"cache_write": func(n *node) { r.amount("cache_write", maxPrice, &written)(n); p.CacheWrite = &written },
	})
	if f.value.kind != mapping && f.value.kind != empty {
		return p
	}
	for _, name := range []string{"input", "output"} {
		if f.value.get(name) == nil {
			r.add(f.at, "add "+name+": what a million tokens cost, or 0", "%s has no %s", owner, name)
		}
	}
	return p
}
