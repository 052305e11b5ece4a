package config

import (
	"github.com/reprise-dev/reprise/messages"
)

// compact reads when and how the history is compacted.
func (r *reader) compact(n *node, a *AgentConfig) {
	r.fields(n, &compactKeys, "compact", map[string]func(*node){
		"at_tokens": r.countTo(maxTokenBudget, "at_tokens", &a.Compact.AtTokens),
		"keep":      r.count("keep", &a.Compact.Keep),
		"how": func(n *node) {
			a.Compact.How, _ = r.word(n, "how", []string{messages.CompactSummary, messages.CompactWindow})
		},
		"model":        func(n *node) { a.Compact.Model = r.model(n) },
		"instructions": r.line("instructions", &a.Compact.Instructions),
	})
}
