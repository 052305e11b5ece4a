package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// sent returns the messages of a request to a server with the profile, as JSON, one a line.
func sent(t *testing.T, profile, model string, items ...messages.Item) string {
	t.Helper()
	s, p := startAs(t, profile, data(stop))
	generate(t, p, providers.Request{Model: model, Instructions: "Be brief.", Items: items})
	var body struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(s.Last().Body, &body); err != nil {
		t.Fatalf("the body is no JSON: %v: %s", err, s.Last().Body)
	}
	var b strings.Builder
	for _, m := range body.Messages {
		b.Write(append(m, '\n'))
	}
	return b.String()
}

// by returns items as the model m of the provider of these tests wrote them.
func by(model string, items ...messages.Item) []messages.Item {
	for i := range items {
		items[i].Provider, items[i].Model = "here", model
	}
	return items
}

// kept returns a text with details of reasoning, which go back.
func kept(text, details string) messages.Item {
	it := messages.Text(messages.RoleAssistant, text)
	it.Raw = json.RawMessage(`{"reasoning_details":[` + details + `]}`)
	return it
}

func list(parts ...any) (items []messages.Item) {
	for _, p := range parts {
		switch p := p.(type) {
		case messages.Item:
			items = append(items, p)
		case []messages.Item:
			items = append(items, p...)
		}
	}
	return items
}

