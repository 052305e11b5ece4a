package openai

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

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
	speaking        bool     // the last message is an assistant's and may grow
	omitted         []string // providers whose reasoning is not sent
	turn            int      // where the last user message is
	at              int      // where the item being added is
}

// render returns the messages for a request.
func (p *Provider) render(r providers.Request, rules profile.Rules) ([]chatMessage, error) {
	h := history{rules: rules, provider: p.name, model: r.Model, messages: make([]chatMessage, 0, len(r.Items)+1)}
	for i, it := range r.Items {
		if it.Type == messages.ItemMessage && it.Role == messages.RoleUser {
			h.turn = i
		}
	}
	err := wire.InOrder(r.Items, wire.Said, func(i int, it messages.Item) error {
		h.at = i
		return h.add(it)
	})
	if err != nil {
		return nil, err
	}
	if text := wire.Instructions(r, h.omitted); text != "" {
		h.messages = slices.Insert(h.messages, 0, chatMessage{role: system, text: text})
	}
	return arrange(h.messages, rules), nil
}

func (h *history) add(it messages.Item) error {
	switch it.Type {
	case messages.ItemMessage:
		return h.message(it)
	case messages.ItemReasoning:
		h.reasoning(it)
	case messages.ItemRefusal:
		h.say(it.Content.Text())
	case messages.ItemCall:
		h.callTool(it)
	case messages.ItemCallOutput:
		h.output(it)
	case "":
		return wire.Invalid("the history has an item without a type")
	default:
		h.note(wire.Lost(it))
	}
	return nil
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
		text = wire.NoText
	}
	if h.rules.Notes == profile.User {
		text = wire.NoteMark + text
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

func (h *history) message(it messages.Item) error {
	if err := wire.Carried(it.Content, "Chat Completions"); err != nil {
		return err
	}
	switch it.Role {
	case messages.RoleUser:
		h.user(it.Content)
	case messages.RoleAssistant:
		h.say(wire.WithoutImages(it.Content))
		h.echo(it)
	case messages.RoleDeveloper, system:
		h.note(wire.WithoutImages(it.Content))
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
	if !slices.ContainsFunc(c, wire.IsImage) {
		text := c.Text()
		if text == "" {
			text = wire.NoText
		}
		h.push(chatMessage{role: user, text: text})
		return
	}
	c = slices.DeleteFunc(slices.Clone(c), func(p messages.Part) bool { return !wire.IsImage(p) && p.Text == "" })
	h.push(chatMessage{role: user, parts: c})
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

func (h *history) output(it messages.Item) {
	text := cmp.Or(it.Output, wire.NoOutput)
	if h.rules.Tools == profile.AsText {
		h.push(chatMessage{role: user, text: fmt.Sprintf("[Result of call %s:]\n%s", it.CallID, text)})
		return
	}
	h.push(chatMessage{role: toolRole, text: text, call: it.CallID})
}
