package openai_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
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
	s, err := profile.ByName(by)
	if err != nil {
		t.Fatal(err)
	}
	c := &providertest.Conversation{Model: of.Model}
	if of.Server != "plain" && by == of.Server { // it sends usage
		c.Usage = messages.Usage{Input: 20, Output: 9}
	}
	if name := named[of.Template]; name != "" {
		c.Model = name
	}
	options := []openai.Option{openai.BaseURL(server.URL), openai.Name("here"), openai.Profile(s)}
	if of.Server == "azure" {
		options = append(options, openai.Query("api-version", "2024-10-21"))
	}
	if of.Model == "picky" {
		options = append(options, openai.Rules(profile.Rules{StreamUsage: profile.No}))
	}
	c.Provider = openai.New(key, options...)
	if err := c.Run(t.Context()); err != nil {
		t.Fatalf("%v\nthe request was %s", err, server.Last().Body)
	}
	return server.Refusals()
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
