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
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		In         struct {
			Cached     int `json:"cached_tokens"`
			CacheWrite int `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Hit    int `json:"prompt_cache_hit_tokens"` // DeepSeek
		Cached int `json:"cached_tokens"`           // Kimi
		Number int `json:"num_cached_tokens"`       // Mistral
	}
	if wire.Null(value) || json.Unmarshal(value, &u) != nil {
		return
	}
	output, reasoning := u.Completion, u.Out.Reasoning
	if beside := u.Total - u.Prompt - u.Completion; beside > 0 && a.rules.Output == profile.Total {
		output += beside
		reasoning = max(reasoning, beside)
	}
	a.usage = messages.Usage{
		Input: cmp.Or(u.Prompt, a.usage.Input), Output: cmp.Or(output, a.usage.Output),
		Cached:    cmp.Or(max(u.In.Cached, u.Hit, u.Cached, u.Number), a.usage.Cached),
		Reasoning: cmp.Or(reasoning, a.usage.Reasoning), CacheWrite: cmp.Or(u.In.CacheWrite, a.usage.CacheWrite),
	}
}
