package actors

import (
	"sync"

	"github.com/reprise-dev/reprise/actors/turn"
)

// outcome is what came of an effect.
type outcome struct {
	of     turn.Effect
	result any
}

// outcomes are those that an agent has not taken yet, oldest first. Beside the mailbox
// it is the only place where something waits for an agent in memory, so that the outcomes
// which come during one append share the next frame. The zero value is empty. Safe for
// concurrent use.
type outcomes struct {
	mu   sync.Mutex
	list []outcome
}

// add reports whether o is the only one: the agent must then be sent an outcomesWait.
func (s *outcomes) add(o outcome) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, o)
	return len(s.list) == 1
}

// take removes the oldest outcomes, as many as have together at most limit bytes but
// at least one, and returns them.
func (s *outcomes) take(limit int) []outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.list) {
		if size += resultSize(s.list[n].result); n > 0 && size > limit {
			break
		}
		n++
	}
	taken := s.list[:n:n]
	if s.list = s.list[n:]; len(s.list) == 0 {
		s.list = nil
	}
	return taken
}

// more reports whether there are outcomes to take.
func (s *outcomes) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list) > 0
}
