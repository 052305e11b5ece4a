package messages

import "strings"

// The headers of a dead letter, beside those that the message came with. A door
// that refuses a request names the code in HeaderCode, too.
const (
	HeaderReason   = "Reprise-Reason"
	HeaderCode     = "Reprise-Code"
	HeaderSubject  = "Reprise-Subject"  // that the message was published to
	HeaderReceived = "Reprise-Received" // when the input stream stored it, RFC 3339
	HeaderCut      = "Reprise-Cut"      // the full size of a body that did not fit
)

// OneLine makes text fit for a header: no control characters, valid UTF-8, at
// most MaxMessage bytes.
func OneLine(s string) string {
	if len(s) > MaxMessage {
		s = s[:MaxMessage]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// HeaderRoot, on a prompt, is the first token of the installation that it is for: the
// subjects of the agent protocol do not name it. A door of another refuses it.
const HeaderRoot = "Reprise-Root"

// HeaderAfter, on a prompt that is asked again with its id, is the event up to
// which its sender has seen everything: the stream goes on behind it. On messages of a
// reply with [FactsEnd] it is that event.
const HeaderAfter = "Reprise-After"

// HeaderFacts, on a prompt, is which facts its sender wants. Without it: all that concern
// the input and its turn.
const HeaderFacts = "Reprise-Facts"

// FactsEnd, as HeaderFacts, asks for the fact that ends the input, and for the pauses that
// keep it from its end. The text of the answer comes all the same.
const FactsEnd = "end"

// HeaderEnd marks the last message of a reply to a prompt with [HeaderAlive]. Others get an
// empty message behind it.
const HeaderEnd = "Reprise-End"
