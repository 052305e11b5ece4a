package inbox

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// A server has confirmed the end of a message and still has it, as one of three has whose
// leader dies between both: it is removed before its sender is answered, it alone, and the
// consumer is asked once more.
func TestEndedAndStillThere(t *testing.T) {
	at := install(t)
	b, err := Open(at.ctx, Config{Conn: at.conn, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	if _, err := at.conn.Subscribe("settle.this", func(m *nats.Msg) {
		asked.Add(1)
		_ = m.Respond(nil)
	}); err != nil {
		t.Fatal(err)
	}
	at.publish(t, messages.AgentID{Tenant: a.Tenant, Kind: a.Kind, Key: "t2"}, `{"id":"1","content":"of another"}`)
	at.publish(t, a, `{"id":"1","content":"refused"}`, `{"id":"2","content":"behind it"}`)
	refused, err := b.stream.GetLastMsgForSubject(at.ctx, messages.Subjects{}.InboxOf(a.Partition()))
	if err != nil {
		t.Fatal(err)
	}
	msg := &message{place: place{seq: refused.Sequence - 1, settle: "settle.this"}, subject: refused.Subject}
	if err := b.end(at.ctx, msg, terminated(messages.Refuse(messages.Conflict, "no"))); err != nil {
		t.Fatal(err)
	}
	for seq, is := range map[uint64]bool{msg.seq - 1: true, msg.seq: false, msg.seq + 1: true} {
		if _, err := b.stream.GetMsg(at.ctx, seq); (err == nil) != is {
			t.Errorf("message %d is there: %v, want %v (%v)", seq, err == nil, is, err)
		}
	}
	if n := asked.Load(); n < 2 {
		t.Errorf("the server was asked %d times", n)
	}
}

// The consumer of what no partition takes is lost in the middle: it is replaced, and all
// is kept as dead letters.
func TestStraysOverALostConsumer(t *testing.T) { // A102
	at := install(t)
	const strays = 200
	for i := range strays {
		if _, err := at.js.Publish(at.ctx, fmt.Sprintf("reprise.in.k%d", i), []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Open(at.ctx, Config{Conn: at.conn, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer b.PullStray()()
	left := func() uint64 {
		info, err := b.stream.Info(at.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs
	}
	for left() > strays-10 {
	}
	if err := b.stream.DeleteConsumer(at.ctx, stray); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Fatal(err)
	}
	for left() > 0 { // until ctx ends
	}
}

// An input without an id has the same one at each delivery. A message that has its sequence
// after the stream lost it is another input.
func TestIDsOfDeliveries(t *testing.T) { // A106
	at := install(t)
	b, err := Open(at.ctx, Config{Conn: at.conn, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	at.publish(t, a, "hello")
	raw, err := b.stream.GetLastMsgForSubject(at.ctx, messages.Subjects{}.InboxOf(a.Partition()))
	if err != nil {
		t.Fatal(err)
	}
	origins := natslog.Origins{{At: raw.Time, Last: math.MaxUint64}}
	delivered := func(times int, stored time.Time) *message {
		t.Helper()
		settle := fmt.Sprintf("$JS.ACK.REPRISE_IN.consumer.%d.%d.1.%d.0", times, raw.Sequence, stored.UnixNano())
		msg, _, err := source{b.stream, origins}.message(&nats.Msg{Subject: raw.Subject, Reply: settle, Data: raw.Data, Sub: new(nats.Subscription)})
		if err != nil {
			t.Fatal(err)
		}
		return msg
	}
	first := delivered(1, raw.Time)
	again, err := source{b.stream, origins}.again(at.ctx, first.place)
	if err != nil {
		t.Fatal(err)
	}
	if redelivered := delivered(2, raw.Time); first.id != redelivered.id || first.id != again.id {
		t.Errorf("one input has the ids %s, %s when redelivered, %s when read again", first.id, redelivered.id, again.id)
	}
	if other := delivered(1, raw.Time.Add(time.Nanosecond)); other.id == first.id {
		t.Errorf("another input with that sequence has the id %s as well", other.id)
	}
}
