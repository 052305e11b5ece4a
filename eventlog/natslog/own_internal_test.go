package natslog

import (
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A frame is kept until its follower has it, and those of one stream only as far as there is room.
func TestOwnFramesAreGivenOnce(t *testing.T) { // A102, A108
	o := new(own)
	a := messages.AgentID{Tenant: messages.DefaultTenant, Kind: "clerk", Key: "ada"}
	for seq := range uint64(3) {
		f := &messages.Frame{ID: "f1", Epoch: 1, First: 1, Events: []messages.Event{messages.CommandNoop{}}}
		o.add(eventlog.Entry{Agent: a, Frame: f, Bytes: make([]byte, ownBytes/2)}, eventlog.Position{Seq: seq + 1})
	}
	if list, last := o.behind(0, a.Partition()); last != 3 || len(list) != 3 || list[0].Frame == nil || list[1].Frame == nil || list[2].Frame != nil || o.kept != 0 {
		t.Errorf("%d are given up to %d, %d bytes are kept", len(list), last, o.kept)
	}
	if list, _ := o.behind(0, a.Partition()); len(list) != 3 || list[0].Frame != nil {
		t.Errorf("a frame is given again: %v", list)
	}
}
