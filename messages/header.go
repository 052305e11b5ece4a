package messages

import "strings"

// The headers of a dead letter, besides those of the message itself. An endpoint that
// refuses a request sets HeaderCode, too.
const (
	HeaderReason   = "Reprise-Reason"
	HeaderCode     = "Reprise-Code"
	HeaderSubject  = "Reprise-Subject"  // the subject that the message was published to
	HeaderReceived = "Reprise-Received" // when the input stream stored it, RFC 3339
	HeaderCut      = "Reprise-Cut"      // the full size of a body that did not fit
)

// OneLine returns text as a header can hold it: without control characters, valid UTF-8, at
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

// HeaderRoot, on a prompt, is the root of the installation that it is for, which the
// subjects of the agent protocol do not name. An endpoint of another one refuses it.
const HeaderRoot = "Reprise-Root"

// HeaderAfter, on a prompt that is sent again with its id, is the event up to which its
// sender has received everything: the stream continues after it. On messages of a reply
// with [FactsEnd] it is that event.
const HeaderAfter = "Reprise-After"

// HeaderFacts, on a prompt, selects the facts that its sender receives. Without it: all
// about the input and its turn.
const HeaderFacts = "Reprise-Facts"

// FactsEnd, as HeaderFacts, selects the fact that ends the input and the pauses before it.
// The text of the answer is sent in any case.
const FactsEnd = "end"

// HeaderEnd marks the last message of a reply to a prompt with [HeaderAlive]. Other replies
// end with an empty message.
const HeaderEnd = "Reprise-End"
