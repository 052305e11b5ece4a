package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/anthropics/anthropic-sdk-go"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
)

// answer gathers the events of one streamed answer. A block is what its first event has, with the
// pieces of its members that follow.
// https://platform.claude.com/docs/en/build-with-claude/streaming
type answer struct {
	p         *Provider
	emit      func(providers.Delta)
	keep      func(n int) error // claims memory for n more bytes
	id, model string
	reason    string // why the answer ended
	declined  string // the server's explanation of a refusal
	over      bool
	usage     messages.Usage
	blocks    []*block // by index
}

// block is a block of content on its way.
type block struct {
	kind  string
	head  []byte // as it began
	grown []growth
}

// growth is a member of a block that comes in pieces.
type growth struct {
	key   string
	text  []byte
	items []json.RawMessage // of a list
}

const (
	maxBlocks = 10_000  // more than an answer may have
	maxName   = 4 << 10 // more bytes than the name of a tool, an id or a type may have
)

// The reasons to stop as the contract of providers words them.
const paused = string(api.StopReasonPauseTurn)

var finishes = map[string]string{
	string(api.StopReasonEndTurn): messages.FinishStop, string(api.StopReasonStopSequence): messages.FinishStop,
	string(api.StopReasonToolUse): messages.FinishCalls, string(api.StopReasonMaxTokens): messages.FinishLength,
	string(api.StopReasonModelContextWindowExceeded): messages.FinishLength,
}

// Ended reports whether the server has named a reason to stop.
func (a *answer) Ended() bool { return a.reason != "" }

// Over reports whether the last event has come.
func (a *answer) Over() bool { return a.over && a.Ended() }

// Whole reports false: a whole answer names its reason to stop.
func (a *answer) Whole() bool { return false }

// Usage returns what has been consumed so far.
func (a *answer) Usage() messages.Usage { return a.usage }

// Add takes in an event, or a message in one document.
func (a *answer) Add(data []byte) error {
	if !json.Valid(data) {
		return wire.BadAnswer("an event of the answer is no JSON")
	}
	var e event
	_ = wire.Members(data, e.member)
	switch e.kind {
	case "message_start":
		return a.begin(e.message)
	case "content_block_start":
		return a.start(e.index, e.block)
	case "content_block_delta":
		return a.grow(e.index, e.delta)
	case "message_delta":
		a.use(e.usage)
		return a.end(e.delta)
	case "message_stop":
		a.over = true
	case "message":
		return a.document(data)
	case "error", "":
		if c, ok := wire.ReadComplaint([]byte(a.p.endpoint.Scrub.Text(string(data)))); ok {
			return c.InStream()
		}
	}
	return nil
}

// event is what we read of an event.
type event struct {
	kind                         string
	index                        int
	message, block, delta, usage []byte
}

func (e *event) member(key, value []byte) error {
	switch string(key) {
	case "type":
		e.kind = wire.Text(value)
	case "index":
		e.index, _ = strconv.Atoi(string(value)) // what is no number is the first
	case "message":
		e.message = value
	case "content_block":
		e.block = value
	case "delta":
		e.delta = value
	case "usage":
		e.usage = value
	}
	return nil
}

func (a *answer) begin(message []byte) error {
	return wire.Members(message, func(key, value []byte) error {
		switch string(key) {
		case "id":
			a.id = wire.Text(value)
		case "model":
			a.model = wire.Text(value)
		case "usage":
			a.use(value)
		}
		return short(a.id, a.model)
	})
}

// short returns an error if names are longer than those of a server that behaves.
func short(names ...string) error {
	for _, n := range names {
		if len(n) > maxName {
			return wire.BadAnswer(fmt.Sprintf("the answer has a type, a name or an id of more than %d bytes", maxName))
		}
	}
	return nil
}

// end takes in the reason to stop, of an event or a document.
func (a *answer) end(o []byte) error {
	if reason := wire.Text(wire.LookUp(o, "stop_reason")); reason != "" {
		a.reason = reason
	}
	if err := short(a.reason); err != nil {
		return err
	}
	if details := wire.LookUp(o, "stop_details"); details != nil {
		a.declined = wire.Text(wire.LookUp(details, "explanation"))
	}
	return a.keep(len(a.declined))
}

