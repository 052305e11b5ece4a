package client

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// The text of a model call is whole after the call's end and while its turn is held; a summary
// is another call.
func TestEndsCall(t *testing.T) {
	var got []string
	for _, ev := range messages.Events() {
		if endsCall(messages.TraitsOf(ev.EventType())) {
			got = append(got, ev.EventType())
		}
	}
	if want := strings.Fields("turn.paused turn.resumed model.completed model.failed model.restarted"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
