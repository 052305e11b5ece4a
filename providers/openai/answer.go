package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/profile"
)

// answer gathers the chunks of one streamed answer.
type answer struct {
	p                 *Provider
	rules             profile.Rules
	emit              func(providers.Delta)
	keep              func(n int) error // claims memory for n more bytes
	id, model, finish string
	usage             messages.Usage
	parts             []*part // in order of appearance
	texts             map[messages.ItemType]*part
	reasoningIn       string           // the member that reasoning comes in
	last              *part            // call
	named             *part            // the call that the last piece in this list named
	byID              map[string]*part // calls
	byIndex           map[int]*part    // the newest of each index
	rest              node             // members of the message that nothing else covers
	replaced          map[string]int   // the most that a member of rest has taken that later ones replace
}

// part is an item on its way.
type part struct {
	kind messages.ItemType
	text []byte // of a call: its arguments
	// Of a call:
	index          int // -1: none
	id, name, form string
	rest           node
	read           reading
}

func newAnswer(p *Provider, rules profile.Rules, emit func(providers.Delta), keep func(n int) error) *answer {
	return &answer{p: p, rules: rules, emit: emit, keep: keep, rest: node{kind: '{'}}
}

func (a *answer) Ended() bool           { return a.finish != "" }
func (a *answer) Over() bool            { return false } // usage may follow
func (a *answer) Usage() messages.Usage { return a.usage }

// Add takes in one chunk: the data of an event, or an answer in one document.
func (a *answer) Add(chunk []byte) error {
	if !json.Valid(chunk) {
		return wire.BadAnswer("a chunk of the answer is no JSON")
	}
	chosen, failed := false, false
	err := wire.Members(chunk, func(key, value []byte) error {
		switch string(key) {
		case "id":
			return setName(&a.id, value)
		case "model":
			return setName(&a.model, value)
		case "choices":
			chosen = true
			return wire.Elements(value, a.choice)
		case "usage":
			a.use(value)
		case "x_groq":
			return a.groq(value)
		case "error":
			failed = failed || !wire.Null(value)
		case "object", "created", "system_fingerprint", "service_tier", "obfuscation":
		default:
			return a.setRest(key, value)
		}
		return nil
	})
	if err == nil && (failed || !chosen) {
		return a.complaint(chunk)
	}
	return err
}

// setName sets a name that each chunk repeats.
func setName(name *string, value []byte) error {
	if len(value) > maxName {
		return wire.BadAnswer(fmt.Sprintf("the answer has an id, a model or a reason to stop of more than %d bytes", maxName))
	}
	if len(*name) != len(value)-2 {
		*name = wire.Text(value)
	}
	return nil
}

// groq takes in what Groq's older answers have: the usage, and why an answer has stopped.
func (a *answer) groq(object []byte) error {
	failed := false
	_ = wire.Members(object, func(key, value []byte) error {
		switch string(key) {
		case "usage":
			a.use(value)
		case "error":
			failed = !wire.Null(value)
		}
		return nil
	})
	if failed {
		return a.complaint(object)
	}
	return nil
}

// complaint returns the error that a chunk is, or nil.
func (a *answer) complaint(chunk []byte) error {
	if c, ok := wire.ReadComplaint([]byte(a.p.endpoint.Scrub.Text(string(chunk)))); ok {
		return c.InStream()
	}
	return nil
}

// setRest replaces a member of the rest.
func (a *answer) setRest(key, value []byte) error {
	if wire.Null(value) || a.rest.is(string(key), value) {
		return nil
	}
	size, err := taken(key, value)
	if err != nil {
		return err
	}
	if more := size - a.replaced[string(key)]; more > 0 {
		if err := a.keep(more); err != nil {
			return err
		}
		if a.replaced == nil {
			a.replaced = make(map[string]int)
		}
		a.replaced[string(key)] += more
	}
	a.rest.set(string(key), value)
	return nil
}

// putRest merges value into a member of the rest.
func (a *answer) putRest(key, value []byte) error {
	if wire.Null(value) {
		return nil
	}
	if err := a.keepMember(key, value); err != nil {
		return err
	}
	a.rest.put(string(key), value)
	return nil
}

