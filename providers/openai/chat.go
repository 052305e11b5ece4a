package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// member is a member of a JSON object.
type member struct {
	key   string
	value []byte
}

// writer writes a JSON object. What extra holds is written in place of members of
// the same name.
type writer struct {
	b     []byte
	extra map[string]json.RawMessage
	first bool
}

func newWriter(size int, extra map[string]json.RawMessage) *writer {
	return &writer{b: append(make([]byte, 0, size), '{'), extra: extra, first: true}
}

// key begins a member, and reports whether its value is to follow.
func (w *writer) key(name string) bool {
	if _, other := w.extra[name]; other {
		return false
	}
	w.begin(name)
	return true
}

func (w *writer) begin(name string) {
	if !w.first {
		w.b = append(w.b, ',')
	}
	w.first = false
	w.b = append(wire.AppendString(w.b, name), ':')
}

func (w *writer) raw(name, value string) {
	if w.key(name) {
		w.b = append(w.b, value...)
	}
}

// text writes a text, unless it is empty.
func (w *writer) text(name, value string) {
	if value != "" && w.key(name) {
		w.b = wire.AppendString(w.b, value)
	}
}

func (w *writer) count(name string, n int) {
	if n != 0 {
		w.raw(name, strconv.Itoa(n))
	}
}

func (w *writer) number(name string, f *float32) {
	if f != nil {
		w.raw(name, strconv.FormatFloat(float64(*f), 'g', -1, 32))
	}
}

func (w *writer) flag(name string, v *bool) {
	if v != nil {
		w.raw(name, strconv.FormatBool(*v))
	}
}

// end writes the members of extra, and ends the object.
func (w *writer) end() []byte {
	for _, name := range slices.Sorted(maps.Keys(w.extra)) {
		w.begin(name)
		w.b = append(w.b, w.extra[name]...)
	}
	return append(w.b, '}')
}

// chatBody returns the body of a request to Chat Completions.
func (p *Provider) chatBody(r providers.Request, rules profile.Rules) ([]byte, error) {
	list, err := p.render(r, rules)
	if err != nil {
		return nil, err
	}
	choice, err := toolChoice(r, false)
	if err != nil {
		return nil, err
	}
	s := r.Settings
	extra, err := p.extraBody(s, rules)
	if err != nil {
		return nil, err
	}
	w := newWriter(wire.Size(r)+len(list)*messageSize+bodySize, extra)
	w.text("model", r.Model)
	if w.key("messages") {
		w.b = append(w.b, '[')
		for i := range list {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.b = list[i].append(w.b, rules)
		}
		w.b = append(w.b, ']')
	}
	if err := w.tools(r.Tools, nil, false); err != nil {
		return nil, err
	}
	if choice != "" {
		w.raw("tool_choice", choice)
	}
	w.count(string(rules.TokenLimit), s.MaxOutputTokens)
	w.number("temperature", s.Temperature)
	w.number("top_p", s.TopP)
	w.number("presence_penalty", s.PresencePenalty)
	w.number("frequency_penalty", s.FrequencyPenalty)
	w.effort(string(rules.Effort), s.ReasoningEffort)
	w.text("verbosity", s.Verbosity)
	w.text("service_tier", s.ServiceTier)
	w.text("prompt_cache_key", s.CacheKey)
	if s.Seed != nil {
		w.raw(string(rules.Seed), strconv.FormatInt(*s.Seed, 10))
	}
	if len(s.Stop) > 0 && w.key("stop") {
		w.b = appendStrings(w.b, s.Stop)
	}
	if len(r.Tools) > 0 {
		w.flag("parallel_tool_calls", s.ParallelToolCalls)
	}
	w.raw("stream", "true")
	if rules.StreamUsage == profile.Yes {
		w.raw("stream_options", `{"include_usage":true}`)
	}
	return w.end(), nil
}

// merged returns the members of both; those of b replace those of a.
func merged(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	if len(b) == 0 {
		return a
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// What a message, and what a request, takes beside its texts: about that many bytes.
const (
	messageSize = 64
	bodySize    = 512
)

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, s)
	}
	return append(b, ']')
}

// effort writes the reasoning effort as the member that the rules name.
func (w *writer) effort(name, effort string) {
	outer, inner, nested := strings.Cut(name, ".")
	switch {
	case effort == "":
	case nested:
		w.raw(outer, `{"`+inner+`":`+string(wire.AppendString(nil, effort))+`}`)
	default:
		w.text(name, effort)
	}
}

