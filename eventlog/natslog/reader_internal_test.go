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
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// lagging is a consumer that delivers what its replica has by each fetch: these sequences.
type lagging struct {
	jetstream.Consumer
	t       *testing.T
	fetches [][]uint64
	given   uint64
}

// FetchNoWait delivers the next of the fetches.
func (c *lagging) FetchNoWait(int) (jetstream.MessageBatch, error) {
	c.t.Helper()
	if len(c.fetches) == 0 {
		c.t.Fatal("one fetch too many")
	}
	all := make(chan jetstream.Msg, len(c.fetches[0]))
	for _, seq := range c.fetches[0] {
		c.given++
		all <- &brought{seq: jetstream.SequencePair{Consumer: c.given, Stream: seq}}
	}
	close(all)
	c.fetches = c.fetches[1:]
	return batch{all: all}, nil
}

type batch struct {
	jetstream.MessageBatch
	all chan jetstream.Msg
}

// Messages returns what was fetched.
func (b batch) Messages() <-chan jetstream.Msg { return b.all }

// Error returns nil.
func (b batch) Error() error { return nil }

type brought struct {
	jetstream.Msg
	seq jetstream.SequencePair
}

// Metadata has the sequences.
func (m *brought) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: m.seq}, nil
}

// Subject is empty.
func (m *brought) Subject() string { return "" }

// Headers are none.
func (m *brought) Headers() nats.Header { return nil }

// Data is none.
func (m *brought) Data() []byte { return nil }

// lagged is a follower of partition 0 that was given all up to sequence 5, and what it is given
// from then on.
type lagged struct {
	reader
	t     *testing.T
	given []uint64
}

func newLagged(t *testing.T, fetches ...[]uint64) *lagged {
	f := &follower{stream: "S", filter: "f", atOnce: headsAtOnce, at: 5, passed: 5, told: true, own: &own{replicated: true}, pause: backoff.NewExponentialBackOff()}
	l := &lagged{t: t, reader: reader{follower: f, quiet: quietRounds, goal: 5, from: 5, used: time.Now(), feed: &feed{c: &conn{nc: new(nats.Conn)}, consumer: &lagging{t: t, fetches: fetches}}}}
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
	if c, _ := l.feed.consumer.(*lagging); len(c.fetches) > 0 {
		l.t.Errorf("fetches %v were not made", c.fetches)
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

// mute is a consumer whose fetches bring nothing and do not end.
type mute struct{ jetstream.Consumer }

// FetchNoWait brings nothing.
func (mute) FetchNoWait(int) (jetstream.MessageBatch, error) {
	return batch{all: make(chan jetstream.Msg)}, nil
}

// TestFetchEndsWithItsContext checks that a fetch which waits for a message ends when its context does.
func TestFetchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f := &feed{c: &conn{nc: new(nats.Conn)}, consumer: mute{}}
		if _, more, err := f.fetch(ctx, 1, nil); more || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("more %v, %v", more, err)
		}
	})
}
