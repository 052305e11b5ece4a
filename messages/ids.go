package messages

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// derivedIDs are the prefixes of the ids of commands between agents. Such ids can be
// guessed, as those of StreamInputID can, and are refused from outside.
var derivedIDs = []string{"task:", "report:"}

// checkGivenID refuses an id that is reserved for the runtime.
func checkGivenID(id string) error {
	for _, prefix := range derivedIDs {
		if strings.HasPrefix(id, prefix) {
			return Refuse(BadInput, "the id %q begins with %q, as those do that agents give one another: choose another", id, prefix)
		}
	}
	return checkID(id)
}

func checkID(id string) error {
	for _, ours := range [...]string{streamID, timerID} {
		if strings.HasPrefix(id, ours) {
			return Refuse(BadInput, "the id %q begins with %q, as those do that are made for inputs without one: choose another", id, ours)
		}
	}
	return checkName("the id", id)
}

// checkName refuses an id, or another name that a sender chooses, that cannot be shown in a line.
func checkName(what, name string) error {
	if len(name) > MaxID {
		return Refuse(BadInput, "%s is %d bytes long: the limit is %d", what, len(name), MaxID)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return Refuse(BadInput, "%s %q holds control characters or is no UTF-8", what, name)
	}
	return nil
}

// streamID is the prefix of the ids of StreamInputID. It is refused from outside: such an
// id can be guessed, and be used before its input arrives.
const streamID = "in:"

// StreamInputID returns the idempotency key of an input that a stream delivered without
// one: the same for each delivery of the same message. A stream that lost messages uses their
// sequences again, so the time at which the message was stored is part of it.
func StreamInputID(streamCreated time.Time, sequence uint64, stored time.Time) string {
	return fmt.Sprintf("%s%d:%d:%d", streamID, streamCreated.UnixMilli(), sequence, stored.UnixNano())
}

// timerID is the prefix of the ids of TimerInputID. It is refused from outside.
const timerID = "timer:"

// TimerInputID returns the idempotency key of a repeated input; n is the timer.set that
// fires.
func TimerInputID(timer string, n EventNumber) string {
	return fmt.Sprintf("%s%s:%d", timerID, timer, n)
}

// Derived returns a token that depends on all parts: 128 bits of SHA-256 in the alphabet of
// addresses.
func Derived(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// ChildOf returns the child of that kind of a call: the same for each attempt of the call.
func ChildOf(parent AgentID, kind string, turn TurnID, call CallID) AgentID {
	return AgentID{Tenant: parent.Tenant, Kind: kind, Key: Derived("sub-", parent.Full(), string(turn), string(call))}
}

// TaskID returns the id of the input that a call sends its child.
func TaskID(c Caller) string { return Derived("task:", c.Agent, string(c.Turn), string(c.Call)) }

// CancelID returns the id of the command that cancels the task with this id.
func CancelID(input string) string { return Derived("task:", "cancel", input) }

// ReportID returns the id of the report about the task with this id as of the child's event n.
func ReportID(input string, n EventNumber) string {
	return Derived("report:", input, strconv.FormatUint(uint64(n), 10))
}
