package providers

import (
	"encoding/json"
	"maps"
	"slices"
)

// Clone returns settings that share nothing with s.
func (s Settings) Clone() Settings {
	s.Temperature, s.TopP = clone(s.Temperature), clone(s.TopP)
	s.PresencePenalty, s.FrequencyPenalty = clone(s.PresencePenalty), clone(s.FrequencyPenalty)
	s.Seed, s.ParallelToolCalls = clone(s.Seed), clone(s.ParallelToolCalls)
	s.Stop, s.HostedTools = slices.Clone(s.Stop), slices.Clone(s.HostedTools)
	for i, t := range s.HostedTools {
		s.HostedTools[i] = slices.Clone(t)
	}
	s.ExtraBody = maps.Clone(s.ExtraBody)
	for name, value := range s.ExtraBody {
		s.ExtraBody[name] = json.RawMessage(slices.Clone(value))
	}
	return s
}

// clone returns a pointer to a copy; nil for nil.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
