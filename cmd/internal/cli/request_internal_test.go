package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A person is shown what hooks have changed, what is missing, and no escape codes.
func TestRequestText(t *testing.T) { // A103
	const escape = "\x1b[2J"
	item := projections.HistoryItem{Item: messages.Text(messages.RoleUser, "hello"+escape), N: 4, Missing: "blob abc is gone" + escape}
	r := projections.ModelRequest{
		N: 6, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Turn: "t3", Step: 1, Attempt: 2, Call: "m5", Model: "openai/gpt", SentAs: "other" + escape,
		Instructions: "Be brief." + escape, ToolChoice: "required", Settings: json.RawMessage(`{"seed":3}`),
		Tools: []projections.ModelTool{{Name: "pay" + escape, Description: "pays" + escape, Parameters: json.RawMessage(`{ "type": "object" }`), ByHook: true}},
		Items: []projections.RequestItem{
			{HistoryItem: item},
			{HistoryItem: projections.HistoryItem{Item: messages.Text(messages.RoleDeveloper, "added")}, ByHook: true},
		},
		Changed: []string{"model", "instructions", "tools", "items"}, LeftOut: 3, Hooks: []projections.RequestHook{{Hook: "scrub" + escape, Reason: "private" + escape}},
		Around: []string{"cache" + escape}, Why: "a part of it cannot be read" + escape,
	}
	text := requestIn(time.UTC)(r)
	for _, want := range []string{
		"turn t3, step 1, attempt 2, call m5, event 6, 2026-01-02 03:04:05 UTC", "openai/gpt, sent as other", "[changed by a hook]", `{"seed":3}`, "required",
		"scrub", "has changed the request: private", "cache", "answered again, elsewhere or not at all", "no: a part of it cannot be read",
		"pay", "[by a hook]", `{"type":"object"}`, "2, 3 of the history are left out", "     4  user", "blob abc is gone", "  hook  developer",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("got an escape code in %q", text)
	}
}
