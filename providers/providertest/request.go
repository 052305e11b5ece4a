package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Request is one request as it came. Scripts must not change it.
type Request struct {
	// Number counts a server's requests from 1.
	Number int
	Header http.Header
	Query  url.Values
	Body   []byte
	// Gone is closed when the client hangs up or the answer is complete.
	Gone <-chan struct{}
}

// Chat is the part of a request's body that tests look at.
type Chat struct {
	Model     string        `json:"model"`
	Messages  []ChatMessage `json:"messages"`
	Tools     []ChatTool    `json:"tools"`
	Stream    bool          `json:"stream"`
	Effort    string        `json:"reasoning_effort"`
	MaxTokens int           `json:"max_completion_tokens"`
	// OldMaxTokens is the older name of the same limit.
	OldMaxTokens int      `json:"max_tokens"`
	Temperature  *float64 `json:"temperature"`
	TopP         *float64 `json:"top_p"`
	// Choice is a JSON string, an object that names a function, or nothing.
	Choice json.RawMessage `json:"tool_choice"`
}

// ChatMessage is one message of a request.
type ChatMessage struct {
	Role string `json:"role"`
	// Content is a JSON string, a list of parts, or nothing.
	Content    json.RawMessage `json:"content"`
	Reasoning  string          `json:"reasoning_content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []ChatCall      `json:"tool_calls"`
}

// ChatCall is a tool call of an assistant's message.
type ChatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// ChatTool is a tool that a request offers.
type ChatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Text is the content where it is a string, else its JSON.
func (m ChatMessage) Text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	return string(m.Content)
}

// ToolChoice is the choice as [providers.Request] has it: auto, required, none
// or the name of a function. Empty: the request makes none.
func (c Chat) ToolChoice() string {
	var word string
	if json.Unmarshal(c.Choice, &word) == nil {
		return word
	}
	var named ChatTool
	_ = json.Unmarshal(c.Choice, &named) // what is neither is no choice
	return named.Function.Name
}

// Chat decodes the body. What cannot be decoded is zero; a strict server lets
// none of that through.
func (r *Request) Chat() Chat {
	var c Chat
	_ = json.Unmarshal(r.Body, &c)
	return c
}

// AfterTool reports, without decoding the body, whether the newest message of
// the history is the result of a tool. It relies on role being the first field
// of a message, as go-openai writes it.
func (r *Request) AfterTool() bool {
	history := r.Body
	if i := bytes.Index(history, []byte(`"messages":[`)); i >= 0 {
		history = history[i:]
	}
	if i := bytes.LastIndex(history, []byte(`"tools":[`)); i >= 0 {
		history = history[:i]
	}
	i := bytes.LastIndex(history, []byte(`{"role":"`))
	return i >= 0 && bytes.HasPrefix(history[i:], []byte(`{"role":"tool"`))
}

// Strict checks the body of a request as the pickiest servers do, and says
// what is wrong: every call has exactly one result, directly after its message
// and before anything else; every result has a call; a tool that must be called
// is offered; nothing is empty that must not be.
func Strict(body []byte) error {
	var c Chat
	if err := json.Unmarshal(body, &c); err != nil {
		return fmt.Errorf("the body is no chat request: %w", err)
	}
	if c.Model == "" {
		return fmt.Errorf("model is missing")
	}
	if len(c.Messages) == 0 {
		return fmt.Errorf("messages is empty")
	}
	for i, t := range c.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return fmt.Errorf("tools[%d] is no function with a name", i)
		}
	}
	if err := strictChoice(c); err != nil {
		return err
	}
	open := map[string]bool{} // calls without a result so far
	for i, m := range c.Messages {
		if err := strictMessage(m, open); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return unanswered(open)
}

// strictChoice holds that what must be called is offered.
func strictChoice(c Chat) error {
	if len(c.Choice) == 0 {
		return nil
	}
	if len(c.Tools) == 0 {
		return fmt.Errorf("tool_choice is only allowed when tools are specified")
	}
	var word string
	if json.Unmarshal(c.Choice, &word) == nil && slices.Contains([]string{"auto", "required", "none"}, word) {
		return nil
	}
	var named ChatTool
	if json.Unmarshal(c.Choice, &named) != nil || named.Type != "function" ||
		!slices.ContainsFunc(c.Tools, func(t ChatTool) bool { return t.Function.Name == named.Function.Name }) {
		return fmt.Errorf("tool_choice %s is neither auto, required, none nor one of the tools", c.Choice)
	}
	return nil
}

func strictMessage(m ChatMessage, open map[string]bool) error {
	if m.Role == "tool" {
		if !open[m.ToolCallID] {
			return fmt.Errorf("a tool result answers %q, which is no open call", m.ToolCallID)
		}
		delete(open, m.ToolCallID)
		return hasContent(m)
	}
	if err := unanswered(open); err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer", "user":
		return hasContent(m)
	case "assistant":
		return strictCalls(m, open)
	}
	return fmt.Errorf("role %q is unknown", m.Role)
}

func strictCalls(m ChatMessage, open map[string]bool) error {
	for _, c := range m.ToolCalls {
		if c.ID == "" || c.Type != "function" || c.Function.Name == "" {
			return fmt.Errorf("a tool call lacks its id, type or name")
		}
		if open[c.ID] {
			return fmt.Errorf("two tool calls have the id %q", c.ID)
		}
		open[c.ID] = true
	}
	if len(m.ToolCalls) == 0 {
		return hasContent(m)
	}
	return nil
}

func hasContent(m ChatMessage) error {
	if c := string(m.Content); c == "" || c == "null" || c == `""` || c == "[]" {
		return fmt.Errorf("a message of role %s has no content", m.Role)
	}
	return nil
}

func unanswered(open map[string]bool) error {
	for id := range open {
		return fmt.Errorf("tool call %q has no result right after it", id)
	}
	return nil
}
