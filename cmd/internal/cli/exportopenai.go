package cli

import (
	"encoding/json"
	"io"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// openaiExport writes an agent as one line of messages and tools, as chat models are trained on.
type openaiExport struct {
	gathered
	to io.Writer
}

// chatLine is a line of a training set.
type chatLine struct {
	Messages []chatMessage `json:"messages"`
	Tools    []chatTool    `json:"tools,omitempty"`
}

// chatMessage is a message in the form of Chat Completions. Content is a text, a list of parts, or
// nil.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	Refusal    string     `json:"refusal,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       messages.CallID `json:"id"`
	Type     string          `json:"type"`
	Function chatFunction    `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

type chatPart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *chatImage `json:"image_url,omitempty"`
}

type chatImage struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// Close writes the line. An agent whose model has not answered has none.
func (x *openaiExport) Close([]messages.Digest, map[string]int) (export.End, error) {
	var h projections.History
	for _, f := range x.frames {
		projections.Fold(f, 0, &h)
	}
	d := x.definition()
	line := chatLine{Messages: chatMessages(h.View())}
	if len(line.Messages) == 0 {
		return x.end, nil
	}
	if d.Instructions != "" {
		line.Messages = append([]chatMessage{{Role: "system", Content: d.Instructions}}, line.Messages...)
	}
	for _, t := range d.Tools {
		tool := chatTool{Type: "function"}
		tool.Function = t
		line.Tools = append(line.Tools, tool)
	}
	b, err := json.Marshal(line)
	if err == nil {
		_, err = x.to.Write(append(b, '\n'))
	}
	return x.end, err
}

// turnCall names a call of an agent.
type turnCall struct {
	turn messages.TurnID
	call messages.CallID
}

// chatMessages returns the messages of a history. The last one is an answer or the result of a call:
// inputs after that are left out. So are calls without a result, and reasoning and the items of hosted
// tools, which have no place in this form.
func chatMessages(items []projections.HistoryItem) (list []chatMessage) {
	answered := make(map[turnCall]bool)
	for _, it := range items {
		if it.Type == messages.ItemCallOutput {
			answered[turnCall{it.Turn, it.CallID}] = true
		}
	}
	last, answer := 0, messages.EventNumber(0) // the event of the answer that the newest message is
	for _, it := range items {
		m, ok := chatMessageOf(it, answered)
		if !ok {
			continue
		}
		if n := len(list) - 1; m.Role == messages.RoleAssistant && answer == it.N && n >= 0 {
			list[n].join(m)
		} else {
			list = append(list, m)
		}
		answer = 0
		if m.Role == messages.RoleAssistant {
			answer = it.N
		}
		if m.Role == messages.RoleAssistant || m.Role == "tool" {
			last = len(list)
		}
	}
	return list[:last]
}

// chatMessageOf returns an item as a message of its own; false if it is none.
func chatMessageOf(it projections.HistoryItem, answered map[turnCall]bool) (chatMessage, bool) {
	switch it.Type {
	case messages.ItemMessage:
		role := it.Role
		if role == messages.RoleDeveloper {
			role = "system"
		}
		return chatMessage{Role: role, Content: chatContent(it.Content)}, true
	case messages.ItemRefusal:
		return chatMessage{Role: messages.RoleAssistant, Refusal: it.Content.Text()}, true
	case messages.ItemCall:
		call := chatCall{it.CallID, "function", chatFunction{it.Name, it.Arguments}}
		return chatMessage{Role: messages.RoleAssistant, ToolCalls: []chatCall{call}}, answered[turnCall{it.Turn, it.CallID}]
	case messages.ItemCallOutput:
		return chatMessage{Role: "tool", Content: it.Output, ToolCallID: string(it.CallID)}, true
	}
	return chatMessage{}, false
}

// join adds another part of the same answer.
func (m *chatMessage) join(more chatMessage) {
	text, is := m.Content.(string)
	added, also := more.Content.(string)
	switch {
	case m.Content == nil:
		m.Content = more.Content
	case is && also:
		m.Content = text + "\n" + added
	}
	m.Refusal += more.Refusal
	m.ToolCalls = append(m.ToolCalls, more.ToolCalls...)
}

// chatContent returns content as a text, or with images as a list of parts.
func chatContent(c messages.Content) any {
	var parts []chatPart
	images := false
	for _, p := range c {
		if p.ImageURL != "" {
			images = true
			parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatImage{p.ImageURL, p.Detail}})
		} else {
			parts = append(parts, chatPart{Type: "text", Text: p.Text})
		}
	}
	if !images {
		return c.Text()
	}
	return parts
}
