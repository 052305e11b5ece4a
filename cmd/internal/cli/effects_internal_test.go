package cli

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func TestOutcomeText(t *testing.T) {
	decided := projections.ToolCall{Outcome: projections.CallCompleted, By: messages.ByDecision, Dry: true}
	for want, e := range map[string]projections.Effect{
		"completed by decision, dry":                            {ToolCall: decided},
		"completed by decision, dry, imported, before the fork": {ToolCall: decided, Imported: true, BeforeFork: true},
	} {
		if got := outcomeText(e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
