package openai

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// arrange returns messages in roles and an order that the rules allow.
func arrange(list []chatMessage, rules profile.Rules) []chatMessage {
	if rules.Calls == profile.One {
		list = splitCalls(list)
	}
	a := arranger{rules: rules, list: make([]chatMessage, 0, len(list)+2)}
	for _, m := range list {
		a.add(m)
	}
	list = lead(a.list, a.leading, rules)
	for i := range list {
		if m := &list[i]; m.role == assistant {
			m.complete(rules)
		}
	}
	return list
}

type arranger struct {
	rules   profile.Rules
	leading []string // texts of the system messages before all others
	list    []chatMessage
}

func (a *arranger) add(m chatMessage) {
	if (m.role == system || m.role == developer) && a.rules.System != profile.Anywhere {
		if len(a.list) == 0 {
			a.leading = append(a.leading, m.text)
			return
		}
		m.role = user
	}
	if a.rules.AfterResults == profile.Assistant && m.role == user && a.last() == toolRole {
		a.list = append(a.list, chatMessage{role: assistant})
	}
	if a.rules.Roles == profile.Alternate {
		if len(a.list) == 0 && m.role == assistant {
			a.list = append(a.list, chatMessage{role: user, text: wire.NoText})
		}
		if len(a.list) > 0 && a.list[len(a.list)-1].merge(m) {
			return
		}
	}
	a.list = append(a.list, m)
}

// last returns the role of the last message, or "".
func (a *arranger) last() string {
	if len(a.list) == 0 {
		return ""
	}
	return a.list[len(a.list)-1].role
}

// splitCalls returns the messages with one tool call each, followed by its result.
func splitCalls(list []chatMessage) (out []chatMessage) {
	for len(list) > 0 {
		m := list[0]
		results := list[1:min(len(list), 1+len(m.calls))]
		list = list[1+len(results):]
		if len(m.calls) < 2 {
			out = append(append(out, m), results...)
			continue
		}
		for i, c := range m.calls {
			one := chatMessage{role: assistant, calls: []chatCall{c}}
			if i == 0 {
				one.text, one.reasoning, one.echo = m.text, m.reasoning, m.echo
			}
			out = append(out, one)
			for _, result := range results {
				if result.call == c.id {
					out = append(out, result)
				}
			}
		}
	}
	return out
}

// complete adds to an assistant message what the rules require of it.
func (m *chatMessage) complete(rules profile.Rules) {
	switch {
	case len(m.calls) == 0:
		if m.text == "" {
			m.text = wire.NoText
		}
		return
	case rules.Content == profile.AsReasoning && m.reasoning != "":
		m.reasoning, m.text = wire.Join(m.reasoning, m.text), ""
	}
	switch {
	case rules.Unsigned == profile.ExtraContent && len(m.calls[0].echo) == 0:
		m.calls[0].echo = []member{{"extra_content", []byte(`{"google":{"thought_signature":"` + unsigned + `"}}`)}}
	case rules.Unsigned == profile.ReasoningDetails && len(m.echo) == 0:
		id := string(wire.AppendString(nil, wire.SentID(m.calls[0].id, rules.CallIDs)))
		m.echo = []member{{"reasoning_details", []byte(
			`[{"type":"reasoning.encrypted","data":"` + unsigned + `","id":` + id + `,"format":"google-gemini-v1","index":0}]`)}}
	}
}

// unsigned is what Google accepts in place of the thought signature of a call that its model
// did not make. https://ai.google.dev/gemini-api/docs/thought-signatures
const unsigned = "skip_thought_signature_validator"

// lead puts the texts that come before all messages where the rules want them.
func lead(list []chatMessage, texts []string, rules profile.Rules) []chatMessage {
	var text string
	for _, t := range texts {
		text = wire.Join(text, t)
	}
	if text == "" {
		return list
	}
	if rules.System != profile.Nowhere {
		return slices.Insert(list, 0, chatMessage{role: system, text: text})
	}
	m := chatMessage{role: user, text: text}
	if len(list) > 0 && m.merge(list[0]) {
		list[0] = m
		return list
	}
	return slices.Insert(list, 0, m)
}

// merge appends n to m if both are of a user, and reports whether they are. What a model says
// in a row is one message already.
func (m *chatMessage) merge(n chatMessage) bool {
	switch {
	case m.role != user || n.role != user:
		return false
	case m.parts == nil && n.parts == nil:
		m.text = wire.Join(m.text, n.text)
	default:
		m.parts, m.text = slices.Concat(m.content(), n.content()), ""
	}
	return true
}

func (m *chatMessage) content() messages.Content {
	if m.parts != nil {
		return m.parts
	}
	return messages.TextContent(m.text)
}
