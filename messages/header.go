package messages

import "strings"

// Header returns the value of a header of a message; empty if it has none.
type Header func(name string) string

// The headers of an input or command. A field of the body overrides its header.
const (
	HeaderID          = "Reprise-Id"
	HeaderDeadline    = "Reprise-Deadline"
	HeaderReply       = "Reprise-Reply"
	HeaderPolicy      = "Reprise-Policy"
	HeaderIn          = "Reprise-In" // from here on: the fields of a Schedule
	HeaderAt          = "Reprise-At"
	HeaderCron        = "Reprise-Cron"
	HeaderZone        = "Reprise-Tz"
	HeaderTimer       = "Reprise-Timer" // its name
	HeaderContentType = "Content-Type"
	HeaderMsgID       = "Nats-Msg-Id"
)

// HeaderPerson, on an input, a command or an answer to a question, is the name of the
// person who sends it. It is not authenticated.
const HeaderPerson = "Reprise-Person"

// The headers of a dead letter, besides those of the message itself. An endpoint that
// refuses a request sets HeaderCode, too.
const (
	HeaderReason   = "Reprise-Reason"
	HeaderCode     = "Reprise-Code"
	HeaderSubject  = "Reprise-Subject"  // the subject that the message was published to
	HeaderReceived = "Reprise-Received" // when the input stream stored it, RFC 3339
	HeaderCut      = "Reprise-Cut"      // the full size of a body that did not fit
)

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

// HeaderNext, on the empty message that ends a view, is the event (or line) that the next
// page begins with. Without it there is no next page.
const HeaderNext = "Reprise-Next"

// HeaderAlive, with any value on a request, asks an endpoint for keep-alives, and for
// numbers on the messages of its reply. A keep-alive is an empty message with HeaderAlive,
// which does not end the reply, or HeaderAlive on another message; its value is how many
// numbered messages have been sent so far. A requester that has received fewer has lost
// some, and asks again.
const HeaderAlive = "Reprise-Alive"

// HeaderPart numbers, from 1, the messages of a reply to a request with HeaderAlive. A
// requester that misses a number has lost a message, and asks again.
const HeaderPart = "Reprise-Part"

// Headers on the empty message that ends a view of a tenant. HeaderCursor is the cursor of
// the next page; without it there is none. HeaderUnreadable is how many frames of the tenant's agents could not be read; the
// view may lack their contents. HeaderEncrypted is how many encrypted agents the view does not
// search for words. HeaderUncovered is a JSON list of [Uncovered], the partitions of
// which the view does not show everything; without it, there are none.
const (
	HeaderCursor = "Reprise-Cursor"

	HeaderUnreadable = "Reprise-Unreadable"
	HeaderEncrypted  = "Reprise-Encrypted"
	HeaderUncovered  = "Reprise-Uncovered"
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