// use reads the usage. Later ones count from the start, and may lack what has not changed.
func (a *answer) use(value []byte) {
	var u struct {
		Input   *int `json:"input_tokens"`
		Written *int `json:"cache_creation_input_tokens"`
		Read    *int `json:"cache_read_input_tokens"`
		Output  *int `json:"output_tokens"`
		Details struct {
			Thinking *int `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
	if json.Unmarshal(value, &u) != nil {
		return
	}
	now := &a.usage
	fresh := now.Input - now.Cached - now.CacheWrite // the API does not count those of the cache
	for at, n := range map[*int]*int{&fresh: u.Input, &now.CacheWrite: u.Written, &now.Cached: u.Read, &now.Output: u.Output, &now.Reasoning: u.Details.Thinking} {
		if n != nil {
			*at = *n
		}
	}
	now.Input = fresh + now.Cached + now.CacheWrite
}

// document takes in a message that is not streamed, and shows it.
func (a *answer) document(message []byte) error {
	if err := a.begin(message); err != nil {
		return err
	}
	a.over = true
	index := 0
	err := wire.Elements(wire.LookUp(message, "content"), func(value []byte) error {
		index++
		return a.start(index-1, value)
	})
	if err != nil {
		return err
	}
	return a.end(message)
}

// start takes in the beginning of a block.
func (a *answer) start(index int, head []byte) error {
	if index < 0 || index >= maxBlocks {
		return wire.BadAnswer(fmt.Sprintf("the answer has %d blocks or more", maxBlocks))
	}
	if len(head) == 0 || head[0] != '{' {
		return wire.BadAnswer("a block of the answer is no object")
	}
	if err := a.keep(len(head) + wire.PartSize); err != nil {
		return err
	}
	for len(a.blocks) <= index {
		a.blocks = append(a.blocks, nil)
	}
	b := &block{kind: wire.Text(wire.LookUp(head, "type")), head: append([]byte(nil), head...)}
	a.blocks[index] = b
	a.show(b.kind, wire.Text(wire.LookUp(head, shown[b.kind])))
	return nil
}

// shown are the members of blocks that are shown.
var shown = map[string]string{"text": "text", "thinking": "thinking"}

func (a *answer) show(kind, piece string) {
	d := providers.Delta{Text: a.p.endpoint.Scrub.Text(piece)}
	switch {
	case piece == "":
	case kind == "thinking":
		d.Kind = providers.DeltaReasoning
	default:
		d.Kind = providers.DeltaText
	}
	a.emit(d)
}

// grow adds a piece to a block: its strings continue those of the block, and other values are
// elements of lists.
func (a *answer) grow(index int, delta []byte) error {
	if index < 0 || index >= len(a.blocks) || a.blocks[index] == nil {
		return wire.BadAnswer("the answer has a piece of a block that has not begun")
	}
	b := a.blocks[index]
	return wire.Members(delta, func(key, value []byte) error {
		name := string(key)
		switch {
		case name == "type" || wire.Null(value):
			return nil
		case name == "partial_json":
			name = "input"
		case name == "citation":
			name = "citations"
		}
		if known, ok := grows[b.kind]; ok && !slices.Contains(known, name) {
			return nil // it is about the piece, such as a number of tokens
		}
		if err := a.keep(len(value)); err != nil {
			return err
		}
		g, err := b.member(name)
		if err != nil {
			return err
		}
		if value[0] != '"' {
			g.items = append(g.items, append(json.RawMessage(nil), value...))
			return nil
		}
		piece := wire.Unquoted(value)
		g.text = append(g.text, piece...)
		if shown[b.kind] == name {
			a.show(b.kind, string(piece))
		} else {
			a.emit(providers.Delta{})
		}
		return nil
	})
}

// grows are the members of blocks that come in pieces. Blocks of other types may have any.
var grows = map[string][]string{"text": {"text", "citations"}, "thinking": {"thinking", "signature"}, "tool_use": {"input"}, "server_tool_use": {"input"}}

// maxGrown is more members than a block may have that come in pieces.
const maxGrown = 16

// member returns what has come of a member, which may have begun with the block.
func (b *block) member(name string) (*growth, error) {
	for i := range b.grown {
		if b.grown[i].key == name {
			return &b.grown[i], nil
		}
	}
	if len(b.grown) == maxGrown || len(name) > maxName {
		return nil, wire.BadAnswer(fmt.Sprintf("a block of the answer has %d members or more in pieces, or a long name", maxGrown))
	}
	begun := wire.LookUp(b.head, name)
	g := growth{key: name, text: append([]byte(nil), wire.Unquoted(begun)...)}
	_ = wire.Elements(begun, func(value []byte) error {
		g.items = append(g.items, append(json.RawMessage(nil), value...))
		return nil
	})
	b.grown = append(b.grown, g)
	return &b.grown[len(b.grown)-1], nil
}

// members returns the block as a whole. Input that is no JSON object is left out.
func (b *block) members() map[string]json.RawMessage {
	whole := make(map[string]json.RawMessage)
	_ = json.Unmarshal(b.head, &whole) // it is an object
	for _, g := range b.grown {
		switch {
		case g.items != nil:
			whole[g.key] = wire.List(g.items)
		case g.key != "input":
			whole[g.key] = wire.AppendString(nil, string(g.text))
		case wire.Complete(g.text):
			whole[g.key] = g.text
		case len(g.text) > 0:
			delete(whole, g.key)
		}
	}
	return whole
}

// Response returns the whole answer to r.
func (a *answer) Response(r providers.Request) (providers.Response, error) {
	scrub := a.p.endpoint.Scrub.Text
	resp := providers.Response{Model: scrub(a.model), Usage: a.usage, Finish: scrub(a.reason)}
	ids, calls := wire.NewCallIDs(r), false
	for _, b := range a.blocks {
		if b == nil {
			continue
		}
		it, err := a.item(b, ids)
		if err != nil {
			return resp, err
		}
		if it.Type == messages.ItemMessage && it.Raw == nil && it.Content.Text() == "" {
			continue
		}
		if it.Raw != nil {
			it.Model = r.Model
		}
		if it.Type == messages.ItemCall && a.reason == messages.FinishRefusal {
			continue // it may not be whole, and is not to run
		}
		calls = calls || it.Type == messages.ItemCall
		resp.Items = append(resp.Items, it)
	}
	if a.declined != "" {
		resp.Items = append(resp.Items, messages.Item{Type: messages.ItemRefusal, Role: messages.RoleAssistant,
			Content: messages.TextContent(scrub(a.declined)), Provider: a.p.name, ID: scrub(a.id)})
	}
	if word, ok := finishes[a.reason]; ok {
		resp.Finish = word
	}
	switch {
	case resp.Finish == messages.FinishStop && calls:
		resp.Finish = messages.FinishCalls
	case resp.Finish == messages.FinishCalls && !calls:
		resp.Finish = messages.FinishStop
	}
	return resp, nil
}

// item makes an item of a block.
func (a *answer) item(b *block, ids wire.CallIDs) (messages.Item, error) {
	scrub := a.p.endpoint.Scrub.Text
	whole := b.members()
	text := func(name string) string { return scrub(wire.Text(whole[name])) }
	if err := short(b.kind, string(whole["name"])+string(whole["id"])); err != nil {
		return messages.Item{}, err
	}
	it := messages.Item{Type: kind(scrub(b.kind)), Provider: a.p.name, ID: scrub(a.id)}
	if it.Type == "" {
		return it, wire.BadAnswer(fmt.Sprintf("the answer has a block of type %q", b.kind))
	}
	if !b.covered(whole) {
		it.Raw, _ = json.Marshal(whole) // all members are JSON
		if it.Raw = a.p.endpoint.Scrub.JSON(it.Raw); !json.Valid(it.Raw) {
			it.Raw = nil // a number was a secret
		}
	}
	switch b.kind {
	case "text":
		it.Role, it.Content = messages.RoleAssistant, messages.TextContent(text("text"))
	case "thinking":
		if t := text("thinking"); t != "" {
			it.Content = messages.TextContent(t)
		}
	case "redacted_thinking":
	case "tool_use":
		it.Name, it.ID = text("name"), ""
		if it.Name == "" {
			return it, wire.BadAnswer("the answer has a tool call without a name")
		}
		id := text("id")
		if it.CallID = ids.Keep(id); string(it.CallID) != id {
			it.ID = id
		}
		it.Arguments = string(a.p.endpoint.Scrub.JSON([]byte(b.input(whole))))
	}
	return it, nil
}

// input returns the arguments of a call as the model wrote them.
func (b *block) input(whole map[string]json.RawMessage) string {
	written := ""
	for _, g := range b.grown {
		if g.key == "input" {
			written = string(g.text)
		}
	}
	if strings.TrimSpace(written) == "" {
		written = string(whole["input"])
	}
	return cmp.Or(written, "{}")
}

// covered reports whether the fields of an item have all of a block.
func (b *block) covered(whole map[string]json.RawMessage) bool {
	known := map[string][]string{"text": {"type", "text"}, "tool_use": ofCalls}[b.kind]
	for name, value := range whole {
		if !wire.Null(value) && !slices.Contains(known, name) {
			return false
		}
	}
	return true
}
