package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/anthropic"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// unshown are kinds of items that only the model that gave them can be shown.
var unshown = []messages.ItemType{
	"web_search_call", "server_tool_use", "computer_call", "shell_call", "shell_call_output", "apply_patch_call",
	"handoff", "compaction", "image_generation_call", "audio", "file", "something_new",
}

// everyItem is an answer with an item of every kind. The image is too large for a frame.
func everyItem() []messages.Item {
	raw := func(kind messages.ItemType, more string) json.RawMessage {
		return json.RawMessage(`{"type":"` + string(kind) + `","z": 1.0,"a":"<&>é` + more + `"}`)
	}
	list := []messages.Item{
		{Type: messages.ItemReasoning, Content: messages.TextContent("a thought"), Raw: raw("reasoning", "sealed")},
		{Type: messages.ItemMessage, Role: messages.RoleAssistant, Content: messages.TextContent("a text"), Raw: raw("message", "cited")},
		{Type: messages.ItemRefusal, Role: messages.RoleAssistant, Content: messages.TextContent("a refusal"), Raw: raw("refusal", "r")},
	}
	for _, kind := range unshown {
		more := ""
		if kind == "image_generation_call" {
			more = strings.Repeat("0123456789abcdef", 1<<16)
		}
		list = append(list, messages.Item{Type: kind, Raw: raw(kind, more)})
	}
	list = append(list, messages.Item{Type: messages.ItemCall, CallID: "c1", Name: "lookup", Arguments: `{}`, Raw: raw("function_call", "signed")})
	for i := range list {
		list[i].Provider, list[i].Model = "test", "model"
	}
	return list
}

// TestEveryItem holds that an item of every kind is stored, exported, and after a restart given
// back with its raw form byte for byte, one too large for a frame without the space between its
// values. An API that has no such kind gets a translation or a note that names it, or the call fails.
func TestEveryItem(t *testing.T) { // A54
	w := newWorld(t)
	given := everyItem()
	image := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 100)
	look := func(d *actors.Definition) { d.Tools = []tool.Tool{giving("lookup", "a result")} }
	n := w.node(agents(scripted.New(scripted.Step{Items: given}, scripted.Say("done")), look))
	in := messages.Input{ID: "1", Content: messages.Content{{Type: "text", Text: "see"}, {Type: "image_url", ImageURL: image}}}
	if got, err := w.ask(n.Client(), "assistant/a", in); err != nil || got.end.Output != "done" {
		t.Fatalf("%+v, %v", got, err)
	}
	exported := map[messages.ItemType]string{}
	for _, it := range w.history(n.Client(), "assistant/a") {
		exported[it.Type] = decoded(t, it.Raw)
	}
	w.ok(n.Close())

	again := scripted.New(scripted.Say("again"))
	n = w.node(agents(again, look))
	w.say(n.Client(), "assistant/a", "2", "go on")
	history := again.Requests()[0].Items
	for _, want := range given {
		var found []messages.Item
		for _, it := range history {
			same := string(it.Raw) == string(want.Raw) || len(want.Raw) > 1<<20 && decoded(t, it.Raw) == decoded(t, want.Raw)
			if it.Type == want.Type && same && it.Content.Text() == want.Content.Text() && it.Provider == "test" && it.Model == "model" {
				found = append(found, it)
			}
		}
		if len(found) != 1 {
			t.Errorf("%s: given back %d times with its raw form", want.Type, len(found))
		}
		if want.Type != "image_generation_call" && want.Type != messages.ItemMessage && exported[want.Type] != decoded(t, want.Raw) {
			t.Errorf("%s: exported as %s", want.Type, exported[want.Type])
		}
	}

	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		http.Error(w, "seen", http.StatusTeapot)
	}))
	defer s.Close()
	for api, p := range map[string]providers.Provider{
		"chat":      openai.New("", openai.BaseURL(s.URL), openai.Rules(profile.Rules{API: profile.Chat})),
		"responses": openai.New("", openai.BaseURL(s.URL), openai.Rules(profile.Rules{API: profile.Responses})),
		"messages":  anthropic.New("", anthropic.BaseURL(s.URL)),
	} {
		sent = ""
		_, err := p.Generate(t.Context(), providers.Request{Model: "m", Items: history}, nil)
		if e := providers.AsError(err); e.Status != http.StatusTeapot {
			t.Errorf("%s: %v", api, err)
		}
		seen := []string{"a text", "a refusal", "lookup", "a result", "iVBORw0KGgo", "The reasoning of test is left out", "go on"}
		for _, kind := range unshown {
			seen = append(seen, "item of type "+string(kind)+" from test")
		}
		for _, text := range seen {
			if !strings.Contains(sent, text) {
				t.Errorf("%s was not sent %q", api, text)
			}
		}
		for _, secret := range []string{"sealed", "signed", "cited", "a thought"} {
			if strings.Contains(sent, secret) {
				t.Errorf("%s was sent %q, which is the other model's", api, secret)
			}
		}
		audio := messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: messages.Content{{Type: "input_audio", Text: "x"}}}
		_, err = p.Generate(t.Context(), providers.Request{Model: "m", Items: append(history[:len(history):len(history)], audio)}, nil)
		if e := providers.AsError(err); e.Kind != providers.Unsupported || !strings.Contains(e.Message, "input_audio") {
			t.Errorf("%s: a part that it lacks: %v", api, err)
		}
	}
	var refused *messages.Error
	var c messages.Content
	if err := json.Unmarshal([]byte(`[{"type":"input_file","file_id":"x"}]`), &c); !errors.As(err, &refused) || !strings.Contains(err.Error(), "input_file") {
		t.Errorf("an input with a part that no one can carry: %v", err)
	}
}

// decoded returns a JSON value in one form, its numbers as they are written.
func decoded(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if raw == nil {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return fmt.Sprint(v)
}
