//go:build unix

package clustertest

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// The proof finds what a writer without the fence would do to an agent's chain, and
// nothing in one that is right.
func TestChainBites(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "worker", Key: "a"}
	honest := func() []stored {
		return []stored{
			{frame: &messages.Frame{ID: "f1", Epoch: 4, First: 1, Events: []messages.Event{messages.AgentCreated{}}}, digest: "d1"},
			{frame: &messages.Frame{ID: "f2", Epoch: 4, First: 2, Prev: "f1", PrevDigest: "d1", Events: []messages.Event{messages.AgentActivated{}}}, digest: "d2"},
			{frame: &messages.Frame{ID: "f3", Epoch: 7, First: 3, Prev: "f2", PrevDigest: "d2", Events: []messages.Event{messages.AgentActivated{}}}, digest: "d3"},
		}
	}
	forked := func(s []stored) []stored {
		s[1].frame.Prev, s[1].frame.PrevDigest = "", ""
		s[1].frame.Events = []messages.Event{messages.AgentForked{Agent: a.Full(), Parent: "default/worker/p", At: 1, Digest: "p1"}}
		return s[1:]
	}
	for name, c := range map[string]struct {
		harm func([]stored) []stored
		want string
	}{
		"nothing":        {func(s []stored) []stored { return s }, ""},
		"a lost frame":   {func(s []stored) []stored { return append(s[:1], s[2]) }, "does not follow frame f1"},
		"a frame twice":  {func(s []stored) []stored { return append(s, s[2]) }, "does not follow frame f3"},
		"other bytes":    {func(s []stored) []stored { s[1].digest = "x"; return s }, "does not follow frame f2"},
		"a fallen epoch": {func(s []stored) []stored { s[2].frame.Epoch = 3; return s }, "has epoch 3, the one before it 4"},
		"no parent":      {forked, "begins with the events of worker/p up to 1"},
		"a copy": {func(s []stored) []stored {
			s[2].frame.Events = []messages.Event{messages.ForkDetached{Last: 1, Digest: "p1", Frames: &messages.Blob{SHA256: "b"}}}
			return forked(s)
		}, ""},
		"no beginning": {func(s []stored) []stored { return s[1:] }, "begins with event 2"},
		"a tombstone": {func(s []stored) []stored {
			s[1].frame.Events = []messages.Event{messages.AgentDeleted{}}
			return s[1:]
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &evidence{b: newBook()}
			e.chain(a, c.harm(honest()))
			found := strings.Join(e.b.faults, "; ")
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("want %q, found %q", c.want, found)
			}
		})
	}
}
