package natslog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// silence is how long a consumer may take to be made, not answer, or bring nothing of what the
	// leader has, before it counts as lost.
	silence = 5 * time.Second
	// lagPause is how long a reader waits for what a replica lags behind.
	lagPause = 50 * time.Millisecond
	// bytesAtOnce is how much a request brings. The server cuts a connection on which 64 MiB wait to
	// be sent (max_pending), and several read at once.
	bytesAtOnce = 4 << 20
	// headsAtOnce and framesAtOnce are how many messages a request brings, without and with their
	// bodies; manyAtOnce is how many with them, once a feed has given some. framesAtOnce of the
	// largest size must fit into memory: one request has no bound in bytes.
	headsAtOnce, framesAtOnce, manyAtOnce = 1000, 64, 512
	// feedExpires is how long the server keeps a consumer that nothing is fetched from, and
	// longExpires that of one whose reader pauses between fetches.
	feedExpires, longExpires = 10 * time.Second, time.Minute
)

// feed is one ephemeral consumer of one node's memory, read by pull requests on an ordinary
// subscription. The server answers a request on the subject that came with it, and a message keeps
// its own: they differ in the subject, which no publisher chooses. The library's consumers go by
// headers instead, which any publisher sets (docs/decisions/0025-inbox.md). Messages come in order
// and without gaps, or fetch fails. It is used by one goroutine.
type feed struct {
	*slot  // of the answers
	c      *conn
	stream string
	name   string // of the consumer
	atOnce int    // how many messages a request is for at first
	last   bool   // it delivers the newest message of each subject
	large  bool   // the next message alone is larger than what a request brings
	seen   uint64 // how many messages it has given
	// pending is how many messages were still to come, when the newest one was sent. It is 0
	// where a fetch has brought none of them.
	pending uint64
	ended   bool // the newest fetch has brought all that was there
}

// errLost says that the consumer is gone or has skipped a message: make a new
// one that begins after the last message that came.
var errLost = errors.New("the consumer was lost")

// errSilent says that the consumer has brought nothing of what is expected for too long.
var errSilent = errors.New("the consumer is alive but brings no more: its server lags behind, or cannot read what follows, or messages were removed")

// delivery is a message of a feed. Data is empty in a feed of headers.
type delivery struct {
	stored
	time time.Time
}

