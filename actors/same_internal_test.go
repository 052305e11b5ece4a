package actors

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A command is a duplicate only of one with the same id, type and content.
func TestSameCommand(t *testing.T) { // A8
	was := messages.Cause{ID: "u1", Type: "input", Digest: "d1", Endpoint: "in"}
	for _, c := range []struct {
		is      messages.Cause
		refusal string // empty: the same
	}{
		{messages.Cause{ID: "u1", Type: "input", Digest: "d1"}, ""},
		{messages.Cause{ID: "u2", Type: "input", Digest: "d1"}, `"u2" has the hash of "u1"`}, // equal hashes
		{messages.Cause{ID: "u1", Type: "clear", Digest: "d1"}, "used by another command (input)"},
		{messages.Cause{ID: "u1", Type: "input", Digest: "d2"}, "used with other content"},
		{messages.Cause{ID: "u1", Type: "input"}, ""}, // sent by another agent: no digest
	} {
		err := sameCommand(was, c.is, 7)
		if (err == nil) != (c.refusal == "") || err != nil && (err.Code != messages.Conflict || !strings.Contains(err.Message, c.refusal)) {
			t.Errorf("%+v: got error %v, want %q", c.is, err, c.refusal)
		}
	}
	timer := messages.Cause{Type: "effect", ID: "u1"}
	if err := sameCommand(timer, was, 7); err == nil || err.Code != messages.Conflict || !strings.Contains(err.Message, "that of a scheduled input") {
		t.Errorf("the id of an input from a timer: got error %v, want a conflict that names the timer", err)
	}
}
