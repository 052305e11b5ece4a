package openai_test

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/providertest/cassette"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// named are models whose names lead to the templates that imitations render.
var named = map[string]string{
	"qwen": "Qwen/Qwen3.8-35B", "gemma": "google/gemma-3-4b-it", "mistral": "mistralai/Mistral-Small-4", "llama3": "meta-llama/Llama-3.3-70B-Instruct",
	"gpt-oss": "openai/gpt-oss-20b", "kimi": "moonshotai/Kimi-K2-Thinking",
}

// TestImitations holds that each server that is imitated accepts the histories of agents:
// turns with tools, then after an interrupt, a failed turn, a compaction, and a switch from
// another model.
func TestImitations(t *testing.T) { // A14, A54
	imitations, err := providertest.Imitations()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range imitations {
		for _, whole := range []bool{false, true} {
			t.Run(of.String()+map[bool]string{true: "/whole"}[whole], func(t *testing.T) {
				for _, r := range converse(t, of, of.Server, whole) {
					t.Errorf("request %d: %s: %s", r.Number, r.Check, r.Body)
				}
			})
		}
		t.Run("unknown/"+of.String(), func(t *testing.T) {
			for _, r := range converse(t, of, profile.Plain, false) {
				t.Logf("request %d: %s: %s", r.Number, r.Check, r.Body)
			}
		})
	}
}

// converse talks to a server by the rules of a profile, and returns what was refused.
func converse(t *testing.T, of providertest.Imitation, by string, whole bool) []providertest.Refusal {
	answers := providertest.Course(!strings.HasPrefix(of.Model, "llama")) // which does not reason
	for i := range answers {
		answers[i].Whole = whole
	}
	server, err := providertest.Start(providertest.Play(answers...), providertest.Config{Key: key, Imitate: of})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	c := &providertest.Conversation{Model: of.Model}
	if of.Server != "plain" && by == of.Server { // it sends usage
		c.Usage = messages.Usage{Input: 20, Output: 9}
	}
	c.Provider, c.Model = imitated(t, server, of, by)
	if err := c.Run(t.Context()); err != nil {
		t.Fatalf("%v\nthe request was %s", err, server.Last().Body)
	}
	return server.Refusals()
}

// imitated returns a provider that asks an imitation by the rules of a profile, and the name of its model.
func imitated(t *testing.T, server *providertest.Server, of providertest.Imitation, by string) (*openai.Provider, string) {
	s, err := profile.ByName(by)
	if err != nil {
		t.Fatal(err)
	}
	options := []openai.Option{openai.BaseURL(server.URL), openai.Name("here"), openai.Profile(s)}
	if of.Server == "azure" {
		options = append(options, openai.Query("api-version", "2024-10-21"))
	}
	if of.Model == "picky" {
		options = append(options, openai.Rules(profile.Rules{StreamUsage: profile.No}))
	}
	return openai.New(key, options...), cmp.Or(named[of.Template], of.Model)
}

// TestSettingsOfImitations holds that each server that is imitated accepts each setting that its
// profile does not refuse, in the form that the profile has for it.
func TestSettingsOfImitations(t *testing.T) {
	imitations, err := providertest.Imitations()
	if err != nil {
		t.Fatal(err)
	}
	half, seed, no := float32(0.5), int64(7), false
	all := providers.Settings{
		Temperature: &half, TopP: &half, MaxOutputTokens: 100, Stop: []string{"x"}, Seed: &seed, PresencePenalty: &half, FrequencyPenalty: &half,
		ReasoningEffort: "high", Verbosity: "low", ServiceTier: "auto", ParallelToolCalls: &no, CacheKey: "k",
	}
	for _, of := range imitations {
		if of.Model == "picky" { // which takes no setting at all
			continue
		}
		t.Run(of.String(), func(t *testing.T) {
			server, err := providertest.Start(providertest.Play(providertest.Steps(slices.Repeat([]scripted.Step{scripted.Say("ok")}, 20)...)...), providertest.Config{Key: key, Imitate: of})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			p, model := imitated(t, server, of, of.Server)
			for _, name := range all.Names() {
				if slices.Contains(p.Refuses(model), name) {
					continue
				}
				r := ask()
				r.Model, r.Tools = model, []providers.ToolSpec{{Name: "f"}}
				r.Settings = all.Without(slices.DeleteFunc(all.Names(), func(n string) bool { return n == name }))
				if _, err := p.Generate(t.Context(), r, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, r := range server.Refusals() {
				t.Errorf("%s: %s", r.Check, r.Body)
			}
		})
	}
}

// A conversation that was recorded is played again without its server.
func TestRecordedConversation(t *testing.T) {
	of := providertest.Imitation{Server: "openai", Model: "gpt-5.5"}
	s, _ := consult(t, of, providertest.Steps(scripted.Step{Reasoning: "hm", Text: "I look.", Calls: []scripted.Call{{Name: "f", Arguments: `{"x":1}`}}}, scripted.Say("Done."))...)
	file := filepath.Join(t.TempDir(), "talk.yaml")
	talk := func(t *testing.T, key string) []messages.Item {
		server, err := profile.ByName("openai")
		if err != nil {
			t.Fatal(err)
		}
		c := &providertest.Conversation{Model: of.Model,
			Provider: openai.New(key, openai.BaseURL(s.URL), openai.Profile(server), openai.HTTPClient(cassette.Client(t, file)))}
		if err := c.Say("one").Ask(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		return c.Items
	}
	var recorded []messages.Item
	t.Run("record", func(t *testing.T) {
		t.Setenv(cassette.RecordVariable, "1")
		recorded = talk(t, key)
	})
	_ = s.Close()
	played := talk(t, "")
	one, _ := json.Marshal(recorded)
	two, _ := json.Marshal(played)
	if string(one) != string(two) || len(played) != 6 {
		t.Errorf("recorded %s\nplayed %s", one, two)
	}
}
