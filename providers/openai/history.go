package openai

import (
	"fmt"
	"slices"

	api "github.com/sashabaranov/go-openai"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// What stands where the API wants a text and there is none.
const (
	noText   = "(no text)"
	noOutput = "(no output)"
)

// history turns items into chat messages. One assistant message holds all that
// a model said in one go, calls included; the results of its calls follow it
// directly, and what came in between waits.
type history struct {
	provider string
	messages []api.ChatCompletionMessage
	speaking bool              // the last message is an assistant's and may grow
	open     []messages.CallID // calls without a result so far
	waiting  []messages.Item   // what came while calls were open
}

func (h *history) add(it messages.Item) error {
	if it.Type == messages.ItemCallOutput {
		return h.output(it)
	}
	if len(h.open) > 0 && (!h.speaking || !assistant(it)) {
		h.waiting = append(h.waiting, it)
		return nil
	}
	switch it.Type {
	case messages.ItemMessage:
		return h.message(it)
	case messages.ItemReasoning:
		h.reasoning(it)
	case messages.ItemRefusal:
		h.say(it.Content.Text())
	case messages.ItemCall:
		h.call(it)
	case "":
		return invalid("the history has an item without a type")
	default:
		h.system(fmt.Sprintf("[Here stood an item of type %s%s, which cannot be shown to this model.]", it.Type, from(it)))
	}
	return nil
}

// assistant tells whether it is part of what a model says.
func assistant(it messages.Item) bool {
	switch it.Type {
	case messages.ItemReasoning, messages.ItemRefusal, messages.ItemCall:
		return true
	}
	return it.Type == messages.ItemMessage && it.Role == messages.RoleAssistant
}

func from(it messages.Item) string {
	if it.Provider == "" {
		return ""
	}
	return " from " + it.Provider
}

func (h *history) push(m api.ChatCompletionMessage) {
	h.messages, h.speaking = append(h.messages, m), m.Role == api.ChatMessageRoleAssistant
}

func (h *history) system(text string) {
	if text == "" {
		text = noText
	}
	h.push(api.ChatCompletionMessage{Role: api.ChatMessageRoleSystem, Content: text})
}

// speaker is the assistant message that grows, a new one if need be.
func (h *history) speaker() *api.ChatCompletionMessage {
	if !h.speaking {
		h.push(api.ChatCompletionMessage{Role: api.ChatMessageRoleAssistant})
	}
	return &h.messages[len(h.messages)-1]
}

func (h *history) say(text string) {
	m := h.speaker()
	if m.Content != "" && text != "" {
		m.Content += "\n"
	}
	m.Content += text
}

func (h *history) message(it messages.Item) error {
	for _, part := range it.Content {
		if part.Type != "text" && part.Type != "image_url" {
			return &providers.Error{Kind: providers.Unsupported,
				Message: fmt.Sprintf("Chat Completions cannot carry a content part of type %q", part.Type)}
		}
	}
	switch it.Role {
	case messages.RoleUser:
		h.user(it.Content)
	case messages.RoleAssistant:
		h.say(withoutImages(it.Content))
	case messages.RoleDeveloper, api.ChatMessageRoleSystem:
		h.system(withoutImages(it.Content))
	default:
		return invalid(fmt.Sprintf("the history has a message of role %q", it.Role))
	}
	return nil
}

func (h *history) user(c messages.Content) {
	m := api.ChatCompletionMessage{Role: api.ChatMessageRoleUser}
	if !slices.ContainsFunc(c, isImage) {
		if m.Content = c.Text(); m.Content == "" {
			m.Content = noText
		}
		h.push(m)
		return
	}
	for _, part := range c {
		switch {
		case isImage(part):
			m.MultiContent = append(m.MultiContent, api.ChatMessagePart{Type: api.ChatMessagePartTypeImageURL,
				ImageURL: &api.ChatMessageImageURL{URL: part.ImageURL, Detail: api.ImageURLDetail(part.Detail)}})
		case part.Text != "":
			m.MultiContent = append(m.MultiContent, api.ChatMessagePart{Type: api.ChatMessagePartTypeText, Text: part.Text})
		}
	}
	h.push(m)
}

func isImage(p messages.Part) bool { return p.Type == "image_url" }

// withoutImages is the text of c with a note in the place of each image.
func withoutImages(c messages.Content) string {
	if !slices.ContainsFunc(c, isImage) {
		return c.Text()
	}
	noted := slices.Clone(c)
	for i, part := range noted {
		if isImage(part) {
			noted[i] = messages.Part{Type: "text", Text: "[an image, which cannot be shown here]"}
		}
	}
	return noted.Text()
}

// reasoning goes back to the provider that wrote it and to nobody else.
func (h *history) reasoning(it messages.Item) {
	text := it.Content.Text()
	if it.Provider == h.provider && text != "" {
		m := h.speaker()
		if m.ReasoningContent != "" {
			m.ReasoningContent += "\n"
		}
		m.ReasoningContent += text
		return
	}
	if len(h.open) > 0 { // between the calls of one message no other may stand
		h.say("[reasoning left out]")
		return
	}
	h.system(fmt.Sprintf("[Reasoning%s is left out here.]", from(it)))
}

func (h *history) call(it messages.Item) {
	m := h.speaker()
	m.ToolCalls = append(m.ToolCalls, api.ToolCall{
		ID: string(it.CallID), Type: api.ToolTypeFunction,
		Function: api.FunctionCall{Name: it.Name, Arguments: it.Arguments},
	})
	h.open = append(h.open, it.CallID)
}

func (h *history) output(it messages.Item) error {
	i := slices.Index(h.open, it.CallID)
	if i < 0 {
		return invalid("the history has a result for call " + string(it.CallID) + ", which is not open")
	}
	h.open = slices.Delete(h.open, i, i+1)
	text := it.Output
	if text == "" {
		text = noOutput
	}
	h.push(api.ChatCompletionMessage{Role: api.ChatMessageRoleTool, Content: text, ToolCallID: string(it.CallID)})
	if len(h.open) > 0 {
		return nil
	}
	waiting := h.waiting
	h.waiting = nil
	for _, w := range waiting { // a call among them makes those after it wait again
		if err := h.add(w); err != nil {
			return err
		}
	}
	return nil
}

// end tells whether all calls have a result, and gives assistant messages that
// have neither text nor calls a text.
func (h *history) end() error {
	if len(h.open) > 0 {
		return invalid("the history has no result for call " + string(h.open[0]))
	}
	for i := range h.messages {
		if m := &h.messages[i]; m.Role == api.ChatMessageRoleAssistant && m.Content == "" && len(m.ToolCalls) == 0 {
			m.Content = noText
		}
	}
	return nil
}