// keepMember claims memory for a member.
func (a *answer) keepMember(key, value []byte) error {
	size, err := taken(key, value)
	if err != nil {
		return err
	}
	return a.keep(size)
}

// maxDepth is how deep a value may nest. Each level takes time for all that is below it.
const maxDepth = 100

// taken returns the memory that a member takes when it is made into nodes, which may be far
// more than its text.
func taken(key, value []byte) (int, error) {
	count, depth := values(value)
	if depth > maxDepth {
		return 0, wire.BadAnswer(fmt.Sprintf("the answer has a value that nests more than %d levels deep", maxDepth))
	}
	return len(key) + len(value) + nodeSize/memory.Weight*count, nil
}

func (a *answer) choice(choice []byte) error {
	var delta, message []byte
	err := wire.Members(choice, func(key, value []byte) error {
		switch string(key) {
		case "index":
			if n, err := strconv.Atoi(string(value)); err == nil && n != 0 {
				return wire.BadAnswer("the server sent a second choice, which the request does not ask for")
			}
		case "message":
			message = value
		case "delta":
			delta = value
		case "usage": // Kimi
			a.use(value)
		case "logprobs": // each chunk has those of its own tokens
			return a.putRest(key, value)
		case "finish_reason":
			if value[0] == '"' && len(value) > 2 {
				return setName(&a.finish, value)
			}
		default:
			return a.setRest(key, value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if delta == nil || wire.Null(delta) { // else the message has all that came before
		delta = message
	}
	return wire.Members(delta, a.member)
}

// member takes in one member of a delta.
func (a *answer) member(key, value []byte) error {
	switch name := string(key); {
	case name == "role", wire.Null(value):
	case name == "content" && value[0] == '[':
		return wire.Elements(value, a.contentPart)
	case name == "content" && value[0] == '"':
		return a.say(messages.ItemMessage, wire.Unquoted(value))
	case (name == "reasoning_content" || name == "reasoning") && value[0] == '"':
		return a.reason(key, value)
	case name == "refusal" && value[0] == '"':
		return a.say(messages.ItemRefusal, wire.Unquoted(value))
	case name == "tool_calls":
		a.active()
		a.named = nil
		return wire.Elements(value, a.fragment)
	default:
		a.active()
		return a.putRest(key, value)
	}
	return nil
}

// reason continues the reasoning. Where two members have it, both have the same text (vLLM).
func (a *answer) reason(name, value []byte) error {
	if len(value) > 2 && a.reasoningIn == "" {
		a.reasoningIn = string(name)
	}
	if a.reasoningIn != string(name) {
		return nil
	}
	return a.say(messages.ItemReasoning, wire.Unquoted(value))
}

// active emits an empty delta: the server sends something that is not shown.
func (a *answer) active() {
	if a.emit != nil {
		a.emit(providers.Delta{})
	}
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
		return a.say(messages.ItemMessage, []byte(p.Text))
	}
	if p.Type == "thinking" {
		if text := wire.Unquoted(p.Thinking); text != nil {
			return a.say(messages.ItemReasoning, text)
		}
		return wire.Elements(p.Thinking, func(value []byte) error {
			var t struct{ Text string }
			_ = json.Unmarshal(value, &t)
			return a.say(messages.ItemReasoning, []byte(t.Text))
		})
	}
	return a.putRest([]byte("content"), append(append([]byte("["), value...), ']'))
}

// say continues the part of that kind and emits what can be shown.
func (a *answer) say(kind messages.ItemType, s []byte) error {
	if len(s) == 0 {
		return nil
	}
	if err := a.keep(len(s)); err != nil {
		return err
	}
	p := a.part(kind)
	p.text = append(p.text, s...)
	if a.emit == nil {
		return nil
	}
	switch kind {
	case messages.ItemMessage:
		a.emit(providers.Delta{Kind: providers.DeltaText, Text: a.p.endpoint.Scrub.Text(string(s))})
	case messages.ItemReasoning:
		a.emit(providers.Delta{Kind: providers.DeltaReasoning, Text: a.p.endpoint.Scrub.Text(string(s))})
	}
	return nil
}

func (a *answer) part(kind messages.ItemType) *part {
	if p := a.texts[kind]; p != nil {
		return p
	}
	p := &part{kind: kind}
	if a.texts == nil {
		a.texts = make(map[messages.ItemType]*part)
	}
	a.texts[kind] = p
	a.parts = append(a.parts, p)
	return p
}

// Whole reports whether an answer that names no reason to stop can be complete: it has parts,
// and the arguments of its calls are.
func (a *answer) Whole() bool {
	return len(a.parts) > 0 && !slices.ContainsFunc(a.parts, func(p *part) bool {
		return p.kind == messages.ItemCall && len(p.text) > 0 && !wire.Complete(p.text)
	})
}

// Response is the whole answer to r.
func (a *answer) Response(r providers.Request) (providers.Response, error) {
	if aborted[a.finish] {
		return providers.Response{}, wire.Complaint{Message: "the server gave up in the midst of the answer"}.InStream()
	}
	resp := providers.Response{Model: a.p.endpoint.Scrub.Text(a.model), Usage: a.usage}
	if len(a.rest.kids) > 0 && len(a.parts) == 0 {
		a.part(messages.ItemMessage)
	}
	slices.SortStableFunc(a.parts, func(p, q *part) int { return rank[p.kind] - rank[q.kind] })
	var ids wire.CallIDs
	if a.last != nil {
		ids = wire.NewCallIDs(r)
	}
	for _, p := range a.parts {
		if p.kind == messages.ItemCall && p.name == "" && p.form == "" {
			return resp, wire.BadAnswer("the answer has a tool call without a name")
		}
		it := a.item(p, ids)
		if it.Raw != nil || it.Type == messages.ItemReasoning {
			it.Model = r.Model
		}
		resp.Items = append(resp.Items, it)
	}
	resp.Finish = finish(a.p.endpoint.Scrub.Text(a.finish), a.last != nil)
	return resp, nil
}

// aborted are reasons to stop that are failures of the server.
var aborted = map[string]bool{"error": true, "insufficient_system_resource": true, "network_error": true}

// finishes are reasons to stop as some servers word them.
var finishes = map[string]string{
	"": "stop", "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop", "complete": "stop",
	"max_tokens": "length", "model_length": "length", "model_context_window_exceeded": "length", "function_call": "tool_calls", "tool_use": "tool_calls", "tool_call": "tool_calls",
	"safety": "content_filter", "recitation": "content_filter",
}

// finish returns the reason to stop in one wording. An answer with calls stopped for them,
// whatever the server says, unless it was cut off.
func finish(reason string, calls bool) string {
	reason = strings.ToLower(reason)
	if word, ok := finishes[reason]; ok {
		reason = word
	}
	switch {
	case reason == "stop" && calls:
		return "tool_calls"
	case reason == "tool_calls" && !calls:
		return "stop"
	}
	return reason
}

// rank is the order of an answer's items. The API has none: a message holds all.
var rank = map[messages.ItemType]int{messages.ItemReasoning: 1, messages.ItemMessage: 2, messages.ItemRefusal: 3, messages.ItemCall: 4}

func (a *answer) item(p *part, ids wire.CallIDs) messages.Item {
	scrub := a.p.endpoint.Scrub.Text
	it := messages.Item{Type: p.kind, Provider: a.p.name, Raw: a.p.endpoint.Scrub.JSON(a.raw(p))}
	if !json.Valid(it.Raw) { // empty, or a number was a secret
		it.Raw = nil
	}
	switch p.kind {
	case messages.ItemCall:
		it.Name, it.Arguments = scrub(p.name), string(a.p.endpoint.Scrub.JSON(p.text))
		if strings.TrimSpace(it.Arguments) == "" {
			it.Arguments = "{}"
		}
		id := scrub(p.id)
		if it.CallID = ids.Keep(id); string(it.CallID) != id {
			it.ID = id
		}
		if p.form != "" {
			it.Type = messages.ItemType(scrub(p.form) + "_call")
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
