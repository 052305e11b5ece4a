package natslog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// TestFetchesAreBounded checks that a fetch of large frames, behind small ones, brings few: a server
// cuts the connection of a node on which too much waits to be sent.
func TestFetchesAreBounded(t *testing.T) {
	t.Parallel()
	l, _ := open(t, 1)
	a, tail, stored := logtest.Agent("ada"), eventlog.Position{}, 0
	add := func(n int, events ...messages.Event) {
		for range n {
			e := logtest.Entry(t, a, tail, events...)
			var err error
			if tail, err = l.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			stored += len(e.Bytes)
		}
	}
	add(80)
	add(20, messages.CommandNoop{Command: "abort", Reason: strings.Repeat("x", 500<<10)})
	sizes, err := l.Fetches(t.Context(), a.Partition())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, size := range sizes {
		if sum += size; size > natslog.BytesAtOnce {
			t.Errorf("a fetch brought %d bytes, want %d at most", size, natslog.BytesAtOnce)
		}
	}
	if sum != stored || len(sizes) > 6 {
		t.Errorf("%d bytes came by fetches of %d, want %d", sum, sizes, stored)
	}
}

// TestForgedStatus checks that a foreign message on a log subject whose headers look like the server's
// word about a consumer is passed over by each reader: frames before and behind it come.
func TestForgedStatus(t *testing.T) {
	t.Parallel()
	l, c := open(t, 1)
	a := logtest.Agent("ada")
	forge := func() {
		for _, h := range []nats.Header{
			{"Status": {"409"}, "Description": {"Consumer Deleted"}}, {"Status": {"404"}}, {"Status": {"100"}}, {"Status": {"503"}},
			{"Status": {"409"}, "Description": {"Message Size Exceeds MaxBytes"}}, {"Nats-Pin-Id": {"1"}},
		} {
			publish(t, c, &nats.Msg{Subject: c.Subjects.Log(a), Header: h})
		}
	}
	forge()
	first := grow(t, l, a, eventlog.Position{}, 1)[0]
	forge()
	second := grow(t, l, a, first, 1)[0]
	forge()
	if got, err := readFrom(l, a, eventlog.Position{}); err != nil || !slices.Equal(got, []eventlog.Position{first, second}) {
		t.Errorf("read %v and %v, want %v and %v", got, err, first, second)
	}
	for m, err := range l.ReadPartition(t.Context(), a.Partition(), 0) {
		if err != nil || m.Agent == (messages.AgentID{}) || m.Seq == second.Seq {
			if err != nil || m.Seq != second.Seq {
				t.Errorf("the partition ends with %+v, %v", m, err)
			}
			break
		}
	}
	var heads []uint64
	for m, err := range l.Follow(t.Context(), a.Partition()) {
		switch {
		case err != nil:
			t.Fatal(err)
		case m.Agent == (messages.AgentID{}): // the past is over
			forge()
			grow(t, l, a, second, 1)
		case !m.Foreign:
			heads = append(heads, m.Seq)
		}
		if m.Seq > second.Seq && !m.Foreign {
			break
		}
	}
	if len(heads) != 2 || heads[0] != second.Seq {
		t.Errorf("heads %v come, want %d and one behind it", heads, second.Seq)
	}
}

// TestMessageBeyondTheBound checks that a message which is larger than what a request brings comes all
// the same, though only a stranger writes one.
func TestMessageBeyondTheBound(t *testing.T) {
	t.Parallel()
	nc, err := natslog.Connect(configured(t, "jetstream: enabled\nmax_payload: 8MB"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet}
	l, err := natslog.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	a := logtest.Agent("ada")
	first := grow(t, l, a, eventlog.Position{}, 1)[0]
	for range 2 {
		publish(t, c, &nats.Msg{Subject: c.Subjects.Log(a), Data: make([]byte, natslog.BytesAtOnce+1)})
	}
	want := grow(t, l, a, first, 1)[0]
	if got, err := readFrom(l, a, first); err != nil || !slices.Equal(got, []eventlog.Position{want}) {
		t.Errorf("read %v and %v, want %v", got, err, want)
	}
}

// TestFetchOfJustTheBound checks that a fetch ends which has brought as many bytes as it asked for: the
// server does not say so.
func TestFetchOfJustTheBound(t *testing.T) {
	t.Parallel()
	l, c := open(t, 1)
	a := logtest.Agent("ada")
	put := func(sizes ...int) {
		for _, size := range sizes {
			publish(t, c, &nats.Msg{Subject: c.Subjects.Log(a), Data: make([]byte, size)})
		}
	}
	const size = 1<<20 - 100
	put(size, size, size, size)
	shard := int(a.Partition()) * l.Shards() / messages.Partitions
	// The name is as long as one of the log's, for it is a part of each message.
	consumer, err := jetStream(t, c).CreateConsumer(t.Context(), l.ShardName(shard), jetstream.ConsumerConfig{Name: strings.Repeat("x", 22)})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(4)
	if err != nil {
		t.Fatal(err)
	}
	rest := natslog.BytesAtOnce
	for m := range batch.Messages() {
		rest -= len(m.Subject()) + len(m.Reply()) + len(m.Data())
	}
	put(size, size, size, size+rest, 10)
	if n, err := l.FetchFrom(t.Context(), a.Partition(), 4); err != nil || n != 4 {
		t.Errorf("%d messages came, %v; want 4", n, err)
	}
}

// TestHeadersOfACopyThatLags checks that headers are not taken for all that there are where a copy of the
// stream has none of them yet.
func TestHeadersOfACopyThatLags(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	nc := answered(t, map[string]func(*nats.Msg) *nats.Msg{
		"CONSUMER.CREATE.S.>": func(*nats.Msg) *nats.Msg { return &nats.Msg{Data: []byte(`{"num_pending":0}`)} },
		"STREAM.INFO.S": func(*nats.Msg) *nats.Msg {
			return &nats.Msg{Data: []byte(`{"state":{"messages":1,"first_seq":1,"last_seq":1}}`)}
		},
		"STREAM.MSG.GET.S": func(*nats.Msg) *nats.Msg { return &nats.Msg{Data: []byte(`{"message":{"subject":"s","seq":1}}`)} },
		"CONSUMER.MSG.NEXT.S.*": func(*nats.Msg) *nats.Msg {
			if asked++; asked == 3 {
				cancel()
			}
			return &nats.Msg{Header: nats.Header{"Status": {"404"}}}
		},
	})
	give := func(string, nats.Header, uint64) error { return nil }
	if err := natslog.ReadHeaders(ctx, nc, "S", jetstream.ConsumerConfig{}, give); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v, before the copy has caught up", err)
	}
}
