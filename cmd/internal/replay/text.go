package replay

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Person returns a person for a line, safe on a terminal; empty for nil. What senders choose is in quotes
// unless it is one word, and never hides that it is claimed.
func Person(p *messages.Person) string {
	if p == nil {
		return ""
	}
	text := projections.Printable(p.Name, 60)
	if strings.ContainsAny(text, " \"=()") {
		text = strconv.Quote(text)
	}
	if p.Account != "" {
		text += " of " + projections.Printable(p.Account, 60)
	}
	if p.Claimed {
		text += " (claimed)"
	}
	return text
}

// Cause returns what happened in a cause and who sent the command behind it, on one line, safe on a
// terminal.
func Cause(c projections.Cause) string {
	text := projections.Printable(c.Text, 400)
	switch {
	case c.Command == "":
	case strings.Contains(c.Text, c.ID): // it is an input, whose text names it
		text += " [" + sender(c) + "]"
	default:
		text += " [" + projections.Printable(c.Command+" "+c.ID, 160) + " " + sender(c) + "]"
	}
	if c.More > 0 {
		text += fmt.Sprintf(" (and %d more before)", c.More)
	}
	return text
}

// sender returns who sent a command, and through which endpoint.
func sender(c projections.Cause) string {
	if c.Endpoint == messages.EndpointPeer && c.Person == nil {
		return "from another agent"
	}
	by := cmp.Or(Person(c.Person), "no one named")
	return "by " + by + " through " + cmp.Or(projections.Printable(string(c.Endpoint), 40), "an unknown endpoint")
}

// Item returns what an item of history is, and its text, as users and models wrote them.
func Item(item projections.HistoryItem) (title, text string) {
	title, text = string(item.Type), item.Content.Text()
	switch item.Type {
	case messages.ItemMessage:
		title = item.Role
	case messages.ItemCall:
		title, text = "call", fmt.Sprintf("%s(%s)", item.Name, item.Arguments)
	case messages.ItemCallOutput:
		title, text = "result", item.Output
	case messages.ItemReasoning, messages.ItemRefusal:
	default: // of a hosted tool
		text = projections.Printable(string(item.Raw), 400)
	}
	for _, part := range item.Content {
		if part.ImageURL != "" {
			text += "\n[image " + projections.Printable(part.ImageURL, 120) + "]"
		}
	}
	if item.Missing != "" {
		text += "[" + projections.Printable(item.Missing, 0) + "]"
	}
	if item.CallID != "" {
		title += " " + string(item.CallID)
	}
	if item.Status != "" {
		title += " [" + string(item.Status) + "]"
	}
	return title, text
}
