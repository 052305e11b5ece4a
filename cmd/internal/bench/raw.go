package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// publisher sends the messages of one worker and waits for each answer. Its
// channel has room for all that one message can be answered with.
type publisher struct {
	nc     *nats.Conn
	reply  string
	answer chan *nats.Msg
}

// publishers makes one for each of n workers, spread over the connections; a
// connection's answers come by one subscription.
func (s *Store) publishers(n int) (all []publisher, leave func(), err error) {
	all = make([]publisher, n)
	var subs []*nats.Subscription
	leave = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // fails only with the connection
		}
	}
	for c, nc := range s.Conns {
		prefix := nc.NewInbox() + "."
		sub, err := nc.Subscribe(prefix+"*", func(m *nats.Msg) {
			if i, err := strconv.Atoi(m.Subject[len(prefix):]); err == nil && i < n {
				all[i].answer <- m
			}
		})
		if err == nil {
			subs = append(subs, sub)
			err = sub.SetPendingLimits(-1, -1)
		}
		if err != nil {
			leave()
			return nil, nil, err
		}
		for i := c; i < n; i += len(s.Conns) {
			all[i] = publisher{nc, prefix + strconv.Itoa(i), make(chan *nats.Msg, 4)}
		}
	}
	return all, leave, nil
}

// publish sends m and returns the sequence it was stored at.
func (p *publisher) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	m.Reply = p.reply
	if err := p.nc.PublishMsg(m); err != nil {
		return 0, err
	}
	select {
	case answer := <-p.answer:
		return sequence(answer.Data)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// errBusy is how a replicated stream also refuses a writer who is right, when its
// append comes before the server has forgotten the last one.
var errBusy = errors.New("JetStream refused a message: its subject is busy, or another publisher writes it")

// sequence reads an acknowledgement without decoding it.
func sequence(ack []byte) (n uint64, err error) {
	_, rest, ok := bytes.Cut(ack, []byte(`"seq":`))
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + uint64(c-'0')
	}
	if bytes.Contains(ack, []byte(`"err_code":10164`)) {
		return 0, errBusy
	}
	if bytes.Contains(ack, []byte("insufficient resources")) {
		return 0, fmt.Errorf("JetStream has no room left, is the disk full? It answered %s", ack)
	}
	if !ok || n == 0 || bytes.Contains(ack, []byte(`"error"`)) {
		return 0, fmt.Errorf("JetStream refused a message: %s", ack)
	}
	return n, nil
}

// appender appends the frames of an ordinary turn to one agent's subject, over
// and over.
type appender struct {
	publisher
	msgs  []nats.Msg
	fence []string // shared by the headers of all
	next  int
}

func (s *Store) appender(p publisher, a messages.AgentID) *appender {
	ap := &appender{publisher: p, fence: []string{"0"}}
	for _, f := range s.frames {
		h := nats.Header{headerFence: ap.fence, jetstream.ExpectedStreamHeader: {s.Names.Log(a.Partition())}}
		for k, v := range f.Header {
			h[k] = v
		}
		ap.msgs = append(ap.msgs, nats.Msg{Subject: messages.Subjects{}.Log(a), Header: h, Data: f.Data})
	}
	return ap
}

// stillBusy bounds how often an append is tried that a replicated stream refuses
// because it has not finished with the one before.
const stillBusy = 100

// append appends the next frame.
func (ap *appender) append(ctx context.Context) error {
	seq, err := ap.publish(ctx, &ap.msgs[ap.next])
	for tries := 1; errors.Is(err, errBusy) && tries < stillBusy; tries++ {
		seq, err = ap.publish(ctx, &ap.msgs[ap.next])
	}
	if err != nil {
		return err
	}
	ap.fence[0] = strconv.FormatUint(seq, 10)
	ap.next = (ap.next + 1) % len(ap.msgs)
	return nil
}

// Raw appends frames for n agents as fast as the store takes them. What it counts are
// frames.
func (s *Store) Raw(ctx context.Context, n int, window time.Duration) (got Tally, err error) {
	err = s.appending(ctx, n, func(ps []publisher) error {
		agents := make([]*appender, n)
		for i := range agents {
			agents[i] = s.appender(ps[i], AgentID(i, 0))
		}
		got, err = Drive(ctx, n, window/5, window, func(ctx context.Context, w int) (time.Duration, error) {
			start := time.Now()
			err := agents[w].append(ctx)
			return time.Since(start), err
		})
		return err
	})
	return got, err
}

// AppendMany appends the first frame of each of n agents, so many at once, and returns how
// long it took.
func (s *Store) AppendMany(ctx context.Context, atOnce, n int) (took time.Duration, err error) {
	atOnce = min(atOnce, n)
	err = s.appending(ctx, atOnce, func(ps []publisher) error {
		begun := time.Now()
		err := Deal(ctx, atOnce, n, func(ctx context.Context, worker, i int) error {
			return s.appender(ps[worker], AgentID(i, 0)).append(ctx)
		})
		took = time.Since(begun)
		return err
	})
	return took, err
}

// appending makes n publishers on the emptied store for f.
func (s *Store) appending(ctx context.Context, n int, f func([]publisher) error) error {
	if err := s.Emptied(ctx); err != nil {
		return err
	}
	ps, leave, err := s.publishers(n)
	if err != nil {
		return err
	}
	defer leave()
	return f(ps)
}
