package natslog_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// remove deletes a message from the log, as if it had been taken out of the files.
func (s *store) remove(a messages.AgentID, seq uint64) {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.t.Fatal(err)
	}
	stream, err := js.Stream(s.t.Context(), streamOf(a))
	if err == nil {
		err = stream.DeleteMsg(s.t.Context(), seq)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestQuarantined records what was taken out of a stream: it is no other loss, it hides
// none, and the agents concerned are known until it is purged or accepted.
func TestQuarantined(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(4)
	a, b := agents[0], agents[1]
	shard, lost := s.log.ShardOf(a), tails[0].Seq-2
	s.remove(a, lost)
	if loss := s.check(a); loss == nil || loss.Missing != 1 {
		t.Fatalf("loss %+v, want 1 message", loss)
	}
	for range 2 { // a node may die between its record and that of the files
		if err := s.log.Quarantine(t.Context(), shard, "one", []natslog.Quarantined{{ID: "one", First: lost, Last: lost, Agent: a}}); err != nil {
			t.Fatal(err)
		}
	}
	if loss := s.check(a); loss != nil {
		t.Fatalf("what was taken out is a loss: %v", loss)
	}
	s.remove(b, tails[1].Seq-2)
	if loss := s.check(a); loss == nil || loss.Missing != 1 {
		t.Fatalf("loss %+v, want the other message", loss)
	}
	other := openStoreOn(t, s)
	_ = other.check(a)
	if q := other.log.LostFrame(a, tails[0].Seq); q == nil || q.Last != lost {
		t.Errorf("of the agent %+v is known", q)
	}
	if q := other.log.LostFrame(b, tails[1].Seq); q != nil {
		t.Errorf("of its neighbour %+v is known", q)
	}
	if err := s.log.Purge(t.Context(), a, tails[0].Seq); err != nil {
		t.Fatal(err)
	}
	if q := s.log.LostFrame(a, tails[0].Seq); q != nil {
		t.Errorf("after a purge %+v is known", q)
	}
}

// TestQuarantinedUnknown takes messages out of which nothing can be read. Agents that have
// nothing newer may be those that lost them.
func TestQuarantinedUnknown(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(4)
	a, b := agents[0], agents[1]
	shard := s.log.ShardOf(a)
	s.remove(b, tails[1].Seq)
	if err := s.log.Quarantine(t.Context(), shard, "one", []natslog.Quarantined{{ID: "one", First: tails[0].Seq + 1, Last: tails[1].Seq}}); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(a); loss != nil {
		t.Fatal(loss)
	}
	if s.log.LostFrame(a, tails[0].Seq) == nil || s.log.LostFrame(b, tails[1].Seq-2) == nil {
		t.Error("agents that may have lost their newest frame are taken for whole")
	}
	tail, err := s.log.Append(t.Context(), logtest.Entry(t, a, tails[0]))
	if err != nil {
		t.Fatal(err)
	}
	if q := s.log.LostFrame(a, tail.Seq); q != nil {
		t.Errorf("of an agent that has something newer %+v is known", q)
	}
	accepted, now, err := s.log.Accept(t.Context(), shard, "ada", "it was a test")
	if err != nil || !now || accepted.Loss == "" {
		t.Fatalf("accepted %+v, %v, %v", accepted, now, err)
	}
	if q := s.log.LostFrame(b, 0); q != nil {
		t.Errorf("after it was accepted %+v is known", q)
	}
}

// TestStandInIsNotAccepted has a person accept the loss of a stream that is only set aside.
func TestStandInIsNotAccepted(t *testing.T) {
	s := newStore(t)
	agents, _ := s.filled(2)
	a := agents[0]
	js, err := jetstream.New(s.nc)
	if err == nil {
		err = js.DeleteStream(t.Context(), streamOf(a))
	}
	if err == nil {
		_, err = natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{s.nc}, SetAside: []string{streamOf(a)}, Logger: quiet})
	}
	if err != nil {
		t.Fatal(err)
	}
	other := openStoreOn(t, s) // of a node that does not know
	if loss := other.check(a); loss == nil {
		t.Fatal("nothing is lost")
	}
	if _, _, err := other.log.Accept(t.Context(), other.log.ShardOf(a), "ada", "it was a test"); messages.AsError(err).Code != messages.Conflict || !strings.Contains(err.Error(), "--quarantine") {
		t.Errorf("accepted: %v", err)
	}
}

// TestQuarantinedOfDeleted takes a frame out of an agent that was deleted since and lives
// again: it has lost nothing.
func TestQuarantinedOfDeleted(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(3)
	a, b := agents[0], agents[1]
	end, err := s.log.Append(t.Context(), logtest.Entry(t, a, tails[0], messages.AgentDeleted{}))
	if err == nil {
		err = s.log.Purge(t.Context(), a, end.Seq)
	}
	if err == nil {
		err = s.log.Quarantine(t.Context(), s.log.ShardOf(a), "one", []natslog.Quarantined{
			{ID: "one", First: tails[0].Seq, Last: tails[0].Seq, Agent: a}, {ID: "one", First: tails[1].Seq, Last: tails[1].Seq, Agent: b},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if q := s.log.LostFrame(a, end.Seq); q != nil {
		t.Errorf("of the deleted agent %+v is known", q)
	}
	if s.log.LostFrame(b, tails[1].Seq) == nil {
		t.Error("of its neighbour nothing is known")
	}
}

// TestManyQuarantined takes more out than is kept by agent.
func TestManyQuarantined(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(2)
	a := agents[0]
	places := make([]natslog.Quarantined, 1001)
	for i := range places {
		places[i] = natslog.Quarantined{ID: "one", First: uint64(i) + 10, Last: uint64(i) + 10, Agent: agents[1]}
	}
	if err := s.log.Quarantine(t.Context(), s.log.ShardOf(a), "one", places); err != nil {
		t.Fatal(err)
	}
	q := s.log.LostFrame(a, tails[0].Seq)
	if q == nil || q.First != 10 || q.Last != 1010 || len(s.log.Quarantines(s.log.ShardOf(a))) != 1 {
		t.Errorf("%+v is known", q)
	}
}