// tools writes the tools of a request, and those that the server runs. flat is the form of the
// Responses API, where a schema is strict unless it is said otherwise.
func (w *writer) tools(list []providers.ToolSpec, hosted []json.RawMessage, flat bool) error {
	if len(list)+len(hosted) == 0 || !w.key("tools") {
		return nil
	}
	w.b = append(w.b, '[')
	for i, t := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		parameters := []byte(t.Parameters)
		if len(parameters) == 0 {
			parameters = noParameters
		}
		if !json.Valid(parameters) {
			return wire.Invalid("the parameters of tool " + t.Name + " are no JSON schema")
		}
		begin, end := `{"type":"function","function":{"name":`, "}}"
		if flat {
			begin, end = `{"type":"function","strict":false,"name":`, "}"
		}
		w.b = append(w.b, begin...)
		w.b = wire.AppendString(w.b, t.Name)
		if t.Description != "" {
			w.b = wire.AppendString(append(w.b, `,"description":`...), t.Description)
		}
		w.b = append(append(w.b, `,"parameters":`...), parameters...)
		w.b = append(w.b, end...)
	}
	var err error
	if w.b, err = appendHosted(w.b, hosted); err != nil {
		return err
	}
	w.b = append(w.b, ']')
	return nil
}

// append writes m.
func (m *chatMessage) append(b []byte, rules profile.Rules) []byte {
	b = append(append(append(b, `{"role":"`...), m.role...), '"')
	b = m.appendContent(b, rules)
	required := rules.ReasoningRequired == profile.Yes && m.role == assistant
	if rules.ReasoningIn != profile.Content && (m.reasoning != "" || required) {
		b = append(wire.AppendString(append(b, ','), string(rules.ReasoningIn)), ':')
		b = wire.AppendString(b, m.reasoning)
	}
	if m.role == toolRole {
		b = wire.AppendString(append(b, `,"tool_call_id":`...), wire.SentID(m.call, rules.CallIDs))
	}
	b = m.appendCalls(b, rules)
	return append(appendMembers(b, m.echo), '}')
}

func (m *chatMessage) appendCalls(b []byte, rules profile.Rules) []byte {
	if len(m.calls) == 0 {
		return b
	}
	b = append(b, `,"tool_calls":[`...)
	for i, c := range m.calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(append(b, `{"id":`...), wire.SentID(c.id, rules.CallIDs))
		b = wire.AppendString(append(b, `,"type":"function","function":{"name":`...), c.name)
		b = append(wire.AppendString(append(b, `,"arguments":`...), c.arguments), '}')
		b = append(appendMembers(b, c.echo), '}')
	}
	return append(b, ']')
}

func appendMembers(b []byte, list []member) []byte {
	for _, m := range list {
		b = append(append(wire.AppendString(append(b, ','), m.key), ':'), m.value...)
	}
	return b
}

func (m *chatMessage) appendContent(b []byte, rules profile.Rules) []byte {
	switch {
	case m.reasoning != "" && rules.ReasoningIn == profile.Content:
		b = wire.AppendString(append(b, `,"content":[{"type":"thinking","thinking":[{"type":"text","text":`...), m.reasoning)
		if b = append(b, "}]}"...); m.text != "" {
			b = append(wire.AppendString(append(b, `,{"type":"text","text":`...), m.text), '}')
		}
		return append(b, ']')
	case m.parts != nil:
		b = append(b, `,"content":[`...)
		for i, p := range m.parts {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendPart(b, p)
		}
		return append(b, ']')
	case m.text != "":
		return wire.AppendString(append(b, `,"content":`...), m.text)
	case rules.Content == profile.Null:
		return append(b, `,"content":null`...)
	case rules.Content == profile.Empty:
		return append(b, `,"content":""`...)
	}
	return b
}

func appendPart(b []byte, p messages.Part) []byte {
	if !wire.IsImage(p) {
		return append(wire.AppendString(append(b, `{"type":"text","text":`...), p.Text), '}')
	}
	b = wire.AppendString(append(b, `{"type":"image_url","image_url":{"url":`...), p.ImageURL)
	if p.Detail != "" {
		b = wire.AppendString(append(b, `,"detail":`...), p.Detail)
	}
	return append(b, "}}"...)
}

// chosen returns those members of a JSON object that have one of the names.
func chosen(raw []byte, names []string) (list []member) {
	if len(names) == 0 || !json.Valid(raw) {
		return nil
	}
	_ = wire.Members(raw, func(key, value []byte) error {
		if slices.Contains(names, string(key)) {
			list = slices.DeleteFunc(list, func(m member) bool { return m.key == string(key) })
			list = append(list, member{string(key), value})
		}
		return nil
	})
	return list
}
