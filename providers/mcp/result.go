package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// shown is a result as a model can read it: its texts, and a note for what is no text.
func shown(r *sdk.CallToolResult) string {
	var parts []string
	texts := 0
	for _, c := range r.Content {
		part, isText := content(c)
		if isText {
			texts++
		}
		parts = append(parts, part)
	}
	if texts == 0 && r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	return strings.Join(parts, "\n")
}

// content is a part of a result, and whether it is text.
func content(c sdk.Content) (text string, isText bool) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text, true
	case *sdk.ImageContent:
		return unshown("an image", c.MIMEType, len(c.Data)), false
	case *sdk.AudioContent:
		return unshown("a sound", c.MIMEType, len(c.Data)), false
	case *sdk.ResourceLink:
		return fmt.Sprintf("[a link to the resource %s, %s]", c.Name, c.URI), false
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
		case c.Resource.Blob == nil:
			return c.Resource.Text, true
		default:
			return unshown("the resource "+c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob)), false
		}
	}
	return "[content that cannot be shown]", false
}

func unshown(what, kind string, size int) string {
	if kind == "" {
		kind = "of an unknown type"
	}
	return fmt.Sprintf("[%s, %s, %d bytes, which cannot be shown]", what, kind, size)
}
