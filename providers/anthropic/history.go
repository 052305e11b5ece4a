package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// history turns items into messages: blocks of one role in a row are one message, and results
// of calls come first in that of the user.
type history struct {
	provider, model string
	list            []api.MessageParam
	results         map[string]bool // the server's calls that have a result
	asked           int             // where the last message to the model is
	omitted         []string        // providers whose reasoning is not sent
}

// history returns the messages of a request, and the providers whose reasoning they lack.
func (p *Provider) history(r providers.Request) ([]api.MessageParam, []string, error) {
	h := history{provider: p.name, model: r.Model, results: map[string]bool{}}
	for i, it := range r.Items {
		switch {
		case it.Type == messages.ItemMessage && it.Role != messages.RoleAssistant:
			h.asked = i
		case h.own(it):
			h.results[wire.Text(wire.LookUp(it.Raw, "tool_use_id"))] = true
		}
	}
	said := func(it messages.Item) bool { return wire.Said(it) || h.own(it) }
	err := wire.InOrder(r.Items, said, h.add)
	if err == nil && len(h.list) == 0 {
		err = wire.Invalid("the history is empty")
	}
	return h.list, h.omitted, err
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
		h.push(api.MessageParamRoleUser, api.NewToolResultBlock(callID(it), orElse(it.Output, wire.NoOutput), false))
	case "":
		return wire.Invalid("the history has an item without a type")
	default:
		h.other(i, it)
	}
	return nil
}

// push adds a block to the last message, or to a new one of that role. The first one is a user's.
func (h *history) push(role api.MessageParamRole, block api.ContentBlockParamUnion) {
	if len(h.list) == 0 && role == api.MessageParamRoleAssistant {
		h.list = append(h.list, api.NewUserMessage(api.NewTextBlock(wire.NoText)))
	}
	if n := len(h.list); n == 0 || h.list[n-1].Role != role {
		h.list = append(h.list, api.MessageParam{Role: role})
	}
	m := &h.list[len(h.list)-1]
	m.Content = append(m.Content, block)
}

// kinds are the types of items whose blocks are called otherwise.
var kinds = map[string]messages.ItemType{
	"text": messages.ItemMessage, "thinking": messages.ItemReasoning, "redacted_thinking": messages.ItemReasoning, "tool_use": messages.ItemCall,
}

// kind returns the type of an item that a block of that type is.
func kind(block string) messages.ItemType {
	if k, ok := kinds[block]; ok {
		return k
	}
	return messages.ItemType(block)
}

// own reports whether the model that is asked gave the item, so that its block may go back.
func (h *history) own(it messages.Item) bool {
	return it.Provider == h.provider && it.Model == h.model && kind(wire.Text(wire.LookUp(it.Raw, "type"))) == it.Type
}

func raw(block json.RawMessage) api.ContentBlockParamUnion {
	return param.Override[api.ContentBlockParamUnion](block)
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
		h.push(api.MessageParamRoleAssistant, raw(it.Raw))
	default: // of another model, or a hook has changed it
		h.push(api.MessageParamRoleAssistant, api.NewTextBlock(text))
	}
}

func (h *history) note(text string) {
	h.push(api.MessageParamRoleUser, api.NewTextBlock(wire.NoteMark+orElse(text, wire.NoText)))
}

func orElse(text, otherwise string) string {
	if strings.TrimSpace(text) == "" {
		return otherwise
	}
	return text
}

func (h *history) user(c messages.Content) error {
	if !slices.ContainsFunc(c, wire.IsImage) {
		h.push(api.MessageParamRoleUser, api.NewTextBlock(orElse(c.Text(), wire.NoText)))
		return nil
	}
	for _, part := range c {
		switch {
		case wire.IsImage(part):
			block, err := image(part.ImageURL)
			if err != nil {
				return err
			}
			h.push(api.MessageParamRoleUser, block)
		case strings.TrimSpace(part.Text) != "":
			h.push(api.MessageParamRoleUser, api.NewTextBlock(part.Text))
		}
	}
	return nil
}

// image returns the block of an image by its address, or of a document by a data address.
func image(address string) (api.ContentBlockParamUnion, error) {
	rest, ok := strings.CutPrefix(address, "data:")
	if !ok {
		return api.NewImageBlock(api.URLImageSourceParam{URL: address}), nil
	}
	media, data, ok := strings.Cut(rest, ";base64,")
	switch {
	case !ok:
		return api.ContentBlockParamUnion{}, wire.Invalid("an image has a data address that is not in base64")
	case media == "application/pdf":
		return api.NewDocumentBlock(api.Base64PDFSourceParam{Data: data}), nil
	}
	return api.NewImageBlockBase64(media, data), nil
}

// reasoning adds thinking of the model that is asked. Without its signature the API refuses it.
func (h *history) reasoning(it messages.Item) {
	switch name := it.Provider; {
	case !h.own(it):
		if name != "" && !slices.Contains(h.omitted, name) {
			h.omitted = append(h.omitted, name)
		}
	case wire.LookUp(it.Raw, "data") != nil, wire.Text(wire.LookUp(it.Raw, "signature")) != "":
		h.push(api.MessageParamRoleAssistant, raw(it.Raw))
	}
}

func callID(it messages.Item) string { return wire.SentID(it.CallID, profile.Word) }

// call adds a call, with the members of its block that only the server knows.
func (h *history) call(it messages.Item) {
	tool := &api.ToolUseBlockParam{ID: callID(it), Name: it.Name, Input: json.RawMessage(wire.Object(it.Arguments))}
	if h.own(it) {
		extra := make(map[string]any)
		_ = wire.Members(it.Raw, func(key, value []byte) error {
			if !slices.Contains(ofCalls, string(key)) {
				extra[string(key)] = json.RawMessage(value)
			}
			return nil
		})
		tool.SetExtraFields(extra)
	}
	h.push(api.MessageParamRoleAssistant, api.ContentBlockParamUnion{OfToolUse: tool})
}

// ofCalls are the members of a call's block that an item has fields for.
var ofCalls = []string{"type", "id", "name", "input"}

// other adds a block that our types do not cover. A call of the server's tools without its
// result, such as that of an answer that was paused, is refused unless the server still has to answer.
func (h *history) other(i int, it messages.Item) {
	switch {
	case !h.own(it):
		h.note(wire.Lost(it))
	case strings.HasSuffix(string(it.Type), "_tool_use") && i < h.asked && !h.results[wire.Text(wire.LookUp(it.Raw, "id"))]:
		h.push(api.MessageParamRoleAssistant, api.NewTextBlock(wire.Lost(it)))
	default:
		h.push(api.MessageParamRoleAssistant, raw(it.Raw))
	}
}
