package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

func item(kind messages.ItemType, provider, text string) messages.Item {
	return messages.Item{Type: kind, Provider: provider, Content: messages.TextContent(text)}
}

func call(id messages.CallID, arguments string) messages.Item {
	return messages.Item{Type: messages.ItemCall, CallID: id, Name: "f", Arguments: arguments}
}

func output(id messages.CallID, text string) messages.Item {
	return messages.Item{Type: messages.ItemCallOutput, CallID: id, Output: text}
}

// transcript returns the messages that reach a server with the profile, one a line.
func transcript(t *testing.T, name, model string, items ...messages.Item) string {
	t.Helper()
	s, p := startAs(t, name, data(stop))
	generate(t, p, providers.Request{Model: model, Instructions: "Be brief.", Items: items})
	var b strings.Builder
	for _, m := range s.Last().Chat().Messages {
		if m.Role == "system" && string(m.Content) == `"Be brief."` {
			continue
		}
		fmt.Fprintf(&b, "%s", m.Role)
		if m.Reasoning != "" {
			fmt.Fprintf(&b, " thinks %q", m.Reasoning)
		}
		if c := string(m.Content); c != "" && c != `""` {
			fmt.Fprintf(&b, " %s", m.Content)
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " %s=%s(%s)", c.ID, c.Function.Name, c.Function.Arguments)
		}
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, " for %s", m.ToolCallID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// A14, A54: every history reaches a strict server in a form it takes.
func TestHistory(t *testing.T) {
	user, said, note := messages.Text(messages.RoleUser, "hi"), messages.Text(messages.RoleAssistant, "I look."), messages.Text(messages.RoleDeveloper, "Interrupted.")
	image := messages.Part{Type: "image_url", ImageURL: "data:image/png;base64,AA", Detail: "low"}
	for _, c := range []struct {
		name  string
		items []messages.Item
		want  string
	}{
		{"one answer is one message", []messages.Item{user, said, call("a", `{"x":1}`), call("b", `{"bro`), output("b", ""), output("a", "1")},
			`user "hi"
assistant "I look." a=f({"x":1}) b=f({"not_json":"{\"bro"})
tool "(no output)" for b
tool "1" for a
`},
		{"what came during calls waits", []messages.Item{user, call("a", ""), call("b", ""), output("a", "1"), note, user, output("b", "2"), said},
			`user "hi"
assistant a=f({}) b=f({})
tool "1" for a
tool "2" for b
system "Interrupted."
user "hi"
assistant "I look."
`},
		{"an id may come again once answered", []messages.Item{user, call("a", ""), output("a", "1"), call("a", ""), output("a", "2")},
			`user "hi"
assistant a=f({})
tool "1" for a
assistant a=f({})
tool "2" for a
`},
		{"others' reasoning", []messages.Item{user, item(messages.ItemReasoning, "there", "secret thought"), said},
			`system "Be brief.\n\n[The reasoning of there is left out of this conversation.]"
user "hi"
assistant "I look."
`},
		{"others' reasoning between calls", []messages.Item{user, call("a", ""), item(messages.ItemReasoning, "there", "x"), call("b", ""), output("a", "1"), output("b", "2")},
			`system "Be brief.\n\n[The reasoning of there is left out of this conversation.]"
user "hi"
assistant a=f({}) b=f({})
tool "1" for a
tool "2" for b
`},
		{"refusal", []messages.Item{user, item(messages.ItemRefusal, "here", "I will not.")}, "user \"hi\"\nassistant \"I will not.\"\n"},
		{"empty texts", []messages.Item{messages.Text(messages.RoleUser, ""), messages.Text(messages.RoleAssistant, ""), messages.Text(messages.RoleDeveloper, "")},
			"user \"(no text)\"\nassistant \"(no text)\"\nsystem \"(no text)\"\n"},
		{"images of a user", []messages.Item{{Type: messages.ItemMessage, Role: messages.RoleUser, Content: messages.Content{{Type: "text", Text: "see"}, {Type: "text"}, image}}},
			`user [{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA","detail":"low"}}]` + "\n"},
		{"images of others", []messages.Item{{Type: messages.ItemMessage, Role: messages.RoleAssistant, Content: messages.Content{{Type: "text", Text: "see"}, image}}},
			`assistant "see\n[an image, which cannot be shown here]"` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := transcript(t, "openai", "m", c.items...); got != c.want {
				t.Fatalf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// A54: kinds that the API lacks are visible to the model.
func TestForeignItems(t *testing.T) {
	for _, kind := range []messages.ItemType{"web_search_call", "computer_call", "shell_call_output", "apply_patch_call", "compaction", "image_generation_call", "input_audio", "input_file", "mcp_approval_request", "something_new"} {
		foreign := messages.Item{Type: kind, Provider: "there", Raw: json.RawMessage(`{"type":"` + kind + `"}`)}
		if got := transcript(t, "openai", "m", messages.Text(messages.RoleUser, "hi"), foreign); !strings.Contains(got, "system \"[Here stood an item of type "+string(kind)+" from there") {
			t.Errorf("%s became\n%s", kind, got)
		}
	}
}
