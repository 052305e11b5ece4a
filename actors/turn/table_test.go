package turn_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// Every command of the table reaches the machine's own code.
func TestEveryCommandIsDecided(t *testing.T) {
	for _, c := range messages.Commands() {
		s := &turn.State{Last: 1}
		_, err := s.Decide(turn.Env{Agent: messages.AgentID{Tenant: "default", Kind: "a", Key: "1"}}, messages.WithID(c, "x"))
		if err != nil && strings.Contains(err.Error(), "unknown to this version") {
			t.Errorf("%s: %v", c.CommandType(), err)
		}
	}
}
