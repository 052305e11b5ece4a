package natslog

import (
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A frame that the reader has passed, since it was purged, is kept no longer, however far the
// reader came at once.
func TestPassedFramesAreDropped(t *testing.T) { // A102, A108
	for _, at := range []uint64{2, ownHeads, 3 * ownHeads} {
		o := new(own)
		if _, kept := o.keep(0); !kept {
			t.Fatal("nothing is kept")
		}
		a := messages.AgentID{Tenant: messages.DefaultTenant, Kind: "clerk", Key: "ada"}
		f := &messages.Frame{ID: "f1", Epoch: 1, First: 1, Events: []messages.Event{messages.CommandNoop{}}}
		o.add(eventlog.Entry{Agent: a, Frame: f, Bytes: make([]byte, 100)}, eventlog.Position{Seq: 2}) // not behind 0 without a gap
		if list := o.frames(0); len(list) != 0 || o.kept != 100 {
			t.Fatalf("%d frames, %d bytes are kept", len(list), o.kept)
		}
		if list := o.frames(at); len(list) != 0 || o.kept != 0 {
			t.Errorf("at %d: %d frames, %d bytes are kept", at, len(list), o.kept)
		}
	}
}