// A54: one history in the forms that servers and chat templates want.
func TestRules(t *testing.T) {
	user, said, note := messages.Text(messages.RoleUser, "hi"), messages.Text(messages.RoleAssistant, "Well."), messages.Text(messages.RoleDeveloper, "Stopped.")
	thought := item(messages.ItemReasoning, "here", "hm")
	const system, hi = `{"role":"system","content":"Be brief."}` + "\n", `{"role":"user","content":"hi"}` + "\n"
	const callA = `"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`
	const resultA = `{"role":"tool","content":"1","tool_call_id":"a"}` + "\n"
	for _, c := range []struct {
		name, profile, model string
		items                []messages.Item
		want                 string
	}{
		{"one system message, notes of a user, roles in turn", "plain", "m", list(user, user, said, note, user),
			system + `{"role":"user","content":"hi\n\nhi"}` + "\n" + `{"role":"assistant","content":"Well."}` + "\n" +
				`{"role":"user","content":"[System note]\nStopped.\n\nhi"}` + "\n"},
		{"images are merged", "plain", "m", list(user, messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: messages.Content{{Type: "image_url", ImageURL: "data:x"}}}),
			system + `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:x"}}]}` + "\n"},
		{"a history that begins with an answer", "plain", "m", list(said), system + `{"role":"user","content":"(no text)"}` + "\n" + `{"role":"assistant","content":"Well."}` + "\n"},
		{"system and notes in place", "openai", "m", list(user, note, user), system + hi + `{"role":"system","content":"Stopped."}` + "\n" + hi},
		{"no system message", "vllm", "google/gemma-3-4b-it", list(user, note), `{"role":"user","content":"Be brief.\n\nhi\n\n[System note]\nStopped."}` + "\n"},
		{"ids of nine, an answer after results", "mistral", "m", list(user, call("a", ""), output("a", "1"), user),
			system + hi + `{"role":"assistant","content":"","tool_calls":[{"id":"ZKLYCEWKD","type":"function","function":{"name":"f","arguments":"{}"}}]}` + "\n" +
				`{"role":"tool","content":"1","tool_call_id":"ZKLYCEWKD"}` + "\n" + `{"role":"assistant","content":"(no text)"}` + "\n" + hi},
		{"thinking in the content", "mistral", "m", list(user, by("m", thought, said), user),
			system + hi + `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Well."}]}` + "\n" + hi},
		{"one call a message", "llamacpp", "Llama-3.3-70B-Instruct", list(user, said, call("a", ""), call("b", ""), output("b", "2"), output("a", "1")),
			system + hi + `{"role":"assistant","content":"Well.",` + callA + "}\n" + resultA +
				`{"role":"assistant","content":"",` + strings.ReplaceAll(callA, `"a"`, `"b"`) + "}\n" + `{"role":"tool","content":"2","tool_call_id":"b"}` + "\n"},
		{"one call a message, all of the answer in the first", "llamacpp", "Llama-3.3-70B-Instruct",
			list(user, by("Llama-3.3-70B-Instruct", thought, kept("Well.", "1")), call("a", ""), call("b", ""), output("b", "2"), output("a", "1")),
			system + hi + `{"role":"assistant","content":"Well.","reasoning_content":"hm",` + callA + `,"reasoning_details":[1]}` + "\n" + resultA +
				`{"role":"assistant","content":"",` + strings.ReplaceAll(callA, `"a"`, `"b"`) + "}\n" + `{"role":"tool","content":"2","tool_call_id":"b"}` + "\n"},
		{"answers that follow each other are one", "vllm", "m", list(user, by("m", thought, kept("Well.", "1, 2"), thought, kept("So.", "3"), kept("", ""))),
			system + hi + `{"role":"assistant","content":"Well.\nSo.","reasoning":"hm\nhm","reasoning_details":[1,2,3]}` + "\n"},
		{"what waited comes once", "openai", "m", list(user, call("a", ""), note, output("a", "1"), call("b", ""), output("b", "2")),
			system + hi + `{"role":"assistant","content":"",` + callA + "}\n" + resultA + `{"role":"system","content":"Stopped."}` + "\n" +
				`{"role":"assistant","content":"",` + strings.ReplaceAll(callA, `"a"`, `"b"`) + "}\n" + `{"role":"tool","content":"2","tool_call_id":"b"}` + "\n"},
		{"what is no UTF-8", "openai", "m", list(messages.Text(messages.RoleUser, "a\xffb\xc3")), system + `{"role":"user","content":"a�b�"}` + "\n"},
		{"content as reasoning", "vllm", "openai/gpt-oss-20b", list(user, by("openai/gpt-oss-20b", thought), said, call("a", ""), output("a", "1")),
			system + hi + `{"role":"assistant","reasoning":"hm\n\nWell.",` + callA + "}\n" + resultA},
		{"reasoning of this turn only", "groq", "m", list(user, by("m", thought), said, user, by("m", thought), call("a", ""), output("a", "1")),
			system + hi + `{"role":"assistant","content":"Well."}` + "\n" + hi + `{"role":"assistant","content":"","reasoning":"hm",` + callA + "}\n" + resultA},
		{"reasoning of all turns, required", "deepseek", "m", list(user, by("m", thought), call("a", ""), output("a", "1"), said, user),
			system + hi + `{"role":"assistant","content":"","reasoning_content":"hm",` + callA + "}\n" + resultA +
				`{"role":"assistant","content":"Well.","reasoning_content":""}` + "\n" + hi},
		{"ids of a model's own", "plain", "moonshotai/kimi-k2", list(user, call("functions.f:0", ""), output("functions.f:0", "1")),
			system + hi + `{"role":"assistant","content":"","reasoning_content":"","tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]}` + "\n" +
				`{"role":"tool","content":"1","tool_call_id":"functions.f:0"}` + "\n"},
		{"ids of others", "plain", "m", list(user, call("functions.f:0", ""), output("functions.f:0", "1")),
			system + hi + `{"role":"assistant","content":"","tool_calls":[{"id":"2265JXRSRIRO3VQQ7FKIWT2BT43VN2EO62OZFJMB","type":"function","function":{"name":"f","arguments":"{}"}}]}` + "\n" +
				`{"role":"tool","content":"1","tool_call_id":"2265JXRSRIRO3VQQ7FKIWT2BT43VN2EO62OZFJMB"}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sent(t, c.profile, c.model, c.items...); got != c.want {
				t.Fatalf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// A54: what a model gave goes back to it and to no other; Google's models accept a mark in
// the place of a signature that they did not give.
func TestEcho(t *testing.T) {
	const signature = `"extra_content":{"google":{"thought_signature":"AA"}}`
	const details = `"reasoning_details":[{"type":"reasoning.encrypted","data":"AA","index":0}]`
	raw := func(it messages.Item, raw string) messages.Item {
		it.Raw = json.RawMessage(raw)
		return it
	}
	user := messages.Text(messages.RoleUser, "hi")
	signed := raw(call("a", ""), `{"id":"a",`+signature+`}`)
	detailed := raw(call("a", ""), `{"id":"a","message":{`+details+`,"other":1}}`)
	for _, c := range []struct {
		name, profile, model string
		wrote                string // the model that wrote the items
		items                []messages.Item
		has, lacks           string
	}{
		{"Gemini's signature", "gemini", "gemini-3", "gemini-3", list(signed, call("b", "")), signature + "},{", "skip_"},
		{"no signature for Gemini", "gemini", "gemini-3", "gemini-2", list(signed, call("b", "")), `{"google":{"thought_signature":"skip_thought_signature_validator"}}},{`, `"AA"`},
		{"a signature elsewhere", "openai", "gemini-3", "gemini-3", list(signed, call("b", "")), `"name":"f"`, "extra_content"},
		{"OpenRouter's details", "openrouter", "google/gemini-3", "google/gemini-3", list(detailed), "]," + details + "}", "other"},
		{"details of another model", "openrouter", "google/gemini-3", "x/y", list(detailed),
			`"reasoning_details":[{"type":"reasoning.encrypted","data":"skip_thought_signature_validator","id":"a","format":"google-gemini-v1","index":0}]`, `"AA"`},
		{"details of another model for another", "openrouter", "x/z", "x/y", list(detailed), `"name":"f"`, "reasoning_details"},
		{"a text's own", "plain", "m", "m", list(raw(messages.Text(messages.RoleAssistant, "x"), `{`+details+`}`), call("a", "")), `"content":"x"`, "skip_"},
	} {
		t.Run(c.name, func(t *testing.T) {
			items := list(user, by(c.wrote, c.items...))
			for _, it := range c.items {
				if it.Type == messages.ItemCall {
					items = append(items, output(it.CallID, "1"))
				}
			}
			if got := sent(t, c.profile, c.model, items...); !strings.Contains(got, c.has) || strings.Contains(got, c.lacks) {
				t.Fatalf("got\n%s\nwant %s and no %s", got, c.has, c.lacks)
			}
		})
	}
}

func TestRefusedSettings(t *testing.T) {
	s, p := startAs(t, "gemini")
	r := ask()
	seed := int64(1)
	r.Settings.Seed = &seed
	if e := fail(t, p, r); e.Kind != providers.Unsupported || !strings.Contains(e.Message, "the setting seed") || s.Calls() != 0 {
		t.Fatalf("got %v after %d requests", e, s.Calls())
	}
}
