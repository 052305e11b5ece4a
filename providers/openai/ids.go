package openai

import (
	"crypto/rand"

	"github.com/reprise-dev/reprise/messages"
)

// idSet makes the ids of calls unlike any other of the agent's.
type idSet struct {
	history []messages.Item
	given   []messages.CallID
}

func (s *idSet) keep(id string) messages.CallID {
	call := messages.CallID(id)
	if id == "" || s.has(call) {
		call = messages.CallID("call_" + rand.Text())
	}
	s.given = append(s.given, call)
	return call
}

func (s *idSet) has(id messages.CallID) bool {
	for _, g := range s.given {
		if g == id {
			return true
		}
	}
	for i := range s.history {
		if s.history[i].Type == messages.ItemCall && s.history[i].CallID == id {
			return true
		}
	}
	return false
}
