package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// consult returns an imitated server and a provider that asks it over the Responses API.
func consult(t *testing.T, of providertest.Imitation, answers ...providertest.Answer) (*providertest.Server, *openai.Provider) {
	t.Helper()
	s, err := providertest.Start(providertest.Play(answers...), providertest.Config{Key: key, Imitate: of})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	server, err := profile.ByName(of.Server)
	if err != nil {
		t.Fatal(err)
	}
	return s, openai.New(key, openai.BaseURL(s.URL), openai.Name("here"), openai.Profile(server), openai.Query("api-version", "preview"),
		openai.Rules(profile.Rules{API: profile.Responses}))
}

// clerk is a server of the Responses API that has one answer for each request: the status and
// the data of its events, or an error body. It returns a provider, and the bodies it was sent
// with the paths they came to.
func clerk(t *testing.T, rules profile.Rules, answers ...[]string) (p *openai.Provider, requests *[]string) {
	requests = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, r.URL.Path+" "+string(body))
		answer := answers[min(len(*requests), len(answers))-1]
		if events, refused := answer[1:], answer[0] != "200"; refused {
			var status int
			_, _ = fmt.Sscan(answer[0], &status)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, events[0])
			return
		}
		_, named, _ := strings.Cut(string(body), `"previous_response_id":"`)
		named, _, _ = strings.Cut(named, `"`)
		for _, e := range answer[1:] {
			if named != "" && !strings.Contains(e, "previous_response_id") {
				e = strings.Replace(e, `"model"`, `"previous_response_id":"`+named+`","model"`, 1)
			}
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
	}))
	t.Cleanup(s.Close)
	return openai.New(key, openai.BaseURL(s.URL+"/v1"), openai.Name("here"), openai.Rules(rules)), requests
}

// completed is an answer of these items.
func completed(id string, items ...string) []string {
	return []string{"200", `{"type":"response.completed","response":{"id":"` + id + `","model":"m","status":"completed","output":[` + strings.Join(items, ",") + `]}}`}
}

const (
	spoke    = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"Done.","annotations":[]}]}`
	thought  = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"gAAA"}`
	called   = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"","status":"completed"}`
	searched = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`
)

var viaResponses = profile.Rules{API: profile.Responses}

// inputOf returns the input of the n-th request.
func inputOf(t *testing.T, requests []string, n int) string {
	t.Helper()
	_, body, _ := strings.Cut(requests[n], " ")
	var q struct{ Input json.RawMessage }
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return string(q.Input)
}

func TestResponsesSuite(t *testing.T) {
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole %v", whole), func(t *testing.T) {
			providertest.Run(t, func(t *testing.T, steps ...scripted.Step) providers.Provider {
				answers := providertest.Steps(steps...)
				for i, a := range answers {
					answers[i].Whole = whole && a.Gate == nil && (a.Err == nil || a.Text == "")
				}
				_, p := consult(t, providertest.Imitation{Server: "openai", Model: "gpt-5.1"}, answers...)
				return p
			})
		})
	}
}

