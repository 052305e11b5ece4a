package openai_test

import (
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

// conversation is an agent that talks to an imitated server.
type conversation struct {
	*testing.T
	server *providertest.Server
	p      *openai.Provider
	model  string
	counts bool // the server sends usage
	items  []messages.Item
}

func (c *conversation) hear(text string) *conversation {
	c.items = append(c.items, messages.Text(messages.RoleUser, text))
	return c
}

// ask asks the model until it calls no more tools. The results of calls are their arguments.
func (c *conversation) ask(calls int) {
	c.Helper()
	for range calls + 1 {
		for _, it := range c.step() {
			if it.Type == messages.ItemCall {
				c.items = append(c.items, output(it.CallID, it.Arguments))
			}
		}
	}
}

// step asks the model once and returns its answer.
func (c *conversation) step() []messages.Item {
	c.Helper()
	r := providers.Request{
		Model: c.model, Instructions: "Be brief.", Items: c.items, Settings: providers.Settings{MaxOutputTokens: 100},
		Tools: []providers.ToolSpec{{Name: "f", Parameters: []byte(`{"type":"object","properties":{}}`)}},
	}
	resp, err := c.p.Generate(c.Context(), r, nil)
	if err != nil {
		c.Fatalf("%v\nthe request was %s", err, c.server.Last().Body)
	}
	if want := (messages.Usage{Input: 20, Output: 9}); c.counts && (resp.Usage.Input != want.Input || resp.Usage.Output != want.Output) {
		c.Errorf("usage is %+v, want %+v", resp.Usage, want)
	}
	c.items = append(c.items, resp.Items...)
	return resp.Items
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
	usage := messages.Usage{Input: 20, Output: 9, Cached: 5, Reasoning: 3}
	two := []scripted.Call{{Name: "f", Arguments: `{"x":1}`}, {Name: "f", Arguments: ""}}
	call := scripted.Step{Reasoning: "hm", Text: "I look.", Calls: two, Usage: usage}
	say := scripted.Step{Reasoning: "so", Text: "Done.", Usage: usage}
	if strings.HasPrefix(of.Model, "llama") { // does not reason
		call.Reasoning, say.Reasoning = "", ""
	}
	answers := providertest.Steps(call, call, say, call, say, call, say, say, say, call, say, say)
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
	c := &conversation{T: t, server: server, model: of.Model, counts: of.Server != "plain" && by == of.Server}
	if name := named[of.Template]; name != "" {
		c.model = name
	}
	options := []openai.Option{openai.BaseURL(server.URL), openai.Name("here"), openai.Profile(s)}
	if of.Server == "azure" {
		options = append(options, openai.Query("api-version", "2024-10-21"))
	}
	if of.Model == "picky" {
		options = append(options, openai.Rules(profile.Rules{StreamUsage: profile.No}))
	}
	c.p = openai.New(key, options...)

	c.hear("one").ask(2) // with tools, twice in one turn
	c.hear("two").ask(1)
	c.hear("three")
	for _, it := range c.step() { // then interrupted
		if it.Type == messages.ItemCall {
			c.items = append(c.items, output(it.CallID, "(interrupted)"))
		}
	}
	c.items = append(c.items, messages.Text(messages.RoleDeveloper, "The turn was interrupted."))
	c.hear("four").ask(0)
	c.hear("five, whose turn failed").hear("six").ask(0)
	last := slices.IndexFunc(c.items, func(it messages.Item) bool { return it.Content.Text() == "five, whose turn failed" })
	c.items = append([]messages.Item{messages.Text(messages.RoleDeveloper, "Summary: they counted.")}, c.items[last:]...)
	c.hear("seven, after a compaction").ask(0)
	c.items = append(foreign(), c.items...)
	c.hear("eight, after another model").ask(1)
	c.items = append(c.items, foreign()...)
	c.items = c.items[:len(c.items)-1] // the other model has failed in the midst of its turn
	c.ask(0)
	return server.Refusals()
}

// foreign is a turn that a model of another provider answered.
func foreign() []messages.Item {
	reasoning := item(messages.ItemReasoning, "there", "their thoughts")
	long := messages.CallID("chatcmpl-tool-" + strings.Repeat("0", 32))
	calls := list(reasoning, call("functions.f:0", `{"bro`), call(long, ""))
	calls[1].Raw = []byte(`{"extra_content":{"google":{"thought_signature":"AAAA"}},"message":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}}`)
	for i := range calls {
		calls[i].Provider, calls[i].Model = "there", "other"
	}
	return list(messages.Text(messages.RoleUser, "zero"), calls, output("functions.f:0", "1"), output(long, ""), messages.Text(messages.RoleAssistant, ""))
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
		c := &conversation{T: t, server: s, model: of.Model,
			p: openai.New(key, openai.BaseURL(s.URL), openai.Profile(server), openai.HTTPClient(cassette.Client(t, file)))}
		c.hear("one").ask(1)
		return c.items
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
