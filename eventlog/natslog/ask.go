package natslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/internal/answers"
)

// slot is where the answers to requests come, of one request at a time. It has a subscription of its
// own, by which the connection's reader hands an answer to the goroutine that waits for it; by the
// library's requests another goroutine and four locks of the connection are between them (see
// docs/decisions/0028).
type slot struct {
	sub    *nats.Subscription
	prefix string // of the subjects of answers, one for each request
	asked  uint64
	came   chan *nats.Msg
	broken chan nats.Status // receives when the connection breaks
	timer  *time.Timer
}

// slotsKept is how many slots of a connection are kept to be used again. More are made while more
// requests wait. slotRoom is for how many answers one has room, of which one is waited for.
const slotsKept, slotRoom = 1024, 8

// feedsKept and feedRoom are the same for the slots of feeds.
const feedsKept, feedRoom = 32, max(headsAtOnce, manyAtOnce) + slotRoom

// slot returns one of those that are kept, or else makes one with room for so many answers. The caller
// passes it to keep or drop.
func (c *conn) slot(kept chan *slot, room int) (s *slot, err error) {
	select {
	case s = <-kept:
		return s, nil
	default:
		return c.newSlot(room)
	}
}

// newSlot makes one with room for so many answers.
func (c *conn) newSlot(room int) (s *slot, err error) {
	s = &slot{prefix: c.nc.NewInbox() + ".", came: make(chan *nats.Msg, room), timer: time.NewTimer(time.Hour)}
	if s.sub, err = c.nc.ChanSubscribe(s.prefix+"*", s.came); err != nil {
		return nil, err
	}
	s.broken = c.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	return s, nil
}

// keep keeps a slot for the next request, or feed.
func (c *conn) keep(kept chan *slot, s *slot) {
	s.timer.Stop()
	select {
	case kept <- s:
	default:
		c.drop(s)
	}
}

// drop ends a slot.
func (c *conn) drop(s *slot) {
	s.timer.Stop()
	c.nc.RemoveStatusListener(s.broken)
	_ = s.sub.Unsubscribe() // a closed connection has none
}

// close ends the slots that are kept. No request waits.
func (c *conn) close() {
	for _, kept := range []chan *slot{c.slots, c.feeds} {
		for len(kept) > 0 {
			c.drop(<-kept)
		}
	}
}

// next returns the subject of the answer to the next request. What there is of earlier ones, answers
// that came twice and breaks of the connection, is dropped, to leave room.
func (s *slot) next() string {
	for len(s.came) > 0 {
		<-s.came
	}
	for len(s.broken) > 0 {
		<-s.broken
	}
	s.asked++
	return string(strconv.AppendUint(append(make([]byte, 0, 64), s.prefix...), s.asked, 36))
}

// request publishes m and waits for the answer, until ctx ends, answers.Wait is over or the connection
// breaks: the answer may be lost then.
func (c *conn) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	return c.requestWithin(ctx, m, answers.Wait)
}

// requestWithin is request with a patience of its own. A slot that got no answer is not used again: the
// answer may still come, or the server has refused the subscription.
func (c *conn) requestWithin(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := c.slot(c.slots, slotRoom)
	if err != nil {
		return nil, err
	}
	m.Reply = s.next()
	if err := c.send(m); err != nil {
		c.keep(c.slots, s)
		return nil, err
	}
	answer, err := s.answer(ctx, m.Reply, wait)
	if err != nil {
		c.drop(s)
		return nil, err
	}
	c.keep(c.slots, s)
	if len(answer.Data) == 0 && answer.Header.Get("Status") == "503" {
		return nil, errNoResponders
	}
	return answer, nil
}

// send publishes m, if there is a connection.
func (c *conn) send(m *nats.Msg) error {
	err := c.nc.PublishMsg(m)
	if errors.Is(err, nats.ErrReconnectBufExceeded) { // it is set to hold nothing
		return errUnsent
	}
	return err
}

// answer waits for what comes to subject.
func (s *slot) answer(ctx context.Context, subject string, wait time.Duration) (*nats.Msg, error) {
	for {
		answer, err := s.receive(ctx, wait)
		if err != nil || answer.Subject == subject { // else it is one to an earlier request
			return answer, err
		}
	}
}

// receive waits for what comes next.
func (s *slot) receive(ctx context.Context, wait time.Duration) (*nats.Msg, error) {
	select {
	case msg := <-s.came: // most of a feed's are there when they are asked for
		return msg, nil
	default:
	}
	s.timer.Reset(wait)
	select {
	case msg := <-s.came:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.broken:
		return nil, errBroken
	case <-s.timer.C:
		return nil, fmt.Errorf("%w: waited %v", errNoAnswer, wait)
	}
}

// publish sends m to its stream and returns the sequence it was stored at.
func (c *conn) publish(ctx context.Context, m *nats.Msg) (seq uint64, err error) {
	answer, err := c.request(ctx, m)
	if err != nil {
		return 0, err
	}
	return storedAt(answer.Data)
}

// storedAt reads the answer of a stream to a message. An acknowledgement as the server writes it,
// {"stream":"S","seq":N}, is not decoded.
func storedAt(answer []byte) (seq uint64, err error) {
	rest, is := bytes.CutPrefix(answer, []byte(`{"stream":"`))
	name, rest, found := bytes.Cut(rest, []byte(`","seq":`))
	if digits, end := bytes.CutSuffix(rest, []byte{'}'}); is && found && end && len(name) > 0 {
		if seq, err = strconv.ParseUint(string(digits), 10, 64); err == nil && seq > 0 {
			return seq, nil
		}
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		jetstream.PubAck
	}
	switch err := json.Unmarshal(answer, &ack); {
	case err != nil:
		return 0, fmt.Errorf("unreadable acknowledgement: %w", err)
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Stream == "" || ack.Sequence == 0:
		return 0, fmt.Errorf("unreadable acknowledgement %q", answer)
	}
	return ack.Sequence, nil
}
