package cli

import (
	"encoding/json"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// An answer is one message with its text and calls; calls without a result, and what follows the newest
// answer, are left out.
func TestChatMessages(t *testing.T) {
	said := func(n messages.EventNumber, role, text string) projections.HistoryItem {
		return projections.HistoryItem{N: n, Turn: "t1", Item: messages.Text(role, text)}
	}
	call := func(n messages.EventNumber, id messages.CallID) projections.HistoryItem {
		return projections.HistoryItem{N: n, Turn: "t1", Item: messages.Item{Type: messages.ItemCall, CallID: id, Name: "refund", Arguments: "{}"}}
	}
	result := func(n messages.EventNumber, id messages.CallID) projections.HistoryItem {
		return projections.HistoryItem{N: n, Turn: "t1", Item: messages.Item{Type: messages.ItemCallOutput, CallID: id, Output: "ok"}}
	}
	const c1 = `"tool_calls":[{"id":"c1","type":"function","function":{"name":"refund","arguments":"{}"}}]`
	for name, c := range map[string]struct {
		items []projections.HistoryItem
		want  string
	}{
		"text and calls": {[]projections.HistoryItem{said(1, "user", "hi"), said(2, "assistant", "I look"), call(2, "c1"), result(3, "c1"), said(4, "assistant", "done")},
			`[{"role":"user","content":"hi"},{"role":"assistant","content":"I look",` + c1 + `},{"role":"tool","content":"ok","tool_call_id":"c1"},{"role":"assistant","content":"done"}]`},
		"a call without a result": {[]projections.HistoryItem{said(1, "user", "hi"), call(2, "c1"), call(2, "c2"), result(3, "c1")},
			`[{"role":"user","content":"hi"},{"role":"assistant","content":null,` + c1 + `},{"role":"tool","content":"ok","tool_call_id":"c1"}]`},
		"only a call without a result": {[]projections.HistoryItem{said(1, "user", "hi"), call(2, "c1")}, `[]`},
		"the same call id in another turn": {[]projections.HistoryItem{said(1, "user", "hi"), call(2, "c1"), result(3, "c1"), said(4, "assistant", "x"),
			{N: 5, Turn: "t2", Item: messages.Item{Type: messages.ItemCall, CallID: "c1"}}},
			`[{"role":"user","content":"hi"},{"role":"assistant","content":null,` + c1 + `},{"role":"tool","content":"ok","tool_call_id":"c1"},{"role":"assistant","content":"x"}]`},
		"two answers": {[]projections.HistoryItem{said(1, "assistant", "a"), said(2, "assistant", "b"), said(2, "assistant", "c")},
			`[{"role":"assistant","content":"a"},{"role":"assistant","content":"b\nc"}]`},
		"notes, and what follows the answer": {[]projections.HistoryItem{said(1, "user", "hi"), said(1, "developer", "note"), said(2, "assistant", "x"), said(3, "user", "and"), said(4, "developer", "aborted")},
			`[{"role":"user","content":"hi"},{"role":"system","content":"note"},{"role":"assistant","content":"x"}]`},
		"a refusal": {[]projections.HistoryItem{{N: 1, Item: messages.Item{Type: messages.ItemRefusal, Content: messages.TextContent("no")}}}, `[{"role":"assistant","content":null,"refusal":"no"}]`},
		"reasoning": {[]projections.HistoryItem{{N: 1, Item: messages.Item{Type: messages.ItemReasoning, Content: messages.TextContent("hm")}}, said(1, "assistant", "x")}, `[{"role":"assistant","content":"x"}]`},
		"an image": {[]projections.HistoryItem{{N: 1, Item: messages.Item{Type: messages.ItemMessage, Role: "user", Content: messages.Content{{Type: "text", Text: "see"}, {Type: "image_url", ImageURL: "https://x.test", Detail: "low"}}}}, said(2, "assistant", "x")},
			`[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x.test","detail":"low"}}]},{"role":"assistant","content":"x"}]`},
		"nothing": {nil, `[]`},
	} {
		list := chatMessages(c.items)
		if list == nil {
			list = []chatMessage{}
		}
		if got, err := json.Marshal(list); err != nil || string(got) != c.want {
			t.Errorf("%s: got  %s, error %v\nwant %s", name, got, err, c.want)
		}
	}
}
