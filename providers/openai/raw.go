package openai

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/internal/wire"
)

// raw is p in the server's form, where our types do not cover it. Members of
// the message go with its text; where it has none, with its first part.
func (a *answer) raw(p *part) []byte {
	message := len(a.rest.kids) > 0 && p == a.home()
	switch {
	case p.kind == messages.ItemCall && (message || len(p.rest.kids) > 0):
		return a.rawCall(p, message)
	case p.kind != messages.ItemCall && message:
		whole := node{kind: '{'}
		whole.set("role", []byte(`"assistant"`))
		for _, q := range a.parts {
			if field := fields[q.kind]; field != "" && len(q.text) > 0 {
				whole.set(field, wire.AppendString(nil, string(q.text)))
			}
		}
		whole.merge("", &a.rest)
		return whole.append(nil)
	}
	return nil
}

var fields = map[messages.ItemType]string{
	messages.ItemMessage: "content", messages.ItemReasoning: "reasoning_content", messages.ItemRefusal: "refusal",
}

func (a *answer) rawCall(p *part, message bool) []byte {
	function := node{kind: '{'}
	function.set("name", wire.AppendString(nil, p.name))
	function.set("arguments", wire.AppendString(nil, string(p.text)))
	whole := node{kind: '{'}
	whole.set("id", wire.AppendString(nil, p.id))
	if p.form == "" {
		whole.set("type", []byte(`"function"`))
		whole.set("function", function.append(nil))
	} else {
		whole.set("type", wire.AppendString(nil, p.form))
	}
	whole.merge("", &p.rest)
	if message {
		whole.set("message", a.rest.append(nil))
	}
	return whole.append(nil)
}

// home is the part that the members of the message go with.
func (a *answer) home() *part {
	for _, p := range a.parts {
		if p.kind == messages.ItemMessage {
			return p
		}
	}
	return a.parts[0]
}
