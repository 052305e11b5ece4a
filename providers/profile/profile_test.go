package profile

import (
	"path"
	"strings"
	"testing"
)

func TestByURL(t *testing.T) {
	for url, want := range map[string]string{
		"": "openai", "https://api.openai.com/v1": "openai", "https://eu.api.openai.com/v1": "openai", "https://API.Mistral.ai/v1": "mistral",
		"https://me.openai.azure.com/openai/deployments/d": "azure", "https://generativelanguage.googleapis.com/v1beta/openai": "gemini",
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
