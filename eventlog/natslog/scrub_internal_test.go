package natslog

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// TestScrubListIsBounded finds more than is listed, twice.
func TestScrubListIsBounded(t *testing.T) {
	a := messages.AgentID{Tenant: "t", Kind: "k", Key: "a"}
	var bad []Unreadable
	for seq := range uint64(scrubListed + 50) {
		bad = append(bad, Unreadable{Seq: seq + 1, Detail: "spoilt"})
	}
	var s Scrub
	next := s.merge(1000, bad, map[uint64]messages.AgentID{7: a})
	if len(next.Bad) != scrubListed || next.More != 50 || next.After != 1000 || next.Bad[6].Agent != a || len(s.fresh(next)) != scrubListed {
		t.Errorf("%d are listed, %d more: %+v", len(next.Bad), next.More, next.Bad[6])
	}
	again := next
	again.After, again.More = 0, 0 // a pass that begins
	if again = again.merge(1000, bad[:20], nil); len(again.Bad) != 20 || again.More != 0 || again.Bad[6].Agent != a || len(next.fresh(again)) != 0 {
		t.Errorf("once 20 are left: %d are listed, %d more", len(again.Bad), again.More)
	}
}
