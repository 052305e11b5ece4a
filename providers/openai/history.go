package openai

import (
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// What stands where the API wants a text and there is none.
const (
	noText   = "(no text)"
	noOutput = "(no output)"
)

// noteMark begins a note of the runtime that is sent as a user's message.
const noteMark = "[System note]\n"

// The roles of the API.
const (
	system    = "system"
	developer = "developer"
	user      = "user"
	assistant = "assistant"
	toolRole  = "tool"
)

// chatMessage is a message as the API has it.
type chatMessage struct {
	role      string
	text      string
	parts     messages.Content // of a user, in place of text, where it has images
	reasoning string
	echo      []member
	calls     []chatCall
	call      messages.CallID // whose result it is
}

type chatCall struct {
	id              messages.CallID
	name, arguments string
	echo            []member
}

// history turns items into chat messages. One assistant message holds all that
// a model said in one go, calls included; the results of its calls follow it
// directly, and what came in between waits.
type history struct {
	rules           profile.Rules
	provider, model string
	messages        []chatMessage
	speaking        bool              // the last message is an assistant's and may grow
	open            []messages.CallID // calls without a result so far
	waiting         []messages.Item   // what came while calls were open
	omitted         []string          // providers whose reasoning is not sent
	turn            int               // where the last user message is
	at              int               // where the item being added is
}

// render returns the messages for a request.
func (p *Provider) render(r providers.Request, rules profile.Rules) ([]chatMessage, error) {
	h := history{rules: rules, provider: p.name, model: r.Model}
	for i, it := range r.Items {
		if it.Type == messages.ItemMessage && it.Role == messages.RoleUser {
			h.turn = i
		}
	}
	for i, it := range r.Items {
		h.at = i
		if err := h.add(it); err != nil {
			return nil, err
		}
	}
	if len(h.open) > 0 {
		return nil, wire.Invalid("the history has no result for call " + string(h.open[0]))
	}
	if text := instructions(r, h.omitted); text != "" {
		h.messages = slices.Insert(h.messages, 0, chatMessage{role: system, text: text})
	}
	return arrange(h.messages, rules), nil
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

func (h *history) add(it messages.Item) error {
	if it.Type == messages.ItemCallOutput {
		return h.output(it)
	}
	if len(h.open) > 0 && (!h.speaking || !ofAssistant(it)) {
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
		h.callTool(it)
	case "":
		return wire.Invalid("the history has an item without a type")
	default:
		h.note(lost(it))
	}
	return nil
}

// ofAssistant reports whether it is part of what a model says.
func ofAssistant(it messages.Item) bool {
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

// own reports whether the item was written by the model that is asked, so that what was
// signed may go back.
func (h *history) own(it messages.Item) bool {
	return it.Provider == h.provider && (it.Model == "" || it.Model == h.model)
}

func (h *history) push(m chatMessage) {
	h.messages, h.speaking = append(h.messages, m), m.role == assistant
}

// note adds a message of the runtime.
func (h *history) note(text string) {
	if text == "" {
		text = noText
	}
	if h.rules.Notes == profile.User {
		text = noteMark + text
	}
	h.push(chatMessage{role: string(h.rules.Notes), text: text})
}

// speaker returns the assistant message that grows, a new one if need be.
func (h *history) speaker() *chatMessage {
	if !h.speaking {
		h.push(chatMessage{role: assistant})
	}
	return &h.messages[len(h.messages)-1]
}

func (h *history) say(text string) {
	m := h.speaker()
	if m.text != "" && text != "" {
		m.text += "\n"
	}
	m.text += text
}

// carried returns an error if an API cannot carry a part of c.
func carried(c messages.Content, api string) error {
	for _, part := range c {
		if part.Type != "text" && part.Type != "image_url" {
			return &providers.Error{Kind: providers.Unsupported,
				Message: fmt.Sprintf("%s cannot carry a content part of type %q", api, part.Type)}
		}
	}
	return nil
}

func (h *history) message(it messages.Item) error {
	if err := carried(it.Content, "Chat Completions"); err != nil {
		return err
	}
	switch it.Role {
	case messages.RoleUser:
		h.user(it.Content)
	case messages.RoleAssistant:
		h.say(withoutImages(it.Content))
		h.echo(it)
	case messages.RoleDeveloper, system:
		h.note(withoutImages(it.Content))
	default:
		return wire.Invalid(fmt.Sprintf("the history has a message of role %q", it.Role))
	}
	return nil
}

// echo adds the members of an item that go back to the server that gave them.
func (h *history) echo(it messages.Item) {
	if !h.own(it) {
		return
	}
	if given := chosen(it.Raw, h.rules.Echo); len(given) > 0 {
		h.speaker().give(given)
	}
}

// give adds members to m. Of one that it has, lists are joined: answers that follow each other
// become one message. Other values stay.
func (m *chatMessage) give(list []member) {
	for _, given := range list {
		i := slices.IndexFunc(m.echo, func(e member) bool { return e.key == given.key })
		switch {
		case i < 0:
			m.echo = append(m.echo, given)
		case m.echo[i].value[0] == '[' && given.value[0] == '[':
			m.echo[i].value = joinLists(m.echo[i].value, given.value)
		}
	}
}

// joinLists returns a JSON array with the elements of both.
func joinLists(a, b []byte) []byte {
	joined := []byte{'['}
	for _, list := range [...][]byte{a, b} {
		_ = wire.Elements(list, func(value []byte) error {
			if len(joined) > 1 {
				joined = append(joined, ',')
			}
			joined = append(joined, value...)
			return nil
		})
	}
	return append(joined, ']')
}

func (h *history) user(c messages.Content) {
	if !slices.ContainsFunc(c, isImage) {
		text := c.Text()
		if text == "" {
			text = noText
		}
		h.push(chatMessage{role: user, text: text})
		return
	}
	c = slices.DeleteFunc(slices.Clone(c), func(p messages.Part) bool { return !isImage(p) && p.Text == "" })
	h.push(chatMessage{role: user, parts: c})
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

// reasoning adds reasoning for the model that wrote it, as far as the rules want it back.
func (h *history) reasoning(it messages.Item) {
	if !h.own(it) {
		if name := it.Provider; name != "" && !slices.Contains(h.omitted, name) {
			h.omitted = append(h.omitted, name)
		}
		return
	}
	h.echo(it)
	text := it.Content.Text()
	wanted := h.rules.Reasoning == profile.All || h.rules.Reasoning == profile.Turn && h.at > h.turn
	if !wanted || text == "" {
		return
	}
	m := h.speaker()
	if m.reasoning != "" {
		m.reasoning += "\n"
	}
	m.reasoning += text
}

func (h *history) callTool(it messages.Item) {
	c := chatCall{id: it.CallID, name: it.Name, arguments: wire.Object(it.Arguments)}
	h.open = append(h.open, it.CallID)
	if h.rules.Tools == profile.AsText {
		h.say(fmt.Sprintf("[I call the tool %s with %s as call %s.]", c.name, c.arguments, c.id))
		return
	}
	m := h.speaker()
	if h.own(it) {
		c.echo = chosen(it.Raw, h.rules.Echo)
		m.give(chosen(wire.LookUp(it.Raw, "message"), h.rules.Echo))
	}
	m.calls = append(m.calls, c)
}

func (h *history) output(it messages.Item) error {
	i := slices.Index(h.open, it.CallID)
	if i < 0 {
		return wire.Invalid("the history has a result for call " + string(it.CallID) + ", which is not open")
	}
	h.open = slices.Delete(h.open, i, i+1)
	text := it.Output
	if text == "" {
		text = noOutput
	}
	if h.rules.Tools == profile.AsText {
		h.push(chatMessage{role: user, text: fmt.Sprintf("[Result of call %s:]\n%s", it.CallID, text)})
	} else {
		h.push(chatMessage{role: toolRole, text: text, call: it.CallID})
	}
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
