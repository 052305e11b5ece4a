package providers

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Settings shape a model's answer. Nil and zero values are the provider's defaults. The JSON
// names are those of a configuration.
type Settings struct {
	Temperature     *float32 `json:"temperature,omitempty"`
	TopP            *float32 `json:"top_p,omitempty"`
	MaxOutputTokens int      `json:"max_output_tokens,omitempty"`
	// Stop are texts that end an answer.
	Stop             []string `json:"stop,omitempty"`
	Seed             *int64   `json:"seed,omitempty"`
	PresencePenalty  *float32 `json:"presence_penalty,omitempty"`
	FrequencyPenalty *float32 `json:"frequency_penalty,omitempty"`
	// ReasoningEffort and Verbosity are words of the model, such as low.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	Verbosity       string `json:"verbosity,omitempty"`
	ServiceTier     string `json:"service_tier,omitempty"`
	// ParallelToolCalls is whether an answer may have more than one call.
	ParallelToolCalls *bool `json:"parallel_tool_calls,omitempty"`
	// CacheKey makes requests with the same key share a prompt cache.
	CacheKey string `json:"cache_key,omitempty"`
	// HostedTools are tools that the server runs, such as {"type": "web_search"}, as its API
	// declares them. Only the Responses API has them.
	HostedTools []json.RawMessage `json:"hosted_tools,omitempty"`
	// ExtraBody are members of the request's JSON. They replace the provider's own.
	ExtraBody map[string]json.RawMessage `json:"extra_body,omitempty"`
}

// Refuser is a Provider that reports which settings a model does not accept.
type Refuser interface {
	// Refuses returns the names of settings that the model of that name, without the
	// provider, refuses or ignores.
	Refuses(model string) []string
}

// SettingNames returns the names of all settings, in the order of the struct.
func SettingNames() (names []string) {
	for f := range reflect.TypeFor[Settings]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// Names returns the names of the settings that are set.
func (s Settings) Names() (names []string) {
	v := reflect.ValueOf(s)
	for i, name := range SettingNames() {
		if !v.Field(i).IsZero() {
			names = append(names, name)
		}
	}
	return names
}

// Or returns s with the settings that are not set taken from t, and so with the members of
// ExtraBody.
func (s Settings) Or(t Settings) Settings {
	v, w := reflect.ValueOf(&s).Elem(), reflect.ValueOf(t)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			v.Field(i).Set(w.Field(i))
		}
	}
	if len(t.ExtraBody) > 0 {
		extra := maps.Clone(t.ExtraBody)
		maps.Copy(extra, s.ExtraBody)
		s.ExtraBody = extra
	}
	return s
}

// Without returns s without the settings of these names.
func (s Settings) Without(names []string) Settings {
	v := reflect.ValueOf(&s).Elem()
	for i, name := range SettingNames() {
		if slices.Contains(names, name) {
			v.Field(i).SetZero()
		}
	}
	return s
}
