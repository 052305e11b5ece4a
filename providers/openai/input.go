package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// input turns a history into the input of the Responses API. The items of an answer of the
// model that is asked go back as they came, all or none: the API refuses reasoning without
// the item that followed it, and the other way round.
type input struct {
	rules           profile.Rules
	provider, model string
	stored          bool            // the server keeps answers
	chained         bool            // and the request may name one in place of the history before it
	b               []byte          // the items, with commas between them
	ids             map[string]bool // of the items that are sent as they came
	answer          string          // the id of the last answer of the model
	end             int             // where it ends in b
	omitted         []string
}

// input returns the history of a request, in which results follow their calls.
func (p *Provider) input(r providers.Request, rules profile.Rules) (*input, error) {
	extra := merged(p.extra, r.Settings.ExtraBody)
	in := &input{rules: rules, provider: p.name, model: r.Model, stored: string(extra["store"]) == "true", ids: make(map[string]bool)}
	in.chained = in.stored && extra["previous_response_id"] == nil && extra["conversation"] == nil
	items := make([]messages.Item, 0, len(r.Items))
	said := func(it messages.Item) bool { return wire.Said(it) || in.own(it) }
	if err := wire.InOrder(r.Items, said, func(_ int, it messages.Item) error {
		items = append(items, it)
		return nil
	}); err != nil {
		return nil, err
	}
	items = in.compacted(items)
	for len(items) > 0 {
		if n := in.answered(items); n > 0 {
			in.echo(items[:n])
			items = items[n:]
			continue
		}
		if err := in.item(items[0]); err != nil {
			return nil, err
		}
		items = items[1:]
	}
	return in, nil
}

// compacts reports whether an item stands for what came before it, unless the server has refused
// it. https://developers.openai.com/api/docs/guides/compaction
func (in *input) compacts(it messages.Item) bool {
	return it.Type == "compaction" && in.own(it) && in.rules.Items == profile.Whole
}

// compacted returns the items from the last answer on in which the server has compacted what
// came before.
func (in *input) compacted(items []messages.Item) []messages.Item {
	for i, it := range slices.Backward(items) {
		if in.compacts(it) {
			for i > 0 && in.own(items[i-1]) && items[i-1].ID == it.ID { // it may have calls, which have results
				i--
			}
			return items[i:]
		}
	}
	return items
}

// own reports whether the model that is asked gave the item over this API.
func (in *input) own(it messages.Item) bool {
	if it.Provider != in.provider || it.Model != in.model || it.Raw == nil {
		return false
	}
	kind := messages.ItemType(wire.Text(wire.LookUp(it.Raw, "type")))
	if it.Type == messages.ItemRefusal {
		return kind == messages.ItemMessage
	}
	return kind == it.Type
}

// answered returns how many of the first items are one answer of the model.
func (in *input) answered(items []messages.Item) (n int) {
	for n < len(items) && in.own(items[n]) && items[n].ID == items[0].ID {
		n++
	}
	return n
}

// echo adds the items of an answer of the model.
func (in *input) echo(answer []messages.Item) {
	whole := in.rules.Items == profile.Whole && answer[len(answer)-1].Type != messages.ItemReasoning
	for _, it := range answer {
		whole = whole && in.sendable(it, answer)
	}
	whole = whole && in.unique(answer)
	for _, it := range answer {
		switch {
		case whole, in.compacts(it):
			in.add(in.unchanged(it))
		case it.Type == messages.ItemReasoning:
		default:
			in.rewritten(it)
		}
	}
	in.answer, in.end = answer[0].ID, len(in.b)
}

// unique reports whether no item of an answer has the id of another that is sent, which the API
// refuses, and notes their ids if so.
func (in *input) unique(answer []messages.Item) bool {
	ids := make(map[string]bool, len(answer))
	for _, it := range answer {
		id := wire.Text(wire.LookUp(it.Raw, "id"))
		if ids[id] || in.ids[id] {
			return false
		}
		ids[id] = id != ""
	}
	maps.Copy(in.ids, ids)
	return true
}

// sendable reports whether the server accepts an item of an answer as it came.
func (in *input) sendable(it messages.Item, answer []messages.Item) bool {
	var raw struct {
		Status    string
		Encrypted string `json:"encrypted_content"`
	}
	_ = json.Unmarshal(it.Raw, &raw) // what has other types is not what is looked for
	switch it.Type {
	case messages.ItemReasoning:
		return (in.stored || raw.Encrypted != "") && !changed(it)
	case messages.ItemMessage, messages.ItemRefusal, messages.ItemCall:
		if changed(it) {
			return false
		}
	case "image_generation_call":
		return in.stored
	case "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "custom_tool_call", "mcp_approval_request":
		// the server wants a result of it, unless it ran the call itself
		return slices.ContainsFunc(answer, func(other messages.Item) bool { return other.Type == it.Type+"_output" })
	}
	return raw.Status == "" || raw.Status == "completed"
}

