package messages

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the kind of an error as it crosses the wire. Codes are promises:
// new ones may be added, none changes its meaning.
type Code string

// The codes. [Code.Status] returns the HTTP-like number that an endpoint answers with.
const (
	BadAddress     Code = "bad_address"     // an address, or a part of one, is invalid
	BadInput       Code = "bad_input"       // the body cannot be read, holds nothing, or has a field that does not fit
	UnknownCommand Code = "unknown_command" // this version has no command of that type
	UnknownKind    Code = "unknown_kind"    // no node that can be reached has a definition of that kind
	ForbiddenReply Code = "forbidden_reply" // the reply subject is one that answers are never sent to
	TooLarge       Code = "too_large"       // a body, a text or an answer is over its limit
	QueueFull      Code = "queue_full"      // as many inputs wait as the kind allows (max_queue)
	Busy           Code = "busy"            // the policy is reject, and a turn runs
	Expired        Code = "expired"         // the deadline of the input had passed
	NotFound       Code = "not_found"       // there is no such agent, event, turn, call, timer, blob or dead letter
	Conflict       Code = "conflict"        // the command does not fit what has happened meanwhile
	Damaged        Code = "damaged"         // a part of the agent's log cannot be read
	Unavailable    Code = "unavailable"     // the agent has no owner at the moment, the node is busy or stopping, or NATS is away
	Internal       Code = "internal"        // a fault of Reprise, or a failure without a code of its own

	// A turn failed because of its model. The code names the kind of the model's failure;
	// other kinds have Internal.
	ModelBadRequest    = modelCode + Code(ModelFailureBadRequest)
	ModelContextLength = modelCode + Code(ModelFailureContextLength)
	ModelContentFilter = modelCode + Code(ModelFailureContentFilter)
	ModelUnsupported   = modelCode + Code(ModelFailureUnsupported)
	ModelAuth          = modelCode + Code(ModelFailureAuth)
	ModelNotFound      = modelCode + Code(ModelFailureNotFound)
	ModelRateLimit     = modelCode + Code(ModelFailureRateLimit)
	ModelOverloaded    = modelCode + Code(ModelFailureOverloaded)

	modelCode Code = "model_"
)

// codes holds every code except Internal, with the number that an endpoint answers with, one of
// those of the agent protocol, and whether the same request may succeed later. The model's own
// 401 is 500 here: it is the node's key that is wrong, not the caller's.
var codes = map[Code]struct {
	status    int
	temporary bool
}{
	BadAddress:     {status: 400},
	BadInput:       {status: 400},
	UnknownCommand: {status: 400},
	UnknownKind:    {status: 404},
	ForbiddenReply: {status: 403},
	TooLarge:       {status: 400},
	QueueFull:      {status: 429, temporary: true},
	Busy:           {status: 409, temporary: true},
	Expired:        {status: 400},
	NotFound:       {status: 404},
	Conflict:       {status: 409},
	Damaged:        {status: 500},
	Unavailable:    {status: 500, temporary: true},

	ModelBadRequest:    {status: 400},
	ModelContextLength: {status: 400},
	ModelContentFilter: {status: 400},
	ModelUnsupported:   {status: 400},
	ModelAuth:          {status: 500},
	ModelNotFound:      {status: 404},
	ModelRateLimit:     {status: 429, temporary: true},
	ModelOverloaded:    {status: 500, temporary: true},
}

// Status returns the number that the agent protocol and HTTP answer with: 500 for Internal, and
// for a code that this version does not know.
func (c Code) Status() int {
	if known, ok := codes[c]; ok {
		return known.status
	}
	return 500
}

// Error is a refusal that is sent to the sender: what was refused and why. Its code shows
// whether a retry can help. It can be sent as JSON.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Error returns the message, which is written for a person.
func (e *Error) Error() string { return e.Message }

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool { return codes[e.Code].temporary }

// Refuse returns an Error with a code and a message for a person.
func Refuse(code Code, format string, args ...any) *Error {
	return &Error{code, shorten(fmt.Sprintf(format, args...))}
}

func shorten(s string) string {
	if len(s) <= MaxMessage {
		return s
	}
	const head, tail = 600, 400
	return strings.ToValidUTF8(s[:head], "") + " … " + strings.ToValidUTF8(s[len(s)-tail:], "")
}

// AsError returns the Error that err wraps. An err that wraps none becomes Internal.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Internal, shorten(err.Error())}
}
