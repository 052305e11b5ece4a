package openai

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
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
	begun  map[string]bool // the items that were added, by type and id
	done   []doneItem      // in the order in which they ended
	at     map[string]int  // where each is in done, by type and id, or by the sum of one without an id
	kept   int             // bytes of done
	items  [][]byte        // of the whole answer
	shown  map[providers.DeltaKind]bool

	previous string // the answer that the request names; "": none
	ignored  bool   // the server ignored that name
	unstored bool   // the server does not store this answer
}

// doneItem is an item that has ended. Some servers number none, or several alike.
type doneItem struct {
	index int
	raw   []byte
}

// outputEvent is an event of a streamed response, or a response in one document.
type outputEvent struct {
	kind                             string
	delta, item, response, documents []byte
	index                            string
	summary                          int
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
	case "response.created", "response.in_progress":
		return o.follows(e.response)
	case "response.output_item.added":
		return o.begin(e)
	case "response.output_item.done":
		return o.put(e)
	case "response.completed", "response.incomplete", "response.failed":
		return o.finish(strings.TrimPrefix(e.kind, "response."), e.response)
	case "error":
		return o.failure(data)
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
		e.index = string(value)
	case "summary_index":
		e.summary, _ = strconv.Atoi(string(value))
	}
}

func (o *output) show(kind providers.DeltaKind, piece string) {
	if piece == "" {
		return
	}
	if o.shown == nil {
		o.shown = make(map[providers.DeltaKind]bool)
	}
	o.shown[kind] = true
	if o.emit != nil {
		o.emit(providers.Delta{Kind: kind, Text: o.p.endpoint.Scrub.Text(piece)})
	}
}

// begin notes that an item is to follow.
func (o *output) begin(e outputEvent) error {
	if !bytes.HasPrefix(e.item, []byte("{")) {
		return nil
	}
	if o.begun == nil {
		o.begun = make(map[string]bool)
	}
	kind, id := nameOf(e.item)
	name := kind + " " + cmp.Or(id, e.index)
	o.begun[name] = true
	return o.keep(len(name) + wire.PartSize)
}

// nameOf returns the type and the id of an item. The id of a call is that of its result.
func nameOf(item []byte) (kind, id string) {
	text := func(name string) string { return wire.Text(wire.LookUp(item, name)) }
	return text("type"), cmp.Or(text("call_id"), text("id"))
}

// put keeps an item that is complete.
func (o *output) put(e outputEvent) error {
	name, id := nameOf(e.item)
	if name += " " + id; id == "" {
		sum := sha256.Sum256(e.item)
		name = string(sum[:])
	}
	if err := o.hold(len(e.item) + len(name)); err != nil {
		return err
	}
	index, err := strconv.Atoi(e.index)
	if err != nil && len(o.done) > 0 {
		index = o.done[len(o.done)-1].index
	}
	item := doneItem{index, bytes.Clone(e.item)}
	if i, again := o.at[name]; again {
		o.done[i] = item
		return nil
	}
	if o.at == nil {
		o.at = make(map[string]int)
	}
	o.at[name] = len(o.done)
	o.done = append(o.done, item)
	return room(len(o.done))
}

