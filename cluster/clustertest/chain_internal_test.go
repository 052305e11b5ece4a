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
	parent := messages.AgentID{Tenant: "default", Kind: "worker", Key: "p"}
	blob := &messages.Blob{SHA256: "b"}
	below := func(first messages.EventNumber, ev messages.Event) []stored {
		return []stored{{frame: &messages.Frame{ID: "p", First: first, Events: []messages.Event{ev}}, digest: "p9"}}
	}
	for name, c := range map[string]struct {
		harm   func([]stored) []stored
		parent []stored
		want   string
	}{
		"nothing":                              {harm: func(s []stored) []stored { return s }},
		"a lost frame":                         {harm: func(s []stored) []stored { return append(s[:1], s[2]) }, want: "does not follow frame f1"},
		"a frame twice":                        {harm: func(s []stored) []stored { return append(s, s[2]) }, want: "does not follow frame f3"},
		"other bytes":                          {harm: func(s []stored) []stored { s[1].digest = "x"; return s }, want: "does not follow frame f2"},
		"a fallen epoch":                       {harm: func(s []stored) []stored { s[2].frame.Epoch = 3; return s }, want: "has epoch 3, the one before it 4"},
		"no parent":                            {harm: forked, want: "begins with the events of worker/p up to 1"},
		"a parent":                             {harm: forked, parent: []stored{{frame: &messages.Frame{ID: "p", First: 1, Events: []messages.Event{messages.AgentCreated{}}}, digest: "p1"}}},
		"another parent":                       {harm: forked, parent: below(1, messages.AgentCreated{}), want: "up to 1"},
		"a parent that was imported":           {harm: forked, parent: below(3, messages.AgentImported{Source: "x/y", Frames: blob, Last: 2})},
		"an import that ends in another frame": {harm: forked, parent: below(2, messages.AgentImported{Source: "x/y", Frames: blob, Last: 1, Digest: "p2"}), want: "up to 1"},
		"a parent with a copy":                 {harm: forked, parent: below(5, messages.ForkDetached{Last: 1, Digest: "p1", Frames: blob})},
		"a parent with another copy":           {harm: forked, parent: below(5, messages.ForkDetached{Last: 1, Digest: "p2", Frames: blob}), want: "up to 1"},
		"a parent whose copy is short":         {harm: forked, parent: below(5, messages.ForkDetached{Digest: "p1", Frames: blob}), want: "up to 1"},
		"a copy": {harm: func(s []stored) []stored {
			s[2].frame.Events = []messages.Event{messages.ForkDetached{Last: 1, Digest: "p1", Frames: blob}}
			return forked(s)
		}},
		"a copy that is short": {harm: func(s []stored) []stored {
			s[2].frame.Events = []messages.Event{messages.ForkDetached{Digest: "p1", Frames: blob}}
			return forked(s)
		}, want: "up to 1"},
		"no beginning": {harm: func(s []stored) []stored { return s[1:] }, want: "begins with event 2"},
		"a tombstone": {harm: func(s []stored) []stored {
			s[1].frame.Events = []messages.Event{messages.AgentDeleted{}}
			return s[1:]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &evidence{b: newBook(), log: map[messages.AgentID][]stored{parent: c.parent}}
			e.chain(a, c.harm(honest()))
			found := strings.Join(e.b.faults, "; ")
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("want %q, found %q", c.want, found)
			}
		})
	}
}
