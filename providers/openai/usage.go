package openai

import (
	"cmp"
	"encoding/json"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// use reads the usage. Servers that send it more than once count from the start.
func (a *answer) use(value []byte) {
	var u struct {
		Prompt     wire.Count `json:"prompt_tokens"`
		Completion wire.Count `json:"completion_tokens"`
		Total      wire.Count `json:"total_tokens"`
		In         struct {
			Cached     wire.Count `json:"cached_tokens"`
			CacheWrite wire.Count `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Reasoning wire.Count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Hit     wire.Count `json:"prompt_cache_hit_tokens"`     // DeepSeek
		Cached  wire.Count `json:"cached_tokens"`               // Kimi
		Number  wire.Count `json:"num_cached_tokens"`           // Mistral
		Created wire.Count `json:"cache_creation_input_tokens"` // LiteLLM
	}
	_ = json.Unmarshal(value, &u) // members of other types are left out
	output, reasoning := u.Completion, u.Out.Reasoning
	if beside := u.Total - u.Prompt - u.Completion; beside > 0 && u.Prompt > 0 && a.rules.Output == profile.Total {
		output += beside
		reasoning = max(reasoning, beside)
	}
	a.usage = messages.Usage{
		Input: cmp.Or(int(u.Prompt), a.usage.Input), Output: cmp.Or(int(output), a.usage.Output),
		Cached:    cmp.Or(int(max(u.In.Cached, u.Hit, u.Cached, u.Number)), a.usage.Cached),
		Reasoning: cmp.Or(int(reasoning), a.usage.Reasoning), CacheWrite: cmp.Or(int(max(u.In.CacheWrite, u.Created)), a.usage.CacheWrite),
	}
}