// feed opens a consumer on stream. The config's filter and where to begin are
// the caller's, who closes it.
func (c *conn) feed(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (*feed, error) {
	cfg.AckPolicy, cfg.Replicas, cfg.MemoryStorage = jetstream.AckNonePolicy, 1, true
	cfg.InactiveThreshold = cmp.Or(cfg.InactiveThreshold, feedExpires)
	f := &feed{c: c, stream: stream, atOnce: framesAtOnce, last: cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy}
	if cfg.HeadersOnly {
		f.atOnce = headsAtOnce
	}
	var err error
	if f.slot, err = c.slot(c.feeds, feedRoom); err != nil {
		return nil, err
	}
	if err := f.create(ctx, cfg); err != nil {
		c.drop(f.slot)
		return nil, err
	}
	return f, nil
}

// create makes the consumer.
func (f *feed) create(ctx context.Context, cfg jetstream.ConsumerConfig) error {
	inbox := f.c.nc.NewInbox() // its last token is of no other
	f.name = inbox[strings.LastIndexByte(inbox, '.')+1:]
	ask, err := json.Marshal(struct {
		Stream string                    `json:"stream_name"`
		Config *jetstream.ConsumerConfig `json:"config"`
	}{f.stream, &cfg})
	if err != nil {
		return err
	}
	subject := "$JS.API.CONSUMER.CREATE." + f.stream + "." + f.name
	if cfg.FilterSubject != "" { // which permissions may name
		subject += "." + cfg.FilterSubject
	}
	done, err := f.c.turn(ctx, f.stream)
	if err != nil {
		return err
	}
	answer, err := f.c.requestWithin(ctx, &nats.Msg{Subject: subject, Data: ask}, silence)
	done(err == nil)
	if err != nil {
		return err
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Pending uint64              `json:"num_pending"`
	}
	switch err := json.Unmarshal(answer.Data, &got); {
	case err != nil:
		return fmt.Errorf("unreadable answer %q: %w", answer.Data, err)
	case got.Error != nil:
		return forNow(got.Error)
	}
	f.pending = got.Pending
	return nil
}

// close removes the consumer; it expires if that is lost. Its slot is kept if no message is on its way.
func (f *feed) close() {
	if f.seen > 0 && f.pending == 0 {
		f.c.keep(f.c.feeds, f.slot)
	} else {
		f.c.drop(f.slot)
	}
	_ = f.c.nc.Publish("$JS.API.CONSUMER.DELETE."+f.stream+"."+f.name, nil)
}

// ask asks for what is there, and returns the subject of the answer and for how many messages and
// bytes that is; 0: for any. nats-server 2.15.2 loses a message beyond the bound in bytes where a
// consumer delivers the newest of each subject (loopAndGatherMsgs in server/consumer.go).
func (f *feed) ask() (subject string, most, size int, err error) {
	most, size = f.atOnce, bytesAtOnce
	switch {
	case f.last:
		size = 0
	case f.large:
		most, size = 1, 0
	case f.seen > 0:
		most = max(most, manyAtOnce)
	}
	m := nats.Msg{Subject: "$JS.API.CONSUMER.MSG.NEXT." + f.stream + "." + f.name, Reply: f.next()}
	m.Data = fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"no_wait":true}`, most, size)
	return m.Reply, most, size, f.c.send(&m)
}

// fetch delivers what the stream has now, up to about a thousand messages, and returns how many came. A
// message that the consumer has skipped means that the consumer was lost.
func (f *feed) fetch(ctx context.Context, give func(*delivery) (more bool)) (n int, more bool, err error) {
	request, most, size, err := f.ask()
	if err != nil {
		return 0, false, err
	}
	got := 0
	// Where just so many bytes came the server ends the request without a word.
	for f.ended = false; n < most && (size == 0 || got != size); {
		msg, err := f.receive(ctx, silence)
		switch {
		case err != nil:
			return n, false, err
		case msg.Subject == request:
			return n, true, f.answered(msg, n)
		case strings.HasPrefix(msg.Subject, f.prefix):
			continue // the answer to an earlier request
		}
		meta, err := msg.Metadata()
		if err != nil {
			return n, false, err
		}
		if meta.Consumer != f.name {
			continue // of an earlier feed
		}
		if f.seen++; meta.Sequence.Consumer != f.seen {
			return n, false, fmt.Errorf("%w: message %d came after %d", errLost, meta.Sequence.Consumer, f.seen-1)
		}
		n++
		got += msg.Size()
		f.large, f.pending = false, meta.NumPending
		if !give(&delivery{stored{seq: meta.Sequence.Stream, subject: msg.Subject, header: msg.Header, data: msg.Data}, meta.Timestamp}) {
			return n, false, nil
		}
	}
	return n, true, nil
}

// answered handles what the server says of a request that has brought n messages.
func (f *feed) answered(answer *nats.Msg, n int) error {
	status, what := answer.Header.Get("Status"), answer.Header.Get("Description")
	switch {
	case status == "404": // no more is there
		if f.ended = true; n == 0 {
			f.pending = 0
		}
	case strings.Contains(what, "MaxBytes"):
		f.large = n == 0
	default:
		return fmt.Errorf("%w: %s %s", errLost, status, what)
	}
	return nil
}

// all delivers messages until give wants no more. Where none comes for a while, though the reader
// expects some, it calls idle, if given, and fails once that has been so for too long.
func (f *feed) all(ctx context.Context, give func(*delivery) (more bool), idle func() (more bool, err error)) error {
	for since := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, more, err := f.fetch(ctx, give)
		if err != nil || !more {
			return err
		}
		if n > 0 {
			since = time.Now()
			continue
		}
		if !f.ended {
			continue
		}
		if idle != nil {
			if more, err := idle(); err != nil || !more {
				return err
			}
		}
		if time.Since(since) > silence {
			return errSilent
		}
		select {
		case <-time.After(lagPause):
		case <-ctx.Done():
		}
	}
}

// ReadHeaders delivers the headers of the messages of a stream that the config chooses, up to the newest
// that there is when it is called, or until give fails. The config says where to begin, or that the
// newest of each subject are wanted.
func ReadHeaders(ctx context.Context, nc *nats.Conn, stream string, cfg jetstream.ConsumerConfig, give func(subject string, header nats.Header, seq uint64) error) error {
	c, err := newConn(nc)
	if err != nil {
		return err
	}
	defer c.close()
	info, err := c.info(ctx, stream)
	if err != nil {
		return err
	}
	cfg.HeadersOnly, cfg.FilterSubject, cfg.InactiveThreshold = true, ">", longExpires
	at, last := max(cfg.OptStartSeq, 1)-1, cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy
	for barren := 0; at < info.State.LastSeq; barren++ {
		before := at
		at, err = c.readHeaders(ctx, stream, cfg, at, info.State.LastSeq, give)
		switch {
		case !errors.Is(err, errLost) && !errors.Is(err, errSilent) && !errors.Is(err, errNoAnswer):
			return err
		case at > before:
			barren = 0
		case barren == 4*patience: // a copy may have to catch up, as after a restore
			return err
		}
		if !last {
			cfg.OptStartSeq = at + 1
		}
	}
	return nil
}

// readHeaders reads with one consumer what is behind sequence at, up to end, and returns where it has
// come to. The consumer may read a copy that lags: the leader is asked whether that was all.
func (c *conn) readHeaders(ctx context.Context, stream string, cfg jetstream.ConsumerConfig, at, end uint64, give func(subject string, header nats.Header, seq uint64) error) (uint64, error) {
	f, err := c.feed(ctx, stream, cfg)
	if err != nil {
		return at, err
	}
	defer f.close()
	var failed error
	err = f.all(ctx, func(m *delivery) bool {
		if m.seq > at {
			at = m.seq
			failed = give(m.subject, m.header, m.seq)
		}
		return failed == nil && at < end
	}, func() (more bool, err error) {
		next, err := c.get(ctx, stream, place{Seq: at + 1, Next: ">"})
		return next != nil && next.seq <= end, err
	})
	return at, cmp.Or(failed, err)
}
