package natslog_test

import (
	"context"
	"testing"
	"time"

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
			case heads <- head.Head:
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

// twoNodes opens the logs of two nodes on one server. fetches returns how many fetches from the
// first stream the server has received.
func twoNodes(t *testing.T) (l, other *natslog.Log, fetches func() int) {
	t.Helper()
	l, c := open(t, 1)
	other, err := natslog.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return l, other, fetched(t, l)
}

// fetched returns a function that returns how many fetches from the first stream the server has
// received since.
func fetched(t *testing.T, l *natslog.Log) func() int {
	t.Helper()
	nc := connect(t)
	sub, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT." + l.Names().Log(0) + ".>")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() int {
		t.Helper()
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		n, _, err := sub.Pending()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// A node takes the heads of its own frames from memory; as soon as another node has written,
// to whichever partition of the stream, it reads the stream, and leaves none out.
func TestHeadsOfOwnFrames(t *testing.T) { // A107
	t.Parallel()
	l, other, fetches := twoNodes(t)
	agents := agentsOf(0, 2)
	neighbour := agentsOf(1, 1)[0] // of another partition of the same stream
	next := followed(t, l, 0)
	beside := agentsOf(2, 1)[0] // of this node, in a partition that is not followed here
	var mine, theirs, besides eventlog.Position
	wants := func(a messages.AgentID, tail eventlog.Position) {
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
		before := fetches()
		for range 3 {
			besides = grow(t, l, beside, besides, 1)[0]
			own()
		}
		if n := fetches() - before; n != 0 {
			t.Errorf("the stream was read %d times for the node's own frames", n)
		}
	}
	alone()
	var far eventlog.Position
	for range 3 {
		far = grow(t, other, neighbour, far, 1)[0] // has no head here, and hides none
		own()
		theirs = grow(t, other, agents[1], theirs, 1)[0]
		mine = grow(t, l, agents[0], mine, 1)[0]
		wants(agents[1], theirs)
		wants(agents[0], mine)
	}
	for range 2*natslog.QuietRounds + 2 { // a fetch may bring the next one, too
		own()
	}
	alone()
}

// What a follower has passed over is settled by the stream's leader, if nothing more is appended:
// a head among it is read, or there is none.
func TestPassedOverIsSettled(t *testing.T) { // A107
	t.Parallel()
	l, _ := open(t, 1)
	first := grow(t, l, agentsOf(0, 1)[0], eventlog.Position{}, 1)[0].Seq
	tails := grow(t, l, agentsOf(1, 1)[0], eventlog.Position{}, 2)
	end := tails[1].Seq
	if given, at, passed, err := l.ReadOn(t.Context(), 0, first, end); len(given) != 0 || at != end || passed != end || err != nil {
		t.Errorf("nothing of the partition: given %v, now at %d, passed %d, error %v, want both at %d", given, at, passed, err, end)
	}
	if given, at, passed, err := l.ReadOn(t.Context(), 2, first, end); len(given) != 0 || at != first || passed != end || err != nil {
		t.Errorf("the leader has no message of the partition, or cannot read it: given %v, now at %d, passed %d, error %v, want at %d, passed %d", given, at, passed, err, first, end)
	}
	late := grow(t, l, agentsOf(0, 2)[1], eventlog.Position{}, 1)[0].Seq
	tails = grow(t, l, agentsOf(1, 1)[0], tails[1], 1)
	if given, at, passed, err := l.ReadOn(t.Context(), 0, end, tails[0].Seq); len(given) != 1 || given[0] != late || at != late || passed != tails[0].Seq || err != nil {
		t.Errorf("a late head: given %v, now at %d, passed %d, error %v, want %d and passed %d", given, at, passed, err, late, tails[0].Seq)
	}
}

// A node that starts on what other partitions have appended behind one's own past takes its own
// frames from memory at once.
func TestHeadsOfOwnFramesAfterStart(t *testing.T) { // A107
	t.Parallel()
	l, other, fetches := twoNodes(t)
	a := agentsOf(0, 1)[0]
	tail := grow(t, other, a, eventlog.Position{}, 1)[0]
	grow(t, other, agentsOf(1, 1)[0], eventlog.Position{}, 3)
	next, past := followed(t, l, 0), fetches()
	for range 3 {
		tail = grow(t, l, a, tail, 1)[0]
		if head := next(); head.Seq != tail.Seq {
			t.Errorf("head %+v, want the one at %d", head, tail.Seq)
		}
	}
	if n := fetches() - past; n != 0 {
		t.Errorf("the stream was read %d times for the node's own frames", n)
	}
}

// The heads of own frames come with the frames, those of others' do not.
func TestFramesOfOwnCommits(t *testing.T) { // A87, A107
	t.Parallel()
	l, other, _ := twoNodes(t)
	agents := agentsOf(0, 2)
	all := make(chan eventlog.Stored)
	go func() {
		for m, err := range l.Follow(t.Context(), 0) {
			if err != nil {
				return
			}
			select {
			case all <- m:
			case <-t.Context().Done():
			}
		}
	}()
	if m := <-all; m.Agent != (messages.AgentID{}) {
		t.Fatalf("message %+v of an empty partition", m.Head)
	}
	var mine, theirs eventlog.Position
	for range 3 {
		mine = grow(t, l, agents[0], mine, 1)[0]
		m := <-all
		if m.Seq != mine.Seq || m.Frame == nil || m.Digest() != mine.Digest || len(m.Types) == 0 {
			t.Fatalf("message %+v with types %v, want event %d at %d", m.Head, m.Types, mine.Last, mine.Seq)
		}
		if f, err := m.Frame(); err != nil || f.ID != mine.Frame || !f.Time.Equal(mine.Time) || f.Time.Location() != time.UTC {
			t.Fatalf("frame %+v, %v", f, err)
		}
	}
	for range 5 { // own ones among others' are fetched
		theirs = grow(t, other, agents[1], theirs, 1)[0]
		mine = grow(t, l, agents[0], mine, 1)[0]
		if m := <-all; m.Seq != theirs.Seq || m.Frame != nil {
			t.Errorf("message %+v, want the head at %d alone", m.Head, theirs.Seq)
		}
		if m := <-all; m.Seq != mine.Seq || m.Frame == nil {
			t.Errorf("message %+v, want the frame at %d", m.Head, mine.Seq)
		}
	}
}

// What was appended before the connection broke is read from the stream, which may have lost it.
func TestOwnFramesOfABrokenConnection(t *testing.T) { // A87, A107
	t.Parallel()
	l, c := open(t, 1)
	fetches := fetched(t, l)
	a := agentsOf(0, 1)[0]
	connected := c.Conns[0].StatusChanged(nats.CONNECTED)
	next := followed(t, l, 0)
	var tail eventlog.Position
	for range 20 { // the follower may have taken the frame before the connection broke
		tail = grow(t, l, a, tail, 1)[0]
		if err := c.Conns[0].ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		<-connected
		if m := next(); m.Seq != tail.Seq || m.ID != tail.Frame {
			t.Fatalf("message %+v, want event %d at %d", m, tail.Last, tail.Seq)
		}
		if fetches() > 0 {
			return
		}
	}
	t.Error("frames of before the connection broke came from memory")
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
