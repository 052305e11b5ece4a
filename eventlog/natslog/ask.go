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
	timer  *time.Timer
}

// slotsKept is how many slots of a connection are kept to be used again. More are made while more
// requests wait.
const slotsKept = 1024

// slot returns one that no request uses. The caller gives it back to c.slots by done.
func (c *conn) slot() (s *slot, err error) {
	select {
	case s = <-c.slots:
		return s, nil
	default:
	}
	s = &slot{prefix: c.nc.NewInbox() + ".", came: make(chan *nats.Msg, 8), timer: time.NewTimer(time.Hour)}
	s.sub, err = c.nc.ChanSubscribe(s.prefix+"*", s.came)
	return s, err
}

// done ends a request.
func (c *conn) done(s *slot) {
	s.timer.Stop()
	select {
	case c.slots <- s:
	default:
		_ = s.sub.Unsubscribe() // a closed connection has none
	}
}

// next returns the subject of the answer to the next request. Answers to earlier ones may still come:
// those that are there are dropped, to leave room.
func (s *slot) next() string {
	for len(s.came) > 0 {
		<-s.came
	}
	s.asked++
	return string(strconv.AppendUint(append(make([]byte, 0, 64), s.prefix...), s.asked, 36))
}

// request publishes m and waits for the answer, until ctx ends or
// answers.Wait is over.
func (c *conn) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	return c.ask(ctx, m, answers.Wait, nil)
}

// requestWithin is request with a patience of its own, which may be long. It fails when the
// connection breaks: the answer may be lost then, and asking again does no harm.
func (c *conn) requestWithin(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	broken := c.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer c.nc.RemoveStatusListener(broken)
	return c.ask(ctx, m, wait, broken)
}

// ask publishes m and waits for the answer.
func (c *conn) ask(ctx context.Context, m *nats.Msg, wait time.Duration, broken <-chan nats.Status) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := c.slot()
	if err != nil {
		return nil, err
	}
	defer c.done(s)
	m.Reply = s.next()
	err = c.nc.PublishMsg(m)
	if errors.Is(err, nats.ErrReconnectBufExceeded) { // it is set to hold nothing
		err = errUnsent
	}
	if err != nil {
		return nil, err
	}
	s.timer.Reset(wait)
	for {
		select {
		case answer := <-s.came:
			switch {
			case answer.Subject != m.Reply: // to an earlier request
			case len(answer.Data) == 0 && answer.Header.Get("Status") == "503":
				return nil, errNoResponders
			default:
				return answer, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-broken:
			return nil, errBroken
		case <-s.timer.C:
			return nil, fmt.Errorf("%w: waited %v", errNoAnswer, wait)
		}
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