// room returns an error if an answer has too many items.
func room(items int) error {
	if items > maxParts {
		return wire.BadAnswer(fmt.Sprintf("the answer has more than %d items", maxParts))
	}
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

// failure returns the error of an answer that has failed.
func (o *output) failure(data []byte) error {
	if err := o.complaint(data); err != nil {
		return err
	}
	return wire.Complaint{Message: "the server gave up in the midst of the answer"}.InStream()
}

// finish takes in the whole response. how is the word of its event for how it ended, "" if it
// has no event: what that calls failed or incomplete is so, and no status is needed beside it.
func (o *output) finish(how string, response []byte) error {
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
		case "store":
			o.unstored = string(value) == "false"
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
	if how == "failed" || how != "" && (o.status == "completed" || o.status == "") {
		o.status = how
	}
	if o.status != "completed" && o.status != "incomplete" || !bytes.HasPrefix(response, []byte("{")) {
		return o.failure(response)
	}
	if len(o.id)+len(o.model) > maxName { // each item has both
		return wire.BadAnswer(fmt.Sprintf("the answer has an id or a model of more than %d bytes", maxName))
	}
	if err := o.follows(response); err != nil {
		return err
	}
	return o.choose(items, size)
}

// follows returns an error if a response does not repeat the name of the answer that the request
// names.
func (o *output) follows(response []byte) error {
	if o.previous == "" || !bytes.HasPrefix(response, []byte("{")) || wire.Text(wire.LookUp(response, "previous_response_id")) == o.previous {
		return nil
	}
	o.ignored = true
	return &providers.Error{Kind: providers.BadAnswer, Temporary: true, Message: "the server ignored previous_response_id, so that the model saw a part of the history"}
}

// choose takes the items of the whole response, which are better than those that ended before,
// unless there are fewer. size is what they take.
func (o *output) choose(items [][]byte, size int) error {
	if err := room(len(items)); err != nil {
		return err
	}
	if len(items) >= len(o.done) {
		o.items = items // the last event is not overwritten
		return o.keep(max(0, size-o.kept))
	}
	slices.SortStableFunc(o.done, func(a, b doneItem) int { return cmp.Compare(a.index, b.index) })
	for _, item := range o.done {
		o.items = append(o.items, item.raw)
	}
	return nil
}

// cutOff returns the reason to stop of an answer that is incomplete, and "" for others.
func (o *output) cutOff() string {
	switch {
	case o.reason == messages.FinishFilter:
		return messages.FinishFilter
	case o.reason != "", o.status == "incomplete":
		return messages.FinishLength
	}
	return ""
}

// lacks reports whether an answer of these items lacks a call that was begun, a text that was
// shown, or all.
func (o *output) lacks(items []messages.Item) bool {
	spoke, calls := false, 0
	for _, it := range items {
		spoke = spoke || it.Type == messages.ItemMessage || it.Type == messages.ItemRefusal
		if it.Type == messages.ItemCall {
			calls++
		}
	}
	for name := range o.begun {
		if strings.HasPrefix(name, string(messages.ItemCall)+" ") {
			calls--
		}
	}
	switch o.cutOff() {
	case "":
		return calls < 0 || o.shown[providers.DeltaText] && !spoke || len(items) == 0 && len(o.shown)+len(o.begun) > 0
	case messages.FinishLength:
		return len(items) == 0 && len(o.shown) > 0
	}
	return false
}

// document takes in a response that is not streamed, and shows it.
func (o *output) document(data []byte) error {
	if err := o.finish("", data); err != nil {
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
		Input  wire.Count `json:"input_tokens"`
		Output wire.Count `json:"output_tokens"`
		In     struct {
			Cached     wire.Count `json:"cached_tokens"`
			CacheWrite wire.Count `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning wire.Count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	_ = json.Unmarshal(value, &u) // members of other types are left out
	o.usage = messages.Usage{
		Input: int(u.Input), Output: int(u.Output), Cached: int(u.In.Cached),
		CacheWrite: int(u.In.CacheWrite), Reasoning: int(u.Out.Reasoning),
	}
}

// Response is the whole answer to r.
func (o *output) Response(r providers.Request) (providers.Response, error) {
	scrub := o.p.endpoint.Scrub.Text
	resp := providers.Response{Model: scrub(o.model), Usage: o.usage}
	ids, calls := wire.NewCallIDs(r), false
	for _, raw := range o.items {
		it, err := o.item(raw, ids)
		if err != nil {
			return resp, err
		}
		it.Model, it.ID = r.Model, scrub(o.id)
		calls = calls || it.Type == messages.ItemCall
		resp.Items = append(resp.Items, it)
	}
	if o.lacks(resp.Items) {
		return resp, &providers.Error{Kind: providers.BadAnswer, Temporary: true, Message: "the answer lacks an item that the server has begun"}
	}
	resp.Finish = finish(o.cutOff(), calls)
	return resp, nil
}

// outputItem is what we read of an item.
type outputItem struct {
	Type, Name string
	CallID     string `json:"call_id"`
	Arguments  json.RawMessage
	Content    outputContent
	Summary    []struct{ Text string }
}

// outputContent is the content of a message: a list of parts, or a text alone.
type outputContent []outputPart

type outputPart struct{ Type, Text, Refusal string }

// UnmarshalJSON returns nil. What is neither is empty.
func (c *outputContent) UnmarshalJSON(b []byte) error {
	var parts []outputPart
	if text := wire.Text(b); text != "" {
		parts = []outputPart{{Text: text}}
	} else {
		_ = json.Unmarshal(b, &parts)
	}
	*c = parts
	return nil
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

// arguments returns those of a call, which some servers write as the object itself; ok is
// false where they are neither that nor a text.
func (s outputItem) arguments() (text string, ok bool) {
	text = strings.TrimSpace(wire.Text(s.Arguments))
	switch given := string(s.Arguments); {
	case given == "", given == "null", given[0] == '"':
		return cmp.Or(text, "{}"), true
	default:
		return given, given[0] == '{'
	}
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
	it := messages.Item{Type: messages.ItemType(scrub(s.Type)), Provider: o.p.name, Raw: o.p.endpoint.Scrub.JSON(raw)}
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
		return o.call(it, s, ids)
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

// call makes an item of a call.
func (o *output) call(it messages.Item, s outputItem, ids wire.CallIDs) (messages.Item, error) {
	if s.Name == "" {
		return it, wire.BadAnswer("the answer has a tool call without a name")
	}
	if len(s.Name)+len(s.CallID) > maxName {
		return it, wire.BadAnswer(fmt.Sprintf("a tool call has a name, an id or a type of more than %d bytes", maxName))
	}
	arguments, ok := s.arguments()
	if !ok {
		return it, wire.BadAnswer("the arguments of a tool call are neither a text nor an object")
	}
	scrub := o.p.endpoint.Scrub.Text
	it.CallID, it.Name, it.Arguments = ids.Keep(scrub(s.CallID)), scrub(s.Name), string(o.p.endpoint.Scrub.JSON([]byte(arguments)))
	return it, nil
}
