package profile

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestByURL(t *testing.T) {
	for url, want := range map[string]string{
		"": "openai", "https://api.openai.com/v1": "openai", "https://eu.api.openai.com/v1": "openai", "https://API.Mistral.ai/v1": "mistral",
		"https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/endpoints/openapi": "gemini", "https://me.openai.azure.us/openai/v1": "azure",
		"https://me.openai.azure.com/openai/deployments/d": "azure", "https://generativelanguage.googleapis.com/v1beta/openai": "gemini",
		"https://openrouter.ai/api/v1": "openrouter", "https://api.deepseek.com": "deepseek", "https://api.groq.com/openai/v1": "groq", "https://api.x.ai/v1": "xai", "https://api.anthropic.com/v1": "anthropic",
		"https://notapi.mistral.ai.example.com": Plain, "https://xapi.mistral.ai": Plain, "http://127.0.0.1:11434/v1": Plain, "%": Plain,
	} {
		if got := ByURL(url).Name; got != want {
			t.Errorf("%q is %s, want %s", url, got, want)
		}
	}
	if _, err := ByName("gemeni"); err == nil || !strings.Contains(err.Error(), "openai, azure, gemini") {
		t.Error(err)
	}
}

// Plain has a value for every rule, values are among those that a field may have, and
// patterns are well formed.
func TestRows(t *testing.T) {
	for _, f := range fields {
		if rules := For(Server{}, "", Rules{}); *f.of(&rules) == "" {
			t.Errorf("plain has no %s", f.Name)
		}
	}
	rows := append([]Template{}, templates...)
	for _, s := range servers {
		rows = append(append(rows, s.Models...), Template{Name: s.Name, Rules: s.Rules})
	}
	for _, row := range rows {
		for _, f := range fields {
			if v := *f.of(&row.Rules); v != "" {
				if err := f.Set(&Rules{}, v); err != nil {
					t.Errorf("%s: %v", row.Name, err)
				}
			}
		}
		for _, pattern := range row.Models {
			if _, err := path.Match(pattern, ""); err != nil || strings.ToLower(pattern) != pattern || strings.Contains(pattern, "/") {
				t.Errorf("%s: pattern %q, %v", row.Name, pattern, err)
			}
		}
	}
}

// Values that no request can carry are refused.
func TestSet(t *testing.T) {
	for _, f := range fields {
		for _, bad := range []Value{"", "x y", "stream", "messages", "messages.x", "top_p", "a.b.c", "effort."} {
			if err := f.Set(&Rules{}, bad); err == nil && (f.Name != "key" || bad == "x y" || bad == "") {
				t.Errorf("%s may be %q", f.Name, bad)
			}
		}
		for _, bad := range []Value{"Host", "content-type", "a.b"} {
			if err := f.Set(&Rules{}, bad); err == nil && f.Name == "key" {
				t.Errorf("%s may be %q", f.Name, bad)
			}
		}
	}
	if azure, _ := ByName("azure"); For(azure, "gpt-5.1", Rules{}).Key != "api-key" {
		t.Error("Azure has its key elsewhere")
	}
}

// The rules of a configuration come before those of a model, its template, the server and plain.
func TestOrder(t *testing.T) {
	s := Server{Templates: true, Models: []Template{{Models: []string{"gemma-3-x"}, Rules: Rules{Calls: One}}}, Rules: Rules{Calls: Any, System: First, Roles: Any}}
	r := For(s, "google/Gemma-3-x", Rules{Seed: "s", Refused: []string{}})
	if r.Seed != "s" || r.Calls != One || r.System != Nowhere || r.Roles != Any || r.Notes != User || len(r.Refused) != 0 || r.Refused == nil {
		t.Errorf("%+v", r)
	}
	if own := For(s, "gemma-3-x", Rules{Calls: Any, System: Anywhere}); own.Calls != Any || own.System != Anywhere {
		t.Errorf("rules of a configuration do not come first: %+v", own)
	}
	if s.Templates = false; For(s, "gemma-3-x", Rules{}).System != First {
		t.Error("the template holds for a server that has none")
	}
	if r := For(s, "other", Rules{Echo: []string{}}); len(r.Echo) != 0 {
		t.Errorf("an empty list is not kept: %q", r.Echo)
	}
}

// Models that need the Responses API are asked over it, unless a configuration says otherwise.
func TestAPI(t *testing.T) {
	for model, want := range map[string]Value{
		"gpt-5.4-mini": Responses, "gpt-5.5": Responses, "gpt-5.6-mini": Responses, "gpt-6-sol": Responses, "gpt-6.1-sol": Responses, "gpt-5-pro": Responses, "gpt-5.2-pro-2025-12-11": Responses,
		"gpt-5-codex": Responses, "gpt-5.1-codex-mini": Responses, "o1-pro": Responses, "o3-pro": Responses, "o4-mini-deep-research": Responses,
		"gpt-5.1": Chat, "gpt-5-mini": Chat, "o3": Chat, "gpt-4.1": Chat, "new": Chat,
	} {
		for _, name := range []string{"openai", "azure"} {
			s, _ := ByName(name)
			if got := For(s, model, Rules{}).API; got != want {
				t.Errorf("%s of %s is asked over %s", model, name, got)
			}
			if got := For(s, model, Rules{API: Chat}).API; got != Chat {
				t.Errorf("%s of %s is asked over %s in spite of its configuration", model, name, got)
			}
		}
	}
}

// Settings that a model refuses are known, so that a fallback does not inherit them.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ server, model, refuses, takes string }{
		{"groq", "gpt-oss-120b", "verbosity cache_key", "seed"}, {"xai", "grok-4.5", "presence_penalty frequency_penalty stop", "temperature reasoning_effort"},
		{"xai", "grok-4-latest", "stop reasoning_effort", "temperature"}, {"xai", "grok-4-fast-non-reasoning", "reasoning_effort", "presence_penalty stop"},
		{"openai", "gpt-4.1", "reasoning_effort verbosity", "temperature"}, {"openai", "gpt-5.1", "temperature top_p stop", "reasoning_effort verbosity"},
		{"mistral", "mistral-large", "verbosity service_tier", "seed"}, {"plain", "any", "", "seed verbosity"},
	} {
		s, _ := ByName(c.server)
		got := For(s, c.model, Rules{}).Refused
		for _, name := range strings.Fields(c.refuses) {
			if !slices.Contains(got, name) {
				t.Errorf("%s of %s is sent %s", c.model, c.server, name)
			}
		}
		for _, name := range strings.Fields(c.takes) {
			if slices.Contains(got, name) {
				t.Errorf("%s of %s is not sent %s", c.model, c.server, name)
			}
		}
	}
}
