package cluster

import (
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/ownership"
)

// A kind is expected for a while after the last member that defines it has gone,
// for that may be restarting.
func TestKindsExpected(t *testing.T) {
	members := []ownership.Info{{ID: "me", Kinds: []string{"mine"}}, {ID: "other", Kinds: []string{"theirs"}}}
	k := &kinds{self: "me", list: func() []ownership.Info { return members }}
	expect := func(kind string, elsewhere, expected bool) {
		t.Helper()
		if k.elsewhere(kind) != elsewhere || k.expected(kind) != expected {
			t.Errorf("%s: elsewhere %t, expected %t", kind, k.elsewhere(kind), k.expected(kind))
		}
	}
	expect("theirs", true, true)
	expect("mine", false, false)
	members = members[:1]
	expect("theirs", false, true)
	k.seen["theirs"] = time.Now().Add(-kindGrace)
	expect("theirs", false, false)
	k.until = time.Now().Add(time.Hour) // the node has only just come
	expect("theirs", false, true)
}
