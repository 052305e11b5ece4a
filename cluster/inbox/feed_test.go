package inbox

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// What comes of a stream is a message whatever its headers say, the first one, the last and
// those between: it is refused like any other that says nothing, or applied, and those of its
// neighbours are applied once and in order, by one consumer.
func TestOnlyTheServerSpeaksOfTheConsumer(t *testing.T) { // A102
	at := install(t)
	neighbour := neighbours(1)[0]
	var got heard
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			if d.Agent == neighbour {
				got.add(messages.IDOf(d.Command))
			}
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var forged []nats.Header
	for _, status := range []string{"100", "400", "404", "408", "409", "423", "503"} {
		for _, what := range []string{
			"", "Idle Heartbeat", "FlowControl Request", "Bad Request", "No Messages", "Request Timeout", "Consumer Deleted", "Consumer is push based",
			"Leadership Change", "Server Shutdown", "Batch Completed", "Message Size Exceeds MaxBytes", "Exceeded MaxWaiting", "Nats-Pin-Id mismatch",
		} {
			forged = append(forged, nats.Header{
				"Status": {status}, "Description": {what}, "Nats-Pin-Id": {"mine"},
				"Nats-Pending-Messages": {"-1000"}, "Nats-Pending-Bytes": {"1000000"}, "Nats-Last-Consumer": {"1000000"},
			})
		}
	}
	var subjects messages.Subjects
	bodies, sent := numbered(len(forged), 10), 0
	attack := func() {
		for i, h := range forged {
			for _, body := range [][]byte{nil, []byte("a body")} {
				if _, err := at.js.PublishMsg(at.ctx, &nats.Msg{Subject: subjects.In(a), Header: h, Data: body}); err != nil {
					t.Fatal(err)
				}
			}
			if sent < len(bodies) && i%2 == 0 {
				at.publish(t, neighbour, bodies[sent])
				sent++
			}
		}
	}
	attack() // before there is a consumer
	defer b.Pull(a.Partition(), 1)()
	attack() // and while it is read; a forged one is the last
	settled := func(s Stats) bool {
		return s.InHand == 0 && s.Applied >= uint64(2*len(forged)+sent) && s.DeadLetters >= uint64(2*len(forged))
	}
	if s := at.stats(t, b, settled); s.Lost == 0 && (s.Applied != uint64(2*len(forged)+sent) || s.DeadLetters != uint64(2*len(forged))) {
		t.Errorf("%d of each: %+v", 2*len(forged), s)
	}
	got.inOrder(t, sent, false)
}

// What the server says of a request is not what it says of the consumer.
func TestAnswersToARequest(t *testing.T) {
	at := install(t)
	b, err := Open(at.ctx, Config{Conn: at.conn, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := replace(at.ctx, b.stream, consumerOf(a.Partition(), 1), []string{messages.Subjects{}.InboxOf(a.Partition())})
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFeed(at.conn, consumer, b.queues(at.ctx, &b.parts[a.Partition()], source{stream: b.stream}))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	sent, err := at.conn.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.>")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status, what string
		asks, looks  bool
	}{
		{"100", "Idle Heartbeat", false, false},
		{"408", "Request Timeout", true, false},
		{"409", "Batch Completed", true, false},
		{"409", "Message Size Exceeds MaxBytes", true, false},
		{"409", "Leadership Change", false, true},
		{"409", "Server Shutdown", false, true},
		{"503", "", false, true},
		{"409", "Consumer Deleted", false, true},
		{"400", "Bad Request", false, true},
	} {
		before := f.request
		say := func(request int) error {
			return f.take(at.ctx, &nats.Msg{Subject: f.box + fmt.Sprint(request), Header: nats.Header{"Status": {c.status}, "Description": {c.what}}})
		}
		if err := say(before - 1); err != nil || f.request != before {
			t.Errorf("%s %s to an earlier request: %v", c.status, c.what, err)
		}
		if err := say(before); err != nil || (f.request > before) != c.asks || f.heard == c.looks {
			t.Errorf("%s %s: %v; asked %v, heard %v", c.status, c.what, err, f.request > before, f.heard)
		}
	}
	for _, asked := range [][2]int{{batch, batchBytes}, {batch, batchBytes}, {1, 0}} { // of the last one none came
		request, err := sent.NextMsgWithContext(at.ctx)
		if want := fmt.Sprintf(`"batch":%d,"max_bytes":%d,`, asked[0], asked[1]); err != nil || !strings.Contains(string(request.Data), want) {
			t.Errorf("%s was asked, want %s (%v)", request.Data, want, err)
		}
	}
	f.delivered = 1
	if err := f.check(at.ctx); err == nil {
		t.Error("a consumer that has delivered nothing continues one that had")
	}
}

// A message that is larger than what is asked for at once comes all the same, with those
// around it.
func TestLargeMessages(t *testing.T) { // A7
	at := install(t)
	var got heard
	b := at.noting(t, &got)
	const n = 9
	for i := range n {
		at.publish(t, a, fmt.Sprintf(`{"id":"%d","content":"%s"}`, i, bytes.Repeat([]byte("x"), (1+i%3)*batchBytes/2)))
	}
	defer b.Pull(a.Partition(), 1)()
	s := at.stats(t, b, func(s Stats) bool { return s.Applied >= n && s.InHand == 0 })
	got.inOrder(t, n, s.Lost > 0)
}

// Why no consumer of the library reads inputs: a header that a publisher sets ends it. Where
// this fails, the library no longer goes by headers, and feed may go.
func TestLibraryGoesByHeaders(t *testing.T) {
	at := install(t)
	for kind, first := range map[string]*nats.Msg{
		"status": {Header: nats.Header{"Status": {"409"}, "Description": {"Consumer Deleted"}}},
		"pin":    {Header: nats.Header{"Nats-Pin-Id": {"mine"}}, Data: []byte("hello")},
	} {
		stream, err := at.js.CreateStream(at.ctx, jetstream.StreamConfig{Name: kind, Subjects: []string{kind}})
		if err != nil {
			t.Fatal(err)
		}
		first.Subject = kind
		for _, msg := range []*nats.Msg{first, {Subject: kind, Data: []byte("next")}, {Subject: kind, Data: []byte("last")}} {
			if _, err := at.js.PublishMsg(at.ctx, msg); err != nil {
				t.Fatal(err)
			}
		}
		consumer, err := stream.CreateConsumer(at.ctx, jetstream.ConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		it, err := consumer.Messages(jetstream.PullMaxMessages(2))
		for n := 0; err == nil && n < 3; n++ {
			_, err = it.Next(jetstream.NextContext(at.ctx))
		}
		if err == nil || at.ctx.Err() != nil {
			t.Errorf("%s: all came (%v)", kind, err)
		}
	}
}
