package natslog_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// followed starts to follow a partition and returns a function that waits for the next head,
// once the past is over.
func followed(t *testing.T, l *natslog.Log, p messages.Partition) (next func() eventlog.Head) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	heads := make(chan eventlog.Head)
	go func() {
		defer close(heads)
		for head, err := range l.Follow(ctx, p) {
			if err != nil {
				return
			}
			select {
			case heads <- head:
			case <-ctx.Done():
			}
		}
	}()
	next = func() eventlog.Head {
		t.Helper()
		head, ok := <-heads
		if !ok {
			t.Fatal("the follower ended")
		}
		return head
	}
	for next().Agent != (messages.AgentID{}) {
	}
	return next
}

// A node takes the heads of its own frames from memory; as soon as another node has written,
// to whichever partition of the stream, it reads the stream, and leaves none out.
func TestHeadsOfOwnFrames(t *testing.T) { // A107
	t.Parallel()
	l, c := open(t, 1)
	other, err := natslog.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	fetches := new(atomic.Int32)
	if _, err := connect(t).Subscribe("$JS.API.CONSUMER.MSG.NEXT."+l.Names().Log(0)+".>", func(*nats.Msg) { fetches.Add(1) }); err != nil {
		t.Fatal(err)
	}
	agents := agentsOf(0, 2)
	neighbour := agentsOf(1, 1)[0] // of another partition of the same stream
	next := followed(t, l, 0)
	beside := agentsOf(2, 1)[0] // of this node, in a partition that is not followed here
	var mine, theirs, besides eventlog.Tail
	wants := func(a messages.AgentID, tail eventlog.Tail) {
		t.Helper()
		if head := next(); head.Agent != a || head.Seq != tail.Seq || head.Last != tail.Last || head.Foreign {
			t.Fatalf("head %+v, want event %d of %s at %d", head, tail.Last, a, tail.Seq)
		}
	}
	own := func() {
		t.Helper()
		mine = grow(t, l, agents[0], mine, 1)[0]
		wants(agents[0], mine)
	}
	alone := func() {
		t.Helper()
		before := fetches.Load()
		for range 3 {
			besides = grow(t, l, beside, besides, 1)[0]
			own()
		}
		if n := fetches.Load() - before; n != 0 {
			t.Errorf("the stream was read %d times for the node's own frames", n)
		}
	}
	alone()
	var far eventlog.Tail
	for range 3 {
		far = grow(t, other, neighbour, far, 1)[0] // has no head here, and hides none
		own()
		theirs = grow(t, other, agents[1], theirs, 1)[0]
		mine = grow(t, l, agents[0], mine, 1)[0]
		wants(agents[1], theirs)
		wants(agents[0], mine)
	}
	for range natslog.QuietRounds + 3 {
		own()
	}
	alone()
}

// agentsOf returns n agents of a partition.
func agentsOf(p messages.Partition, n int) (list []messages.AgentID) {
	for i := 0; len(list) < n; i++ {
		if a := logtest.Agent("k" + string(rune('a'+i%26)) + string(rune('a'+i/26))); a.Partition() == p {
			list = append(list, a)
		}
	}
	return list
}