// changed reports whether a hook has changed a text, or the name of a call.
func changed(it messages.Item) bool {
	s := said(it.Raw)
	if it.Type == messages.ItemCall {
		return s.Name != it.Name
	}
	return s.text() != it.Content.Text()
}

// unchanged returns an item as it came, but for a call's id and arguments that were mended.
func (in *input) unchanged(it messages.Item) []byte {
	if it.Type != messages.ItemCall {
		return it.Raw
	}
	w := newWriter(len(it.Raw)+len(it.Arguments)+messageSize, nil)
	mended := map[string]string{
		"call_id":   string(wire.AppendString(nil, wire.SentID(it.CallID, in.rules.CallIDs))),
		"arguments": string(wire.AppendString(nil, wire.Object(it.Arguments))),
	}
	_ = wire.Members(it.Raw, func(key, value []byte) error {
		name := string(key)
		given := wire.Text(value)
		if other, ok := mended[name]; ok && (name != "arguments" || given != it.Arguments || !wire.Complete([]byte(given))) {
			value = []byte(other)
		}
		w.raw(name, string(value))
		delete(mended, name)
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(mended)) { // the server left it out
		w.raw(name, mended[name])
	}
	return w.end()
}

// rewritten adds an item of the model without its id.
func (in *input) rewritten(it messages.Item) {
	switch it.Type {
	case messages.ItemMessage, messages.ItemRefusal:
		in.message(assistant, wire.Text(wire.LookUp(it.Raw, "phase")), it.Content)
	case messages.ItemCall:
		in.call(it)
	default:
		in.note(wire.Lost(it))
	}
}

// item adds an item that the model did not give over this API.
func (in *input) item(it messages.Item) error {
	switch it.Type {
	case messages.ItemMessage:
		return in.said(it)
	case messages.ItemReasoning:
		if name := it.Provider; (name != in.provider || it.Model != in.model) && name != "" && !slices.Contains(in.omitted, name) {
			in.omitted = append(in.omitted, name)
		}
	case messages.ItemRefusal:
		in.message(assistant, "", it.Content)
	case messages.ItemCall:
		in.call(it)
	case messages.ItemCallOutput:
		w := newWriter(len(it.Output)+messageSize, nil)
		w.text("type", "function_call_output")
		w.text("call_id", wire.SentID(it.CallID, in.rules.CallIDs))
		w.text("output", cmp.Or(it.Output, wire.NoOutput))
		in.add(w.end())
	case "":
		return wire.Invalid("the history has an item without a type")
	default:
		in.note(wire.Lost(it))
	}
	return nil
}

func (in *input) said(it messages.Item) error {
	if err := wire.Carried(it.Content, "the Responses API"); err != nil {
		return err
	}
	switch it.Role {
	case messages.RoleUser:
		in.message(user, "", it.Content)
	case messages.RoleAssistant:
		in.message(assistant, "", messages.TextContent(wire.WithoutImages(it.Content)))
	case messages.RoleDeveloper, system:
		in.note(wire.WithoutImages(it.Content))
	default:
		return wire.Invalid(fmt.Sprintf("the history has a message of role %q", it.Role))
	}
	return nil
}

func (in *input) note(text string) {
	text = cmp.Or(text, wire.NoText)
	if in.rules.Notes == profile.User {
		text = wire.NoteMark + text
	}
	in.message(string(in.rules.Notes), "", messages.TextContent(text))
}

// message adds a message as text, or in parts if it has images.
func (in *input) message(role, phase string, c messages.Content) {
	w := newWriter(messageSize, nil)
	w.text("role", role)
	if !slices.ContainsFunc(c, wire.IsImage) {
		w.text("content", cmp.Or(c.Text(), wire.NoText))
	} else if w.key("content") {
		w.b = appendInputParts(w.b, c)
	}
	w.text("phase", phase)
	in.add(w.end())
}

func appendInputParts(b []byte, c messages.Content) []byte {
	b = append(b, '[')
	for _, part := range c {
		if !wire.IsImage(part) && part.Text == "" {
			continue
		}
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		w := newWriter(messageSize, nil)
		if wire.IsImage(part) {
			w.text("type", "input_image")
			w.text("image_url", part.ImageURL)
			w.text("detail", part.Detail)
		} else {
			w.text("type", "input_text")
			w.text("text", part.Text)
		}
		b = append(b, w.end()...)
	}
	return append(b, ']')
}

func (in *input) call(it messages.Item) {
	w := newWriter(len(it.Arguments)+messageSize, nil)
	w.text("type", "function_call")
	w.text("call_id", wire.SentID(it.CallID, in.rules.CallIDs))
	w.text("name", it.Name)
	w.text("arguments", wire.Object(it.Arguments))
	in.add(w.end())
}

func (in *input) add(item []byte) {
	if len(in.b) > 0 {
		in.b = append(in.b, ',')
	}
	in.b = append(in.b, item...)
}

// after returns the items behind the last answer of the model.
func (in *input) after() []byte {
	if in.end == len(in.b) {
		return nil
	}
	return in.b[in.end+1:]
}