// The items of an answer are kept whole, and go back as they came; streamed or not.
func TestResponsesItems(t *testing.T) { // A54
	for _, of := range []providertest.Imitation{{Server: "openai", Model: "gpt-5.5"}, {Server: "azure", Model: "gpt-5.1"}, {Server: "xai", Model: "grok-4.5"}} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/whole %v", of, whole), func(t *testing.T) {
				step := scripted.Step{Reasoning: "I have to look.", Text: "One moment.", Calls: []scripted.Call{{Name: "f", Arguments: `{"x":1}`}, {Name: "f", Arguments: ""}},
					Usage: messages.Usage{Input: 20, Output: 9, Cached: 5, Reasoning: 3}}
				s, p := consult(t, of, providertest.Answer{Step: step, Whole: whole, Output: []json.RawMessage{json.RawMessage(searched)}}, providertest.Answer{Step: scripted.Say("So it is.")})
				r := providers.Request{Model: of.Model, Items: list(messages.Text(messages.RoleUser, "hi")), Tools: []providers.ToolSpec{{Name: "f"}}}
				shown := map[providers.DeltaKind]string{}
				resp, err := p.Generate(t.Context(), r, func(d providers.Delta) { shown[d.Kind] += d.Text })
				if err != nil {
					t.Fatal(err)
				}
				var kinds []string
				for _, it := range resp.Items {
					kinds = append(kinds, string(it.Type))
					if it.Provider != "here" || it.Model != of.Model || it.ID == "" || !json.Valid(it.Raw) {
						t.Errorf("%+v", it)
					}
				}
				if want := "reasoning web_search_call message function_call function_call"; strings.Join(kinds, " ") != want {
					t.Fatalf("items %v, want %s", kinds, want)
				}
				if shown[providers.DeltaText] != "One moment." || shown[providers.DeltaReasoning] != "I have to look." {
					t.Errorf("shown %v", shown)
				}
				if resp.Finish != messages.FinishCalls || resp.Usage != step.Usage || resp.Items[4].Arguments != "{}" {
					t.Errorf("%+v", resp)
				}
				r.Items = list(r.Items, resp.Items, output(resp.Items[3].CallID, "1"), output(resp.Items[4].CallID, ""))
				generate(t, p, r)
				sent := string(s.Last().Body)
				for _, it := range resp.Items[:4] {
					if !strings.Contains(sent, string(it.Raw)) {
						t.Errorf("%s is not in %s", it.Raw, sent)
					}
				}
				if strings.Count(sent, `"function_call_output"`) != 2 || !strings.Contains(sent, `"store":false,"include":["reasoning.encrypted_content"]`) {
					t.Errorf("sent %s", sent)
				}
				if n := len(s.Refusals()); n != 0 {
					t.Errorf("%d requests were refused", n)
				}
			})
		}
	}
}

// A refusal that asks for the other API, or for less in a request, is answered by one more
// request; what is wrong with one history does not change the requests of others.
func TestResponsesRepair(t *testing.T) {
	refusal := func(message string) []string { return []string{"400", `{"error":{"message":"` + message + `"}}`} }
	sealed := refusal("The encrypted content gAAA... could not be verified. (Reason: Encrypted content could not be decrypted or parsed.)")
	for name, c := range map[string]struct {
		rules   profile.Rules
		refusal []string
		want    []string // of the requests after the first, which gives the history
	}{
		"content of another key": {viaResponses, sealed, []string{`"encrypted_content":"gAAA"`, `!gAAA`, `"encrypted_content":"gAAA"`}},
		"no encrypted content":   {viaResponses, refusal("Encrypted content is not supported with this model."), []string{`"include"`, `!"include"`, `!"include"`}},
		"not over chat": {profile.Rules{}, refusal("Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses."),
			[]string{"/v1/chat/completions", "/v1/responses", "/v1/responses"}},
	} {
		t.Run(name, func(t *testing.T) {
			first := completed("resp_1", thought, spoke)
			if c.rules.API == "" {
				first = []string{"200", `{"choices":[{"delta":{"content":"Done."},"finish_reason":"stop"}]}`, "[DONE]"}
			}
			p, requests := clerk(t, c.rules, first, c.refusal, completed("resp_2", spoke))
			r := ask()
			r.Items = list(r.Items, generate(t, p, r).Items, messages.Text(messages.RoleUser, "more"))
			generate(t, p, r)
			generate(t, p, r)
			for i, want := range c.want {
				want, without := strings.CutPrefix(want, "!")
				if got := (*requests)[i+1]; strings.Contains(got, want) == without {
					t.Errorf("request %d is %s, want %s", i+2, got, c.want[i])
				}
			}
		})
	}
	useOther := refusal("Please use /v1/responses.")
	p, requests := clerk(t, profile.Rules{}, useOther, []string{"404", "404 page not found"})
	if e := fail(t, p, ask()); e.Kind != providers.BadRequest || !strings.Contains(e.Message, "/v1/responses") || len(*requests) != 2 {
		t.Errorf("%v after %d requests", e, len(*requests))
	}
	p, _ = clerk(t, viaResponses, []string{"404", "404 page not found"})
	if e := fail(t, p, ask()); e.Kind != providers.NotFound || !strings.Contains(e.Message, "set api: chat") {
		t.Error(e)
	}
	p, requests = clerk(t, profile.Rules{API: profile.Chat}, useOther)
	if e := fail(t, p, ask()); e.Kind != providers.BadRequest || len(*requests) != 1 {
		t.Errorf("%v after %d requests", e, len(*requests))
	}
	tools := providers.Request{Model: "gpt-6-astra", Items: ask().Items, Tools: []providers.ToolSpec{{Name: "f"}}}
	p, requests = clerk(t, profile.Rules{}, completed("resp_1", spoke)) // go-openai refuses it over chat
	if generate(t, p, tools); len(*requests) != 1 || !strings.HasPrefix((*requests)[0], "/v1/responses") {
		t.Errorf("requests %v", *requests)
	}
	p, _ = clerk(t, profile.Rules{API: profile.Chat}, useOther)
	if e := fail(t, p, tools); !strings.Contains(e.Message, "remove api: chat") {
		t.Error(e)
	}
}

