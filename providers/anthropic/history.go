package anthropic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// history writes items as messages: blocks of one role in a row are one message, and results
// of calls come first in that of the user.
type history struct {
	*writer
	provider, model string
	role            string          // of the last message; "": there is none
	uses, results   map[string]bool // the server's calls so far, and those that have a result
	asked           int             // where the last message to the model is
	omitted         []string        // providers whose reasoning is not sent
}

// The roles of the API.
const (
	user      = "user"
	assistant = "assistant"
)

// history writes the messages of a request, and returns the providers whose reasoning they lack.
func (p *Provider) history(r providers.Request, w *writer) (omitted []string, _ error) {
	if !w.key("messages") {
		return nil, nil
	}
	h := history{writer: &writer{b: append(w.b, '[')}, provider: p.name, model: r.Model, uses: map[string]bool{}, results: map[string]bool{}}
	for i, it := range r.Items {
		switch {
		case it.Type == messages.ItemMessage && it.Role != messages.RoleAssistant:
			h.asked = i
		case h.own(it):
			h.results[wire.Text(wire.LookUp(it.Raw, "tool_use_id"))] = true
		}
	}
	said := func(it messages.Item) bool { return wire.Said(it) || h.own(it) }
	if err := wire.InOrder(r.Items, said, h.add); err != nil {
		return nil, err
	}
	if h.role == "" {
		return nil, wire.Invalid("the history is empty")
	}
	w.b = append(h.b, "]}]"...)
	return h.omitted, nil
}

func (h *history) add(i int, it messages.Item) error {
	switch it.Type {
	case messages.ItemMessage:
		return h.message(it)
	case messages.ItemReasoning:
		h.reasoning(it)
	case messages.ItemRefusal:
		h.said(it, it.Content.Text())
	case messages.ItemCall:
		h.call(it)
	case messages.ItemCallOutput:
		h.begin(user, "tool_result")
		h.writer.text("tool_use_id", callID(it))
		h.writer.text("content", orElse(it.Output, wire.NoOutput))
		h.end()
	case "":
		return wire.Invalid("the history has an item without a type")
	default:
		h.other(i, it)
	}
	return nil
}

// place begins a block of the last message, or of a new one of that role. The first one is a user's.
func (h *history) place(role string) {
	if h.role == "" && role == assistant {
		h.text(user, wire.NoText)
	}
	switch h.role {
	case role:
		h.b = append(h.b, ',')
		return
	case "":
	default:
		h.b = append(h.b, "]},"...)
	}
	h.role = role
	h.b = append(append(append(h.b, `{"role":"`...), role...), `","content":[`...)
}

// begin begins a block of that type.
func (h *history) begin(role, kind string) {
	h.place(role)
	h.b = append(h.b, '{')
	h.raw("type", `"`+kind+`"`)
}

func (h *history) end() { h.b = append(h.b, '}') }

// text adds a block of text.
func (h *history) text(role, text string) {
	h.begin(role, "text")
	h.writer.text("text", text)
	h.end()
}

// unchanged adds a block of the model as it came.
func (h *history) unchanged(it messages.Item) {
	h.place(assistant)
	h.b = append(h.b, it.Raw...)
}

// kinds maps types of blocks to types of items where the names differ.
var kinds = map[string]messages.ItemType{
	"text": messages.ItemMessage, "thinking": messages.ItemReasoning, "redacted_thinking": messages.ItemReasoning, "tool_use": messages.ItemCall,
}

// ours are the types of items that no block may have.
var ours = map[messages.ItemType]bool{
	messages.ItemMessage: true, messages.ItemReasoning: true, messages.ItemRefusal: true, messages.ItemCall: true, messages.ItemCallOutput: true,
}

// kind returns the type of an item that a block of that type is, "" if there is none.
func kind(block string) messages.ItemType {
	if k, ok := kinds[block]; ok {
		return k
	}
	if k := messages.ItemType(block); !ours[k] {
		return k
	}
	return ""
}

// own reports whether the model that is asked gave the item over this API, so that its block
// may go back.
func (h *history) own(it messages.Item) bool {
	return it.Provider == h.provider && it.Model == h.model && kind(wire.Text(wire.LookUp(it.Raw, "type"))) == it.Type
}

