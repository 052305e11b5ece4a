package openai

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

// answer gathers the chunks of one streamed answer.
type answer struct {
	p                 *Provider
	emit              func(providers.Delta)
	keep              func(n int) error // claims memory for n more bytes
	id, model, finish string
	usage             messages.Usage
	parts             []*part // calls in order of appearance
	rest              node    // members of the message that nothing else covers
}

// part is an item on its way.
type part struct {
	kind messages.ItemType
	text []byte // of a call: its arguments
	// Of a call:
	index          int // -1: none
	id, name, form string
	rest           node
}

func newAnswer(p *Provider, emit func(providers.Delta), keep func(n int) error) *answer {
	if emit == nil {
		emit = func(providers.Delta) {}
	}
	return &answer{p: p, emit: emit, keep: keep, rest: node{kind: '{'}}
}

func null(value []byte) bool { return string(value) == "null" }

// add takes in one chunk: the data of an event.
func (a *answer) add(chunk []byte) error {
	if !json.Valid(chunk) {
		return badAnswer("a chunk of the answer is no JSON")
	}
	return members(chunk, func(key string, value []byte) error {
		switch key {
		case "id":
			a.id = text(value)
		case "model":
			a.model = text(value)
		case "choices":
			return elements(value, a.choice)
		case "usage":
			a.use(value)
		case "error":
			if c, ok := readComplaint(chunk); ok && !null(value) {
				return c.inStream()
			}
		case "object", "created", "system_fingerprint", "service_tier", "obfuscation":
		default:
			return a.setRest(key, value)
		}
		return nil
	})
}

// setRest replaces a member of the rest.
func (a *answer) setRest(key string, value []byte) error {
	if null(value) {
		return nil
	}
	if err := a.keepRest(value); err != nil {
		return err
	}
	a.rest.set(key, value)
	return nil
}

// putRest merges value into a member of the rest.
func (a *answer) putRest(key string, value []byte) error {
	if null(value) {
		return nil
	}
	if err := a.keepRest(value); err != nil {
		return err
	}
	a.rest.put(key, value)
	return nil
}

// keepRest claims memory for a value that is made into nodes, which may take far more
// than its text.
func (a *answer) keepRest(value []byte) error {
	return a.keep(len(value) + nodeSize/memory.Weight*values(value))
}

// use takes the usage. Servers that send it more than once count from the start.
func (a *answer) use(value []byte) {
	var u struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		In         struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Hit int `json:"prompt_cache_hit_tokens"`
	}
	if null(value) || json.Unmarshal(value, &u) != nil {
		return
	}
	a.usage = messages.Usage{Input: u.Prompt, Output: u.Completion, Cached: max(u.In.Cached, u.Hit), Reasoning: u.Out.Reasoning}
}

func (a *answer) choice(choice []byte) error {
	return members(choice, func(key string, value []byte) error {
		switch key {
		case "index":
			if n, err := strconv.Atoi(string(value)); err == nil && n != 0 {
				return badAnswer("the server sent a second choice, which nobody asked for")
			}
		case "delta", "message":
			return members(value, a.member)
		case "finish_reason":
			if reason := text(value); reason != "" {
				a.finish = reason
			}
		default:
			return a.setRest(key, value)
		}
		return nil
	})
}

// member takes in one member of a delta.
func (a *answer) member(key string, value []byte) error {
	switch key {
	case "role":
	case "content":
		if value[0] == '[' {
			return elements(value, a.contentPart)
		}
		return a.say(messages.ItemMessage, text(value))
	case "reasoning_content", "reasoning":
		return a.say(messages.ItemReasoning, text(value))
	case "refusal":
		return a.say(messages.ItemRefusal, text(value))
	case "tool_calls":
		return elements(value, a.fragment)
	default:
		return a.putRest(key, value)
	}
	return nil
}

// contentPart takes in a part of content that comes as a list. What is not
// text is kept whole.
func (a *answer) contentPart(value []byte) error {
	var p struct {
		Type     string
		Text     string
		Thinking json.RawMessage
	}
	_ = json.Unmarshal(value, &p) // what does not fit is kept below
	if p.Type == "text" {
		return a.say(messages.ItemMessage, p.Text)
	}
	if p.Type == "thinking" {
		return elements(p.Thinking, func(value []byte) error {
			var t struct{ Text string }
			_ = json.Unmarshal(value, &t)
			return a.say(messages.ItemReasoning, t.Text)
		})
	}
	return a.putRest("content", append(append([]byte("["), value...), ']'))
}

// say continues the part of that kind and emits what can be shown.
func (a *answer) say(kind messages.ItemType, s string) error {
	if s == "" {
		return nil
	}
	if err := a.keep(len(s)); err != nil {
		return err
	}
	p := a.part(kind)
	p.text = append(p.text, s...)
	switch kind {
	case messages.ItemMessage:
		a.emit(providers.Delta{Kind: providers.DeltaText, Text: a.p.scrub.text(s)})
	case messages.ItemReasoning:
		a.emit(providers.Delta{Kind: providers.DeltaReasoning, Text: a.p.scrub.text(s)})
	}
	return nil
}

func (a *answer) part(kind messages.ItemType) *part {
	for _, p := range a.parts {
		if p.kind == kind {
			return p
		}
	}
	p := &part{kind: kind}
	a.parts = append(a.parts, p)
	return p
}

// response is the whole answer to r.
func (a *answer) response(r providers.Request) (providers.Response, error) {
	if a.finish == "error" {
		return providers.Response{}, complaint{message: "the server gave up in the midst of the answer"}.inStream()
	}
	resp := providers.Response{Finish: a.p.scrub.text(a.finish), Model: a.p.scrub.text(a.model), Usage: a.usage}
	if len(a.rest.kids) > 0 && len(a.parts) == 0 {
		a.part(messages.ItemMessage)
	}
	slices.SortStableFunc(a.parts, func(p, q *part) int { return rank[p.kind] - rank[q.kind] })
	ids := idSet{history: r.Items}
	for _, p := range a.parts {
		if p.kind == messages.ItemCall && p.name == "" && p.form == "" {
			return resp, badAnswer("the answer has a tool call without a name")
		}
		resp.Items = append(resp.Items, a.item(p, &ids))
	}
	return resp, nil
}

// rank is the order of an answer's items. The API has none: a message holds all.
var rank = map[messages.ItemType]int{messages.ItemReasoning: 1, messages.ItemMessage: 2, messages.ItemRefusal: 3, messages.ItemCall: 4}

func (a *answer) item(p *part, ids *idSet) messages.Item {
	scrub := a.p.scrub.text
	it := messages.Item{Type: p.kind, Provider: a.p.name, Raw: json.RawMessage(scrub(string(a.raw(p))))}
	if len(it.Raw) == 0 {
		it.Raw = nil
	}
	switch p.kind {
	case messages.ItemCall:
		it.Name, it.Arguments = scrub(p.name), scrub(string(p.text))
		id := scrub(p.id)
		if it.CallID = ids.keep(id); string(it.CallID) != id {
			it.ID = id
		}
		if p.form != "" {
			it.Type = messages.ItemType(p.form + "_call")
		}
		return it
	case messages.ItemMessage, messages.ItemRefusal:
		it.Role = messages.RoleAssistant
	}
	it.ID = scrub(a.id)
	if len(p.text) > 0 {
		it.Content = messages.TextContent(scrub(string(p.text)))
	}
	return it
}
