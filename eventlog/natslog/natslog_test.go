package natslog_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

func TestLog(t *testing.T) {
	t.Parallel()
	s := suite{subjects: freshRoot()}
	t.Cleanup(func() { s.remove(t) })
	logtest.Run(t, func(t *testing.T) logtest.Opened {
		l, c := s.open(t)
		js := jetStream(t, c)
		return logtest.Opened{Store: l.Store(), Feed: l, Emptied: true, Inject: func(t *testing.T, e eventlog.Entry, foreign bool) {
			m := &nats.Msg{Subject: c.Subjects.Log(e.Agent), Data: e.Bytes}
			if !foreign {
				m.Header = natslog.FrameHeader(e)
			}
			if _, err := js.PublishMsg(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}, Tamper: func(t *testing.T, a messages.AgentID, b messages.Blob) { tamper(t, c, a, b) }}
	})
}

// suite opens logs for one test after the other on the same streams, which cost more
// to make than most of the tests that use them.
type suite struct{ subjects messages.Subjects }

// open opens a log that is empty, whatever was there before.
func (s suite) open(t *testing.T) (*natslog.Log, natslog.Config) {
	t.Helper()
	c := natslog.Config{Subjects: s.subjects, Logger: quiet, Conns: []*nats.Conn{connect(t), connect(t)}}
	js := jetStream(t, c)
	for _, name := range streamNames(c.Subjects) {
		stream, err := js.Stream(context.Background(), name)
		if err == nil && stream.CachedInfo().State.Msgs > 0 {
			err = stream.Purge(context.Background())
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
	}
	l, err := natslog.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

func (s suite) remove(t *testing.T) {
	t.Helper()
	removeStreams(t, natslog.Config{Subjects: s.subjects, Conns: []*nats.Conn{connect(t)}})
}

func TestEmptyShardsEndAtZero(t *testing.T) {
	l, _ := open(t, 1)
	for shard := range l.Shards() {
		if end, err := l.ShardEnd(t.Context(), shard); err != nil || end != 0 {
			t.Errorf("shard %d ends at %d, %v", shard, end, err)
		}
	}
}

// A reader on its way while an agent is deleted meets the tombstone, and no damage.
func TestReadWhilePurged(t *testing.T) { // A108
	l, _ := open(t, 1)
	a, long := logtest.Agent("ada"), strings.Repeat("x", 200<<10) // more than is on the way to a reader
	var tail eventlog.Position
	add := func(events ...messages.Event) {
		var err error
		if tail, err = l.Append(t.Context(), logtest.Entry(t, a, tail, events...)); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		add(messages.CommandNoop{Command: "abort", Reason: long})
	}
	add(messages.AgentDeleted{})
	var last eventlog.Recorded
	read := 0
	for r, err := range l.Read(t.Context(), a, eventlog.Range{}) {
		if err != nil {
			t.Fatalf("after event %d: %v", last.Frame.Last(), err)
		}
		if read++; read == 1 {
			if err := l.Purge(t.Context(), a, tail.Seq); err != nil {
				t.Fatal(err)
			}
		}
		last = r
	}
	if last.Position() != tail || read > 200 {
		t.Errorf("%d frames up to %+v, want %+v and fewer than there were", read, last.Position(), tail)
	}
}

// Consumers must go when a reader ends, breaks off or is cancelled.
func TestReadersLeaveNoConsumers(t *testing.T) {
	l, c := open(t, 1)
	a := logtest.Agent("ada")
	var tail eventlog.Position
	for range 20 {
		var err error
		if tail, err = l.Append(context.Background(), logtest.Entry(t, a, tail)); err != nil {
			t.Fatal(err)
		}
	}
	name := l.Names().Log(a.Partition())
	made, removed := listen(t, c.Conns[0], "$JS.API.CONSUMER.CREATE."+name+".>"), listen(t, c.Conns[0], "$JS.API.CONSUMER.DELETE."+name+".>")
	for _, after := range []int{1, 20, 100} {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		for range l.Read(ctx, a, eventlog.Range{}) {
			if n++; n == after {
				break
			}
		}
		n = 0
		for range l.Follow(ctx, a.Partition()) {
			if n++; n == 1 {
				break
			}
		}
		cancel()
		for range l.Read(ctx, a, eventlog.Range{}) { // with an error
		}
	}
	for creations := pending(t, made); creations > 0; creations-- {
		if _, err := removed.NextMsgWithContext(t.Context()); err != nil {
			t.Fatalf("%d consumers were not removed: %v", creations, err)
		}
	}
	stream, err := jetStream(t, c).Stream(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	for left := -1; left != 0; { // removal is asked for, not waited for
		info, err := stream.Info(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		left = info.State.Consumers
	}
}

func listen(t *testing.T, nc *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func pending(t *testing.T, sub *nats.Subscription) int {
	t.Helper()
	n, _, err := sub.Pending()
	if err != nil || n == 0 {
		t.Fatalf("%d messages on %s, %v", n, sub.Subject, err)
	}
	return n
}

// A message on a subject that is no agent's is passed over, and a reader of the shard
// is notified that it is past the message.
func TestStrayMessageInAShard(t *testing.T) { // A29
	l, c := open(t, 1)
	a := logtest.Agent("ada")
	if _, err := l.Append(t.Context(), logtest.Entry(t, a, eventlog.Position{})); err != nil {
		t.Fatal(err)
	}
	publish(t, c, &nats.Msg{Subject: strings.TrimSuffix(c.Subjects.LogOf(a.Partition()), ">") + "stray"})
	shard := int(a.Partition()) * l.Shards() / messages.Partitions
	for _, gone := range []bool{false, true} { // as when a restore has left it out
		if gone {
			s, m := stored(t, c, l.ShardName(shard), ">")
			removeMsg(t, s, m)
		}
		var told []uint64
		for m, err := range l.ReadShard(t.Context(), shard, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if told = append(told, m.Seq); m.Agent == (messages.AgentID{}) {
				break
			}
		}
		if end, err := l.ShardEnd(t.Context(), shard); err != nil || !slices.Equal(told, []uint64{1, end}) || end != 2 {
			t.Errorf("gone %v: told %v of %d, %v", gone, told, end, err)
		}
	}
}

// What waits for a slow reader of a shard waits in the server.
func TestSlowReaderOfAShard(t *testing.T) {
	l, c := open(t, 1)
	a, nc := logtest.Agent("ada"), c.Conns[0]
	for range 2000 {
		publish(t, c, &nats.Msg{Subject: c.Subjects.Log(a), Data: make([]byte, 1<<10)})
	}
	before := nc.Stats().InMsgs
	for _, err := range l.ReadShard(t.Context(), int(a.Partition())*l.Shards()/messages.Partitions, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // what the server has sent has come
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		break
	}
	if ahead := nc.Stats().InMsgs - before; ahead > 100 {
		t.Errorf("%d messages came for one that was read", ahead)
	}
}

func TestForeignMessagesAreReportedOnce(t *testing.T) {
	var lines strings.Builder
	c := natslog.Config{Subjects: freshRoot(), Conns: []*nats.Conn{connect(t)}, Logger: slog.New(slog.NewTextHandler(&lines, nil))}
	l, err := natslog.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeStreams(t, c) })
	a := logtest.Agent("ada")
	if _, err := jetStream(t, c).Publish(context.Background(), c.Subjects.Log(a), []byte("who am I")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, err := range l.Read(context.Background(), a, eventlog.Range{}) {
			t.Errorf("a frame or %v", err)
		}
	}
	if got := lines.String(); strings.Count(got, "foreign message") != 1 || !strings.Contains(got, "agent=test/ada") || !strings.Contains(got, "sequence=1") {
		t.Errorf("logged %q", got)
	}
}

func TestSmallServerTakesSmallFrames(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), DontListen: true, Sync: embedded.SyncRelaxed, MaxPayload: 64 << 10, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	l, err := natslog.Open(context.Background(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if l.Limit() != 32<<10 {
		t.Errorf("limit %d, want half of the server's", l.Limit())
	}
	big := messages.CommandNoop{Reason: strings.Repeat("x", 40<<10)}
	if _, err := l.Append(context.Background(), logtest.Entry(t, logtest.Agent("ada"), eventlog.Position{}, big)); !errors.Is(err, eventlog.ErrTooLarge) {
		t.Errorf("40 KiB: %v, want ErrTooLarge", err)
	}
	var refused *messages.Error
	if _, err := l.PutDefinition(context.Background(), make([]byte, 64<<10)); !errors.As(err, &refused) || refused.Code != messages.TooLarge {
		t.Errorf("a large definition: %v, want too_large", err)
	}
}