func (h *history) message(it messages.Item) error {
	if err := wire.Carried(it.Content, "the Messages API"); err != nil {
		return err
	}
	switch it.Role {
	case messages.RoleUser:
		return h.user(it.Content)
	case messages.RoleAssistant:
		h.said(it, wire.WithoutImages(it.Content))
	case messages.RoleDeveloper, "system":
		h.note(wire.WithoutImages(it.Content))
	default:
		return wire.Invalid(fmt.Sprintf("the history has a message of role %q", it.Role))
	}
	return nil
}

// said adds what an assistant said. The API refuses texts of nothing but space.
func (h *history) said(it messages.Item, text string) {
	switch {
	case strings.TrimSpace(text) == "":
	case h.own(it) && wire.Text(wire.LookUp(it.Raw, "text")) == text:
		h.unchanged(it)
	default: // of another model, or a hook has changed it
		h.text(assistant, text)
	}
}

func (h *history) note(text string) {
	h.text(user, wire.NoteMark+orElse(text, wire.NoText))
}

func orElse(text, otherwise string) string {
	if strings.TrimSpace(text) == "" {
		return otherwise
	}
	return text
}

func (h *history) user(c messages.Content) error {
	if !slices.ContainsFunc(c, wire.IsImage) {
		h.text(user, orElse(c.Text(), wire.NoText))
		return nil
	}
	for _, part := range c {
		switch {
		case wire.IsImage(part):
			if err := h.image(part.ImageURL); err != nil {
				return err
			}
		case strings.TrimSpace(part.Text) != "":
			h.text(user, part.Text)
		}
	}
	return nil
}

// image adds an image by its address, or a document by a data address.
func (h *history) image(address string) error {
	kind, source, media, data := "image", "url", "", address
	if rest, ok := strings.CutPrefix(address, "data:"); ok {
		source = "base64"
		if media, data, ok = strings.Cut(rest, ";base64,"); !ok {
			return wire.Invalid("an image has a data address that is not in base64")
		}
	}
	if media == "application/pdf" {
		kind = "document"
	}
	h.begin(user, kind)
	h.key("source")
	h.b = append(h.b, '{')
	h.writer.text("type", source)
	h.writer.text("media_type", media)
	h.writer.text(map[string]string{"url": "url", "base64": "data"}[source], data)
	h.b = append(h.b, "}}"...)
	return nil
}

// reasoning adds thinking of the model that is asked. Without its signature the API refuses it.
func (h *history) reasoning(it messages.Item) {
	switch name := it.Provider; {
	case !h.own(it):
		if name != "" && !slices.Contains(h.omitted, name) {
			h.omitted = append(h.omitted, name)
		}
	case wire.LookUp(it.Raw, "data") != nil, wire.Text(wire.LookUp(it.Raw, "signature")) != "":
		h.unchanged(it)
	}
}

func callID(it messages.Item) string { return wire.SentID(it.CallID, profile.Word) }

// call adds a call, with the members of its block that only the server knows.
func (h *history) call(it messages.Item) {
	h.begin(assistant, "tool_use")
	h.writer.text("id", callID(it))
	h.writer.text("name", it.Name)
	h.raw("input", wire.Object(it.Arguments))
	if h.own(it) {
		_ = wire.Members(it.Raw, func(key, value []byte) error {
			if !slices.Contains(ofCalls, string(key)) {
				h.raw(string(key), string(value))
			}
			return nil
		})
	}
	h.end()
}

// ofCalls are the members of a call's block that an item has fields for.
var ofCalls = []string{"type", "id", "name", "input"}

// other adds a block that our types do not cover. The API refuses a call of the server's tools
// without its result, such as that of an answer that was paused, unless it still has to answer;
// and a result without its call, which a compaction may have taken out.
func (h *history) other(i int, it messages.Item) {
	if !h.own(it) {
		h.note(wire.Lost(it))
		return
	}
	id, of := wire.Text(wire.LookUp(it.Raw, "id")), wire.Text(wire.LookUp(it.Raw, "tool_use_id"))
	calls := strings.HasSuffix(string(it.Type), "_tool_use")
	switch {
	case calls && i < h.asked && !h.results[id]:
		h.text(assistant, fmt.Sprintf("[Here stood an item of type %s, which has no result.]", it.Type))
		return
	case of != "" && !h.uses[of]:
		h.text(assistant, fmt.Sprintf("[Here stood an item of type %s, whose call is no longer shown.]", it.Type))
		return
	case calls:
		h.uses[id] = true
	}
	h.unchanged(it)
}
