package projections

import (
	"encoding/json"

	"github.com/reprise-dev/reprise/messages"
)

// spanMessage is a message in the form of the conventions' attributes for content.
type spanMessage struct {
	Role   string     `json:"role"`
	Parts  []spanPart `json:"parts"`
	Finish string     `json:"finish_reason,omitempty"`
}

type spanPart struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// spanMessages returns the attribute for a message with these parts. Empty: it has none.
func spanMessages(role string, parts []spanPart, finish string) string {
	if len(parts) == 0 {
		return ""
	}
	b, err := json.Marshal([]spanMessage{{role, parts, finish}})
	if err != nil { // texts encode
		return ""
	}
	return string(b)
}

// textParts returns a text as parts; none if it is empty.
func textParts(text string) []spanPart {
	if text == "" {
		return nil
	}
	return []spanPart{{"text", beginning(text, MaxSpanText)}}
}

// askedParts returns the texts of inputs.
func askedParts(asked []TurnInput) (parts []spanPart) {
	for _, in := range asked {
		parts = append(parts, textParts(ContentText(in.Content))...)
	}
	return parts
}

// itemParts returns the texts of a model's answer.
func itemParts(items []messages.Item) (parts []spanPart) {
	for _, item := range items {
		parts = append(parts, textParts(ContentText(item.Content))...)
	}
	return parts
}