// What a server does not have, or cannot decrypt, is sent once more in other words.
func TestResponsesOfAnotherServer(t *testing.T) {
	const sealed = "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed."
	const gone = "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."
	bare := strings.Replace(thought, `,"encrypted_content":"gAAA"`, "", 1)
	for name, c := range map[string]struct {
		answer         []string
		status, reason string
		before, after  []string // texts of the request that is refused, and of the next
	}{
		"compaction": {[]string{`{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}`, spoke}, "400", sealed, []string{"gAAA", "msg_1"}, []string{`"hi"`, "an item of type compaction", "Done."}},
		"reasoning":  {[]string{bare, spoke}, "404", gone, []string{"rs_1", "msg_1"}, []string{`"hi"`, "Done."}},
		"image":      {[]string{`{"type":"image_generation_call","id":"ig_1","result":"AAAA"}`, spoke}, "400", gone, []string{"ig_1", "msg_1"}, []string{`"hi"`, "an item of type image_generation_call", "Done."}},
	} {
		t.Run(name, func(t *testing.T) {
			p, requests := clerk(t, viaResponses, completed("resp_1", c.answer...), []string{c.status, `{"error":{"message":"` + c.reason + `"}}`}, completed("resp_2", spoke))
			r := ask()
			r.Items = list(r.Items, generate(t, p, r).Items, messages.Text(messages.RoleUser, "more"))
			r.Settings.ExtraBody = map[string]json.RawMessage{"store": json.RawMessage("true")} // not when it was given
			generate(t, p, r)
			refused, repaired := inputOf(t, *requests, 1), inputOf(t, *requests, 2)
			for _, text := range c.before {
				if !strings.Contains(refused, text) || strings.Contains(repaired, text) {
					t.Errorf("%s: sent %s\nand %s", text, refused, repaired)
				}
			}
			for _, text := range c.after {
				if !strings.Contains(repaired, text) {
					t.Errorf("%s: sent %s", text, repaired)
				}
			}
		})
	}
}

