package actors

import "testing"

// TestNoTimerWithoutAgents checks that nothing keeps a node in memory when its last agent has
// left.
func TestNoTimerWithoutAgents(t *testing.T) {
	s, r := newResidents(Config{}), new(resident)
	s.enter()
	s.note(r, 1, true)
	if s.timer == nil {
		t.Fatal("nothing ends the time of an idle agent")
	}
	s.exit(r)
	if s.timer != nil {
		t.Error("a timer runs when no agent is in memory")
	}
}
