package natslog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// lagging is a consumer that delivers what its replica has by each fetch: these sequences.
type lagging struct {
	*feed
	t       *testing.T
	fetches [][]uint64
	given   uint64
}

// newLagging has a peer answer for the consumer.
func newLagging(t *testing.T, fetches [][]uint64) *lagging {
	t.Helper()
	c, peer := connected(t)
	s, err := c.newSlot(slotRoom)
	if err != nil {
		t.Fatal(err)
	}
	l := &lagging{t: t, feed: &feed{slot: s, c: c, stream: "S", name: "C", atOnce: headsAtOnce}, fetches: fetches}
	_, err = peer.Subscribe("$JS.API.CONSUMER.MSG.NEXT.S.C", func(m *nats.Msg) { l.deliver(m.Reply) })
	if err := errors.Join(err, peer.Flush()); err != nil {
		t.Fatal(err)
	}
	return l
}

// deliver brings what the next fetch brings, behind what is late of an earlier request, and of an earlier
// consumer that used the slot. A message keeps its subject, which only a server can do,
// so it is put where the connection would.
func (l *lagging) deliver(answer string) {
	l.came <- &nats.Msg{Subject: l.prefix + "earlier", Header: nats.Header{"Status": {"409"}, "Description": {"Batch Completed"}}}
	l.came <- &nats.Msg{Subject: "f", Reply: "$JS.ACK.S.earlier.1.99.1.0.0", Sub: l.sub}
	if len(l.fetches) == 0 {
		l.t.Error("one fetch too many")
	} else {
		for _, seq := range l.fetches[0] {
			l.given++
			l.came <- &nats.Msg{Subject: "f", Reply: fmt.Sprintf("$JS.ACK.S.C.1.%d.%d.0.0", seq, l.given), Sub: l.sub}
		}
		l.fetches = l.fetches[1:]
	}
	l.came <- &nats.Msg{Subject: answer, Header: nats.Header{"Status": {"404"}}}
}

// lagged is a follower of partition 0 that was given all up to sequence 5, and what it is given
// from then on.
type lagged struct {
	reader
	t        *testing.T
	consumer *lagging
	given    []uint64
}

func newLagged(t *testing.T, fetches ...[]uint64) *lagged {
	t.Helper()
	consumer := newLagging(t, fetches)
	f := &follower{stream: "S", filter: "f", at: 5, passed: 5, told: true, own: &own{replicated: true}, pause: backoff.NewExponentialBackOff()}
	l := &lagged{t: t, consumer: consumer, reader: reader{follower: f, quiet: quietRounds, goal: 5, from: 5, used: time.Now(), feed: consumer.feed}}
	f.give = func(m *delivery) bool { l.given = append(l.given, m.seq); return true }
	f.giveOwn = f.ownOf(0, func(head eventlog.Stored) bool { l.given = append(l.given, head.Seq); return true })
	return l
}

// appended has this node append frames to a partition, at these sequences.
func (l *lagged) appended(p messages.Partition, all ...uint64) {
	a := messages.AgentID{Tenant: messages.DefaultTenant, Kind: "clerk"}
	for i := 0; a.Key == "" || a.Partition() != p; i++ {
		a.Key = fmt.Sprint("a", i)
	}
	for _, seq := range all {
		l.own.add(eventlog.Entry{Agent: a, Frame: &messages.Frame{First: 1, Events: []messages.Event{messages.CommandNoop{}}}}, eventlog.Position{Seq: seq})
	}
}

// reads has the reader read n times while the stream's leader has all up to end, after which
// these heads have been given.
func (l *lagged) reads(n int, end uint64, want ...uint64) {
	l.t.Helper()
	l.own.end, l.own.asked = end, time.Now().Add(time.Hour)
	for range n {
		if _, more, err := l.read(l.t.Context()); err != nil || !more {
			l.t.Fatalf("read: %t, %v", more, err)
		}
	}
	if !slices.Equal(l.given, want) {
		l.t.Fatalf("heads %v were given, want %v", l.given, want)
	}
}

// done fails unless all was fetched.
func (l *lagged) done() {
	l.t.Helper()
	if left := l.consumer.fetches; len(left) > 0 {
		l.t.Errorf("fetches %v were not made", left)
	}
}

// A head that a lagging replica delivers after the leader has named a later end of the stream is
// given, by the consumer that was made before and by a new one.
func TestLateHeadOfALaggingReplica(t *testing.T) { // A107
	l := newLagged(t, nil, []uint64{9, 10})
	l.reads(2, 10) // the end is asked for; nothing is fetched
	if cfg := l.config(); cfg.OptStartSeq != 6 {
		t.Errorf("a new consumer begins at %d, want 6", cfg.OptStartSeq)
	}
	l.reads(2, 12, 9, 10)
	l.done()
}

// An own head does not come before a head of before it which a lagging replica delivers late, and
// each comes once.
func TestOwnHeadBehindALateOne(t *testing.T) { // A107
	l := newLagged(t, nil, nil, []uint64{10}, []uint64{12}, []uint64{13}, []uint64{15})
	l.reads(2, 10)
	l.appended(1, 11)
	l.appended(0, 12)
	l.reads(1, 12)         // the replica has neither
	l.reads(1, 12, 10)     // the late one
	l.reads(1, 12, 10, 12) // ours
	l.appended(0, 13)
	l.reads(1, 13, 10, 12, 13) // from memory, and not again from the stream
	l.reads(1, 15, 10, 12, 13, 15)
	l.done()
}

// A partition in which nothing is new costs no fetch for what this node appends to others, also
// behind a place that the leader alone has named.
func TestOwnFramesOfOthersAreNotFetched(t *testing.T) { // A107
	l := newLagged(t, nil)
	l.reads(2, 10)
	for seq := uint64(11); seq < 20; seq++ {
		l.appended(1, seq)
		l.reads(2, seq)
	}
	l.done()
}

// One server reads what it has named: nothing that was passed over comes later.
func TestOneServerDoesNotLag(t *testing.T) { // A107
	l := newLagged(t, nil)
	l.own.replicated = false
	l.reads(2, 10)
	if l.at != 10 {
		t.Errorf("the reader is at %d, want 10", l.at)
	}
	l.appended(0, 11)
	l.reads(1, 11, 11)
	l.done()
}

// TestGap checks that a message which does not come is noticed by the next one.
func TestGap(t *testing.T) {
	l := newLagging(t, [][]uint64{{6}, {8}})
	take := func(*delivery) bool { return true }
	if n, more, err := l.fetch(t.Context(), take); n != 1 || !more || err != nil {
		t.Fatalf("%d came, more %t, %v", n, more, err)
	}
	l.given++ // sequence 7
	if n, _, err := l.fetch(t.Context(), take); n != 0 || !errors.Is(err, errLost) {
		t.Errorf("%d came, %v; want %v", n, err, errLost)
	}
}

// TestFetchWaitsForItsAnswer checks that a fetch whose answer does not come ends: with its context, with the
// connection, and where the consumer is silent.
func TestFetchWaitsForItsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(cancel func(), broken chan nats.Status)
		want error
	}{
		"context":    {func(cancel func(), _ chan nats.Status) { cancel() }, context.Canceled},
		"connection": {func(_ func(), broken chan nats.Status) { broken <- nats.RECONNECTING }, errBroken},
		"silence":    {func(func(), chan nats.Status) {}, errNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f := &feed{slot: &slot{came: make(chan *nats.Msg), broken: make(chan nats.Status, 1), timer: time.NewTimer(time.Hour)}}
				c.end(cancel, f.broken)
				if _, err := f.receive(ctx, silence); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
			})
		})
	}
}
