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
