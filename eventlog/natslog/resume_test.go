package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// renumber moves the agent's log stream to another and back, so that its
// sequences begin at first, as a restore may. The server takes the fences away.
func renumber(t *testing.T, c natslog.Config, a messages.AgentID, first uint64) {
	t.Helper()
	ctx, js, name := context.Background(), jetStream(t, c), natslog.NamesOf(c.Subjects).Log(a.Partition())
	have, err := js.Stream(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	config := have.CachedInfo().Config
	fill := func(from string, to jetstream.StreamConfig) {
		to.Sources = []*jetstream.StreamSource{{Name: from}}
		s, err := js.CreateStream(ctx, to)
		if err != nil {
			t.Fatal(err)
		}
		for msgs := uint64(0); msgs < have.CachedInfo().State.Msgs; {
			info, err := s.Info(ctx)
			if err != nil {
				t.Fatal(err)
			}
			msgs = info.State.Msgs
		}
		to.Sources = nil
		if _, err := js.UpdateStream(ctx, to); err != nil {
			t.Fatal(err)
		}
	}
	fill(name, jetstream.StreamConfig{Name: name + "_COPY"})
	if err := js.DeleteStream(ctx, name); err != nil {
		t.Fatal(err)
	}
	config.FirstSeq = first
	fill(name+"_COPY", config)
	if err := js.DeleteStream(ctx, name+"_COPY"); err != nil {
		t.Fatal(err)
	}
}

// grow appends n frames and returns the tails behind each.
func grow(t testing.TB, l eventlog.Log, a messages.AgentID, tail eventlog.Position, n int) (tails []eventlog.Position) {
	t.Helper()
	for range n {
		var err error
		if tail, err = l.Append(context.Background(), logtest.Entry(t, a, tail)); err != nil {
			t.Fatal(err)
		}
		tails = append(tails, tail)
	}
	return tails
}

func readFrom(l eventlog.Reader, a messages.AgentID, after eventlog.Position) (all []eventlog.Position, err error) {
	for r, err := range l.Read(context.Background(), a, eventlog.Behind(after)) {
		if err != nil {
			return all, err
		}
		all = append(all, r.Position())
	}
	return all, nil
}

// A place from before a restore that renumbers is none, and what is read on from
// one behind it is right whatever the frames' own headers say.
func TestRenumberedLog(t *testing.T) {
	for _, first := range []uint64{3, 5, 100} {
		l, c := open(t, 1)
		a := logtest.Agent("ada")
		tails := grow(t, l, a, eventlog.Position{}, 8)
		renumber(t, c, a, first)
		for _, old := range tails {
			if got, err := readFrom(l, a, old); !errors.Is(err, eventlog.ErrElsewhere) || len(got) > 0 {
				t.Errorf("first %d: behind sequence %d: %d frames, %v", first, old.Seq, len(got), err)
			}
		}
		for i := range tails {
			tails[i].Seq += first - 1
		}
		more := grow(t, l, a, tails[7], 2)
		tails = append(tails, more...)
		for i, tail := range tails {
			got, err := readFrom(l, a, tail)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(tails[i+1:]) {
				t.Errorf("first %d: behind sequence %d: %v, %v", first, tail.Seq, got, err)
			}
		}
	}
}

// A missing frame in the middle is damage wherever one reads on from.
func TestReadFromMissesAFrame(t *testing.T) { // A29
	l, c := open(t, 1)
	a := logtest.Agent("ada")
	tails := grow(t, l, a, eventlog.Position{}, 6)
	s, err := jetStream(t, c).Stream(context.Background(), l.Names().Log(a.Partition()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMsg(context.Background(), tails[3].Seq); err != nil {
		t.Fatal(err)
	}
	for n, tail := range tails[:3] {
		got, err := readFrom(l, a, tail)
		var damaged *eventlog.DamageError
		if !errors.As(err, &damaged) || damaged.Event != 4 || len(got) != 2-n {
			t.Errorf("behind event %d: %d frames, %v", tail.Last, len(got), err)
		}
	}
	if _, err := readFrom(l, a, tails[3]); !errors.Is(err, eventlog.ErrElsewhere) {
		t.Error(err)
	}
	if got, err := readFrom(l, a, tails[4]); err != nil || len(got) != 1 {
		t.Errorf("%d frames, %v", len(got), err)
	}
}

// A fence of another subject leads nowhere.
func TestReadFromAnothersFence(t *testing.T) {
	l, c := open(t, 1)
	agents := logtest.Neighbours(2)
	other := grow(t, l, agents[1], eventlog.Position{}, 2)
	tails := grow(t, l, agents[0], eventlog.Position{}, 2)
	e := logtest.Entry(t, agents[0], tails[1])
	m := &nats.Msg{Subject: c.Subjects.Log(agents[0]), Data: e.Bytes, Header: natslog.FrameHeader(e)}
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, fmt.Sprint(other[1].Seq))
	m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", c.Subjects.Log(agents[1]))
	publish(t, c, m)
	for n, tail := range tails {
		if got, err := readFrom(l, agents[0], tail); err != nil || len(got) != 2-n {
			t.Errorf("behind event %d: %d frames, %v", tail.Last, len(got), err)
		}
	}
}

// A first frame is only what the server has found to be one.
func TestFirstByAnothersFence(t *testing.T) { // A29
	l, c := open(t, 1)
	agents := logtest.Neighbours(2)
	grow(t, l, agents[0], eventlog.Position{}, 2)
	e := logtest.Entry(t, agents[0], eventlog.Position{})
	m := &nats.Msg{Subject: c.Subjects.Log(agents[0]), Data: e.Bytes, Header: natslog.FrameHeader(e)}
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, "0")
	m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", c.Subjects.Log(agents[1]))
	publish(t, c, m)
	var damaged *eventlog.DamageError
	if got, err := readFrom(l, agents[0], eventlog.Position{}); !errors.As(err, &damaged) {
		t.Errorf("%d frames, %v; want damage", len(got), err)
	}
}

// A shard's reader and a blob's reader live through a restart of the server, and
// through the loss of every consumer.
func TestStoreOutlivesItsServer(t *testing.T) { // A30
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet, DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect(nats.ErrorHandler(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	c := natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet}
	l, err := natslog.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	a, payload := logtest.Agent("ada"), bytesOf(3<<20, "restart")
	b := putBlob(t, l, a, payload)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	shard := int(a.Partition()) / (messages.Partitions / l.Shards())
	read := make(chan eventlog.Stored, 1000) // all that come
	go func() {
		defer close(read)
		for m, err := range l.ReadShard(ctx, shard, 0) {
			if err == nil && m.Agent == a {
				read <- m
			}
		}
	}()
	written := make(chan messages.FrameID)
	go write(t, l, a, 300, written)
	n := 0
	for range written {
		switch n++; n {
		case 1:
			if m := <-read; m.First != 1 { // it has begun: its first request is not made again
				t.Fatalf("event %d was told, want 1", m.First)
			}
		case 100:
			if err := srv.Restart(); err != nil {
				t.Fatal(err)
			}
		case 200:
			dropConsumers(t, c, l.Names().Log(a.Partition()))
		}
	}
	for want := messages.EventNumber(2); want <= 300; want++ {
		if m := <-read; m.First != want {
			t.Fatalf("event %d was told, want %d", m.First, want)
		}
	}
	cancel()
	for m := range read {
		t.Errorf("told %+v twice", m.Head)
	}
	if got, err := getBlob(l, a, b); err != nil || string(got) != string(payload) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func dropConsumers(t *testing.T, c natslog.Config, stream string) {
	t.Helper()
	s, err := jetStream(t, c).Stream(context.Background(), stream)
	if err != nil {
		t.Fatal(err)
	}
	for info := range s.ListConsumers(context.Background()).Info() {
		if err := s.DeleteConsumer(context.Background(), info.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Error(err)
		}
	}
}

// TestReadBehindADamagedFrame reads the newest frame, of one event and of two, where the frame
// before it, from which a reader would begin, cannot be read.
func TestReadBehindADamagedFrame(t *testing.T) {
	t.Parallel()
	for _, events := range [][]messages.Event{{messages.CommandNoop{Command: "abort"}}, {messages.CommandNoop{Command: "abort"}, messages.CommandNoop{Command: "clear"}}} {
		l, c := open(t, 1)
		a := logtest.Agent("ada")
		tail, err := l.Append(t.Context(), logtest.Entry(t, a, eventlog.Position{}))
		if err != nil {
			t.Fatal(err)
		}
		e := logtest.Entry(t, a, tail)
		e.Bytes = slices.Clone(e.Bytes)
		e.Bytes[len(e.Bytes)/2] ^= 1
		ack, err := jetStream(t, c).PublishMsg(t.Context(), &nats.Msg{Subject: c.Subjects.Log(a), Header: natslog.FrameHeader(e), Data: e.Bytes})
		if err != nil {
			t.Fatal(err)
		}
		tail, err = l.Append(t.Context(), logtest.Entry(t, a, e.Position(ack.Sequence), events...))
		if err != nil {
			t.Fatal(err)
		}
		for n := tail.Last - messages.EventNumber(len(events)) + 1; n <= tail.Last; n++ {
			if got, err := eventlog.First(l.Read(t.Context(), a, eventlog.From(n))); err != nil || got.Seq != tail.Seq {
				t.Errorf("from event %d: sequence %d, %v; want %d", n, got.Seq, err, tail.Seq)
			}
		}
	}
}

// TestReadOnByOneRequest checks that the frame behind one that was read from the log takes one
// request, as does one whose first event is known.
func TestReadOnByOneRequest(t *testing.T) {
	l, c := open(t, 1)
	a := logtest.Agent("ada")
	tails := grow(t, l, a, eventlog.Position{}, 3)
	for _, after := range []eventlog.Position{tails[1], {Last: tails[1].Last}} {
		requests, err := c.Conns[0].SubscribeSync("$JS.API.>")
		if err != nil {
			t.Fatal(err)
		}
		rec, err := eventlog.First(l.Read(t.Context(), a, eventlog.Range{After: after, Seen: true}))
		if err != nil || rec.Position() != tails[2] {
			t.Errorf("behind %+v: %+v, %v; want %+v", after, rec.Position(), err, tails[2])
		}
		if err := c.Conns[0].Flush(); err != nil {
			t.Fatal(err)
		}
		if n, _, err := requests.Pending(); n != 1 || err != nil {
			t.Errorf("behind %+v: %d requests, %v; want 1", after, n, err)
		}
	}
}
