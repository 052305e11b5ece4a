package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
)

// output gathers the events of an answer of the Responses API. The pieces of an item are
// shown as they come; the item itself is taken from the event that ends it, or from the whole
// response at the end, which some servers alone make complete.
type output struct {
	p      *Provider
	emit   func(providers.Delta)
	keep   func(n int) error // claims memory for n more bytes
	id     string
	model  string
	status string // empty until the answer is over
	reason string // why it is incomplete
	usage  messages.Usage
	items  [][]byte // by output_index
	kept   int      // bytes of items
	spoken bool     // pieces have been shown
}

// outputEvent is an event of a streamed response, or a response in one document.
type outputEvent struct {
	kind                             string
	delta, item, response, documents []byte
	index, summary                   int
}

func (o *output) Ended() bool           { return o.status != "" }
func (o *output) Over() bool            { return o.Ended() }
func (o *output) Whole() bool           { return o.Ended() }
func (o *output) Usage() messages.Usage { return o.usage }

// Add takes in an event, or a response in one document.
func (o *output) Add(data []byte) error {
	if !json.Valid(data) {
		return wire.BadAnswer("a chunk of the answer is no JSON")
	}
	var e outputEvent
	_ = wire.Members(data, func(key, value []byte) error {
		e.set(string(key), value)
		return nil
	})
	switch e.kind {
	case "response.output_text.delta":
		o.show(providers.DeltaText, wire.Text(e.delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		o.show(providers.DeltaReasoning, wire.Text(e.delta))
	case "response.reasoning_summary_part.added":
		if e.summary > 0 {
			o.show(providers.DeltaReasoning, "\n\n")
		}
	case "response.output_item.done":
		return o.put(e.index, e.item)
	case "response.completed", "response.incomplete", "response.failed":
		return o.finish(e.response)
	case "error":
		return o.complaint(data)
	case "":
		if e.documents == nil {
			return o.complaint(data)
		}
		return o.document(data)
	default:
		if o.emit != nil {
			o.emit(providers.Delta{}) // the arguments of a call, a step of a hosted tool
		}
	}
	return nil
}

func (e *outputEvent) set(key string, value []byte) {
	switch key {
	case "type":
		e.kind = wire.Text(value)
	case "delta":
		e.delta = value
	case "item":
		e.item = value
	case "response":
		e.response = value
	case "output":
		e.documents = value
	case "output_index":
		e.index, _ = strconv.Atoi(string(value)) // what is no number is the first
	case "summary_index":
		e.summary, _ = strconv.Atoi(string(value))
	}
}

func (o *output) show(kind providers.DeltaKind, piece string) {
	if piece == "" {
		return
	}
	o.spoken = true
	if o.emit != nil {
		o.emit(providers.Delta{Kind: kind, Text: o.p.endpoint.Scrub.Text(piece)})
	}
}

// put keeps an item that is complete.
func (o *output) put(index int, item []byte) error {
	if index < 0 || index >= maxParts {
		return wire.BadAnswer(fmt.Sprintf("the answer has %d items or more", maxParts))
	}
	if err := o.hold(len(item)); err != nil {
		return err
	}
	for len(o.items) <= index {
		o.items = append(o.items, nil)
	}
	o.items[index] = bytes.Clone(item)
	return nil
}

// hold claims memory for an item of n bytes.
func (o *output) hold(n int) error {
	o.kept += n + wire.PartSize
	return o.keep(n + wire.PartSize)
}

// complaint returns the error that an event is.
func (o *output) complaint(data []byte) error {
	if c, ok := wire.ReadComplaint([]byte(o.p.endpoint.Scrub.Text(string(data)))); ok {
		return c.InStream()
	}
	return nil
}

// finish takes in the whole response.
func (o *output) finish(response []byte) error {
	var items [][]byte
	size := 0
	_ = wire.Members(response, func(key, value []byte) error {
		switch string(key) {
		case "id":
			o.id = wire.Text(value)
		case "model":
			o.model = wire.Text(value)
		case "status":
			o.status = wire.Text(value)
		case "usage":
			o.use(value)
		case "incomplete_details":
			o.reason = wire.Text(wire.LookUp(value, "reason"))
		case "output":
			return wire.Elements(value, func(item []byte) error {
				items = append(items, item)
				size += len(item) + wire.PartSize
				return nil
			})
		}
		return nil
	})
	if o.status != "completed" && o.status != "incomplete" {
		if err := o.complaint(response); err != nil {
			return err
		}
		return wire.Complaint{Message: "the server gave up in the midst of the answer"}.InStream()
	}
	if len(items) == 0 {
		return nil
	}
	if len(items) > maxParts {
		return wire.BadAnswer(fmt.Sprintf("the answer has %d items or more", maxParts))
	}
	if more := size - o.kept; more > 0 {
		if err := o.keep(more); err != nil {
			return err
		}
	}
	o.items = items // the last event is not overwritten
	return nil
}

// document takes in a response that is not streamed, and shows it.
func (o *output) document(data []byte) error {
	if err := o.finish(data); err != nil {
		return err
	}
	for _, item := range o.items {
		switch s := said(item); {
		case s.Type == "message" && !s.refuses():
			o.show(providers.DeltaText, s.text())
		case s.Type == "reasoning":
			o.show(providers.DeltaReasoning, s.text())
		}
	}
	return nil
}

func (o *output) use(value []byte) {
	var u struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		In     struct {
			Cached     int `json:"cached_tokens"`
			CacheWrite int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	if json.Unmarshal(value, &u) == nil {
		o.usage = messages.Usage{Input: u.Input, Output: u.Output, Cached: u.In.Cached, CacheWrite: u.In.CacheWrite, Reasoning: u.Out.Reasoning}
	}
}

// Response is the whole answer to r.
func (o *output) Response(r providers.Request) (providers.Response, error) {
	scrub := o.p.endpoint.Scrub.Text
	resp := providers.Response{Model: scrub(o.model), Usage: o.usage}
	ids, calls := wire.NewCallIDs(r), false
	for _, raw := range o.items {
		if raw == nil {
			continue
		}
		it, err := o.item(raw, ids)
		if err != nil {
			return resp, err
		}
		it.Model, it.ID = r.Model, scrub(o.id)
		calls = calls || it.Type == messages.ItemCall
		resp.Items = append(resp.Items, it)
	}
	if len(resp.Items) == 0 && o.spoken {
		return resp, wire.BadAnswer("the server sent pieces of an answer and no item of it")
	}
	reason := o.reason
	if reason == "max_output_tokens" {
		reason = messages.FinishLength
	}
	resp.Finish = scrub(finish(reason, calls))
	return resp, nil
}

// outputItem is what we read of an item.
type outputItem struct {
	Type, Name, Arguments string
	CallID                string `json:"call_id"`
	Content               []struct{ Type, Text, Refusal string }
	Summary               []struct{ Text string }
}

// said returns what can be read of an item. Members of other types are left out.
func said(raw []byte) (s outputItem) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// text returns the text of a message or of reasoning.
func (s outputItem) text() string {
	var texts []string
	for _, part := range s.Summary {
		texts = append(texts, part.Text)
	}
	separator := "\n\n"
	if s.Type == "message" || texts == nil {
		separator = ""
		for _, part := range s.Content {
			texts = append(texts, part.Text+part.Refusal)
		}
	}
	return strings.Join(texts, separator)
}

func (s outputItem) refuses() bool {
	for _, part := range s.Content {
		if part.Type == "refusal" {
			return true
		}
	}
	return false
}

// item makes an item of one of the answer.
func (o *output) item(raw []byte, ids wire.CallIDs) (messages.Item, error) {
	s, scrub := said(raw), o.p.endpoint.Scrub.Text
	it := messages.Item{Type: messages.ItemType(scrub(s.Type)), Provider: o.p.name, Raw: json.RawMessage(scrub(string(raw)))}
	if !json.Valid(it.Raw) { // a number was a secret
		it.Raw = nil
	}
	switch it.Type {
	case "", messages.ItemCallOutput, messages.ItemRefusal:
		return it, wire.BadAnswer(fmt.Sprintf("the answer has an item of type %q", s.Type))
	case messages.ItemMessage:
		it.Role = messages.RoleAssistant
		if s.refuses() {
			it.Type = messages.ItemRefusal
		}
	case messages.ItemCall:
		if s.Name == "" {
			return it, wire.BadAnswer("the answer has a tool call without a name")
		}
		if len(s.Name)+len(s.CallID) > maxName {
			return it, wire.BadAnswer(fmt.Sprintf("a tool call has a name, an id or a type of more than %d bytes", maxName))
		}
		it.CallID, it.Name, it.Arguments = ids.Keep(scrub(s.CallID)), scrub(s.Name), scrub(cmp.Or(strings.TrimSpace(s.Arguments), "{}"))
		return it, nil
	case messages.ItemReasoning:
	default:
		if len(s.Type) > maxName {
			return it, wire.BadAnswer(fmt.Sprintf("an item has a type of more than %d bytes", maxName))
		}
		return it, nil
	}
	if t := s.text(); t != "" {
		it.Content = messages.TextContent(scrub(t))
	}
	return it, nil
}
