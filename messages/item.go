package messages

import (
	"encoding/json"
	"strings"
)

// ItemType is the kind of an item of history.
type ItemType string

// The item types that this version interprets. Others are kept in Item.Raw, and never
// dropped.
const (
	ItemMessage    ItemType = "message"              // a text or images of a user, the model or the runtime
	ItemReasoning  ItemType = "reasoning"            // the model's reasoning
	ItemRefusal    ItemType = "refusal"              // why the model declines
	ItemCall       ItemType = "function_call"        // a call of a tool
	ItemCallOutput ItemType = "function_call_output" // its result
)

// The roles of a message.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleDeveloper = "developer" // the runtime's own notes to the model
)

// Item is one entry of a model's input or output: a message, a call, a result. Type
// determines which fields are used.
type Item struct {
	// Type is the kind of the item. Kinds that this version does not interpret have their fields in
	// Raw.
	Type ItemType `json:"type"`
	// Role is the author of a message: user, assistant, or developer for the runtime's own notes to the model.
	Role string `json:"role,omitempty"`
	// Content is what a message, reasoning or a refusal holds.
	Content Content `json:"content,omitempty"`
	// CallID ties a function_call to its function_call_output.
	CallID CallID `json:"call_id,omitempty"`
	// Name is the tool that a function_call is for.
	Name string `json:"name,omitempty"`
	// Arguments is what the model wrote, unchanged. It may be invalid JSON.
	Arguments string `json:"arguments,omitempty"`
	// Output is the result of a call.
	Output string `json:"output,omitempty"`
	// ID is the provider's name for the item, or for the answer that it is part of.
	ID string `json:"id,omitempty"`
	// Raw is the provider's item as received, if the fields above may not cover it.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Provider is the provider whose format Raw has.
	Provider string `json:"provider,omitempty"`
	// Model is the only model of the provider that Raw may be sent back to. Empty: any.
	Model string `json:"model,omitempty"`
	// Blob is the reference to an Output that is too large for a frame. Nil: the field holds it.
	Blob *Blob `json:"blob,omitempty"`
	// RawBlob is the reference to a Raw that is too large for a frame. Nil: the field holds it.
	RawBlob *Blob `json:"raw_blob,omitempty"`
}

// Text returns a message of one text part.
func Text(role, text string) Item {
	return Item{Type: ItemMessage, Role: role, Content: TextContent(text)}
}

// Content is what a message holds, in parts. A single text part is written in
// JSON as a plain string, and a string is read as one text part.
type Content []Part

// Part is a piece of content: text, or an image by address.
type Part struct {
	// Type is `text` or `image_url`.
	Type string `json:"type"`
	// Text is the text of a part of type text.
	Text string `json:"text,omitempty"`
	// ImageURL is an https or data URL.
	ImageURL string `json:"image_url,omitempty"`
	// Detail is how closely a model should look at the image: low, high or auto.
	Detail string `json:"detail,omitempty"`
	// Blob is the reference to the text or the URL if it is too large for a frame. Nil:
	// the field holds it. Only events have it: an input cannot name a blob.
	Blob *Blob `json:"blob,omitempty"`
}

// TextContent returns content of one text part.
func TextContent(s string) Content { return Content{{Type: "text", Text: s}} }

// Text returns the text of the content, its parts joined by newlines.
func (c Content) Text() string {
	if len(c) == 1 {
		return c[0].Text
	}
	var parts []string
	for _, p := range c {
		if p.Type == "text" {
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// MarshalJSON writes a single text part as a string, anything else as parts.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c) == 1 && c[0].Type == "text" && c[0].Blob == nil {
		return json.Marshal(c[0].Text)
	}
	return json.Marshal([]Part(c))
}

// UnmarshalJSON reads a string or a list of parts; a part's image_url may be
// an address or an object with url and detail, as chat clients write it.
func (c *Content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = TextContent(s)
		return nil
	}
	var parts []struct {
		Type   string          `json:"type"`
		Text   string          `json:"text"`
		Image  json.RawMessage `json:"image_url"`
		Detail string          `json:"detail"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return Refuse(BadInput, "content: write a string, or a list of {\"type\":\"text\",\"text\":…} and {\"type\":\"image_url\",\"image_url\":…}")
	}
	*c = nil
	for i, p := range parts {
		part := Part{Type: p.Type, Text: p.Text, Detail: p.Detail}
		switch p.Type {
		case "text":
		case "image_url":
			var object struct{ URL, Detail string }
			if json.Unmarshal(p.Image, &part.ImageURL) != nil {
				if err := json.Unmarshal(p.Image, &object); err != nil {
					return Refuse(BadInput, "content part %d: image_url holds neither an address nor {\"url\":…}", i)
				}
				part.ImageURL, part.Detail = object.URL, object.Detail
			}
			if part.ImageURL == "" {
				return Refuse(BadInput, "content part %d: image_url is empty", i)
			}
		default:
			return Refuse(BadInput, "content part %d has type %q: this version reads text and image_url", i, p.Type)
		}
		*c = append(*c, part)
	}
	return nil
}

// Usage is what a model call consumed, in tokens.
type Usage struct {
	// Input are the tokens of the request.
	Input int `json:"input_tokens"`
	// Output are the tokens of the answer.
	Output int `json:"output_tokens"`
	// Cached is the part of Input that the server had cached.
	Cached int `json:"cached_tokens,omitempty"`
	// Reasoning is the part of Output that is reasoning.
	Reasoning int `json:"reasoning_tokens,omitempty"`
	// CacheWrite is the part of Input that was written to a cache.
	CacheWrite int `json:"cache_write_tokens,omitempty"`
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.Cached + v.Cached, u.Reasoning + v.Reasoning, u.CacheWrite + v.CacheWrite}
}

// maxTokens is more than a model call can use, and small enough for sums.
const maxTokens = 1 << 40

// Clamped returns a plausible usage: no number is negative or over maxTokens, and no part
// is larger than the whole. Servers may report anything.
func (u Usage) Clamped() Usage {
	clamp := func(n, most int) int { return min(max(n, 0), most) }
	u.Input, u.Output = clamp(u.Input, maxTokens), clamp(u.Output, maxTokens)
	u.Cached, u.Reasoning = clamp(u.Cached, u.Input), clamp(u.Reasoning, u.Output)
	u.CacheWrite = clamp(u.CacheWrite, u.Input-u.Cached)
	return u
}
