package config

import (
	"github.com/reprise-dev/reprise/messages"
)

// compact reads when and how the history is compacted.
func (r *reader) compact(n *node, a *AgentConfig) {
	r.fields(n, "compact", map[string]func(*node){
		"at_tokens":    r.countTo(maxTokenBudget, "at_tokens", &a.Compact.AtTokens),
		"keep":         r.count("keep", &a.Compact.Keep),
		"how":          func(n *node) { r.compactHow(n, a) },
		"model":        func(n *node) { a.Compact.Model = r.model(n) },
		"instructions": r.line("instructions", &a.Compact.Instructions),
	})
}

func (r *reader) compactHow(n *node, a *AgentConfig) {
	s, ok := r.text(n, "how")
	if !ok {
		return
	}
	ways := []string{messages.CompactSummary, messages.CompactWindow}
	if s != ways[0] && s != ways[1] {
		r.add(n.at, meant(s, ways, "values of how"), "how is %s, which is none of the ways to compact", shown(n.text))
		return
	}
	a.Compact.How = s
}