// Settings and tools in the form of this API.
func TestResponsesSettings(t *testing.T) {
	p, requests := clerk(t, viaResponses, completed("resp_1", spoke))
	half, third, no, seed := float32(0.5), float32(0.25), false, int64(7)
	generate(t, p, providers.Request{
		Model: "m", Instructions: "Be brief.", ToolChoice: "f", Tools: []providers.ToolSpec{{Name: "f", Description: "d"}},
		Items: list(messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: messages.Content{{Type: "text", Text: "see"}, {Type: "text"}, {Type: "image_url", ImageURL: "data:x", Detail: "low"}}}),
		Settings: providers.Settings{Temperature: &half, TopP: &third, MaxOutputTokens: 9, ReasoningEffort: "low", Verbosity: "high", ServiceTier: "flex", ParallelToolCalls: &no, CacheKey: "k",
			HostedTools: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)}},
	})
	const want = `/v1/responses {"model":"m","instructions":"Be brief.",` +
		`"input":[{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:x","detail":"low"}]}],` +
		`"tools":[{"type":"function","strict":false,"name":"f","description":"d","parameters":{"type":"object","properties":{}}},{"type":"web_search"}],` +
		`"tool_choice":{"type":"function","name":"f"},"max_output_tokens":9,"temperature":0.5,"top_p":0.25,"reasoning":{"effort":"low"},"text":{"verbosity":"high"},` +
		`"service_tier":"flex","prompt_cache_key":"k","parallel_tool_calls":false,"stream":true,"store":false,"include":["reasoning.encrypted_content"]}`
	if (*requests)[0] != want {
		t.Errorf("sent %s\nwant %s", (*requests)[0], want)
	}
	for _, c := range []struct {
		api profile.Value
		providers.Settings
	}{
		{profile.Responses, providers.Settings{Seed: &seed}}, {profile.Responses, providers.Settings{Stop: []string{"x"}}},
		{profile.Responses, providers.Settings{PresencePenalty: &half}}, {profile.Responses, providers.Settings{FrequencyPenalty: &half}},
		{profile.Chat, providers.Settings{HostedTools: []json.RawMessage{json.RawMessage(`{"type":"x"}`)}}},
	} {
		p, requests := clerk(t, profile.Rules{API: c.api}, completed("resp_1", spoke))
		r, s := ask(), c.Settings
		r.Settings = s
		if e := fail(t, p, r); e.Kind != providers.Unsupported || !strings.Contains(e.Message, s.Names()[0]) || len(*requests) != 0 || !slices.Contains(p.Refuses("m"), s.Names()[0]) {
			t.Errorf("%s: %v after %d requests", c.api, e, len(*requests))
		}
	}
	for _, bad := range []providers.Request{
		{Model: "m", Items: list(messages.Item{})}, {Model: "m", Items: list(messages.Text("critic", "x"))},
		{Model: "m", Settings: providers.Settings{HostedTools: []json.RawMessage{json.RawMessage(`{`)}}},
		{Model: "m", Items: list(messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: messages.Content{{Type: "audio"}}})},
	} {
		if e := fail(t, p, bad); e.Kind != providers.BadRequest && e.Kind != providers.Unsupported || len(*requests) != 1 {
			t.Errorf("%+v: %v", bad, e)
		}
	}
}

// A choice among tools that the server runs, and others.
func TestResponsesToolChoice(t *testing.T) {
	for _, c := range []struct {
		hosted bool
		choice string
		want   string // "": none is sent, "!": the request is refused
	}{
		{true, "none", `"none"`}, {true, "required", `"required"`}, {true, "web_search", `{"type":"web_search"}`}, {true, "f", "!"}, {true, "", ""},
		{false, "none", ""}, {false, "required", "!"}, {false, "web_search", "!"},
	} {
		p, requests := clerk(t, viaResponses, completed("resp_1", spoke))
		r := ask()
		if r.ToolChoice = c.choice; c.hosted {
			r.Settings.HostedTools = []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)}
		}
		r.Settings.ParallelToolCalls = new(bool)
		if c.want == "!" {
			if e := fail(t, p, r); e.Kind != providers.BadRequest || len(*requests) != 0 {
				t.Errorf("%+v: %v after %d requests", c, e, len(*requests))
			}
			continue
		}
		generate(t, p, r)
		if got := (*requests)[0]; strings.Contains(got, `"tool_choice":`) != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: sent %s", c, got)
		}
		if got := (*requests)[0]; strings.Contains(got, "parallel_tool_calls") { // of no calls here
			t.Errorf("sent %s", got)
		}
	}
}

// An agent changes between the APIs, and between models, in the midst of a turn.
func TestChangesOfAPI(t *testing.T) { // A14
	call := scripted.Step{Reasoning: "hm", Text: "I look.", Calls: []scripted.Call{{Name: "f", Arguments: `{"x":1}`}, {Name: "f"}}}
	say := scripted.Step{Reasoning: "so", Text: "Done."}
	of := providertest.Imitation{Server: "xai", Model: "grok-4.5"}
	s, over := consult(t, of, providertest.Steps(call, call, say, call, call, say)...)
	server, _ := profile.ByName("xai")
	chat := openai.New(key, openai.BaseURL(s.URL), openai.Name("here"), openai.Profile(server), openai.Rules(profile.Rules{API: profile.Chat}))
	c := &providertest.Conversation{Model: of.Model}
	for i, text := range []string{"one", "two"} {
		c.Say(text)
		for n := range 3 {
			c.Provider = []*openai.Provider{over, chat}[(i+n)%2]
			if err := c.Ask(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		c.Items = append(c.Items, providertest.Foreign()...)
	}
	if n := len(s.Refusals()); n != 0 {
		t.Errorf("%d requests were refused", n)
	}
}
