package natslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// silence is how long a consumer may take to be made, or bring nothing of what the leader has,
	// before it counts as lost.
	silence = 5 * time.Second
	// lagPause is how long a reader waits for what a replica lags behind.
	lagPause = 50 * time.Millisecond
	// bytesAtOnce is how much a fetch brings of what is known to be there. The server cuts a
	// connection on which 64 MiB wait to be sent (max_pending), and several read at once.
	// manyAtOnce is how many messages that may be, once a feed has given some.
	bytesAtOnce, manyAtOnce = 4 << 20, 512
	// bytesWait is how long such a fetch waits on the server for what is not there after all.
	bytesWait = 500 * time.Millisecond
	// feedExpires is how long the server keeps a consumer that nothing is fetched from, and
	// longExpires that of one who pauses between fetches.
	feedExpires, longExpires = 10 * time.Second, time.Minute
	// fetchPatience is how long the library waits for the next message of a fetch, or
	// for its end. It does not report that it has given up: what comes then is dropped,
	// and the server takes it for delivered (nats.go 1.55, jetstream/pull.go).
	fetchPatience = time.Second
)

// feed is one ephemeral consumer of one node's memory and what was fetched from it.
// Messages come in order and without gaps, or fetch fails with errLost. It is used by one
// goroutine.
type feed struct {
	c        *conn
	stream   string
	consumer jetstream.Consumer
	last     bool   // it gives the newest message of each subject
	seen     uint64 // how many messages it has given
	late     bool   // the answer to a fetch may have been dropped
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
	done, err := c.turn(ctx, stream)
	if err != nil {
		return nil, err
	}
	var consumer jetstream.Consumer
	err = c.within(ctx, silence, func(ctx context.Context) error {
		consumer, err = c.js.CreateConsumer(ctx, stream, cfg)
		return err
	})
	done(err == nil)
	if err != nil {
		if ctx.Err() == nil {
			err = forNow(err)
		}
		return nil, err
	}
	return &feed{
		c: c, stream: stream, consumer: consumer, pending: consumer.CachedInfo().NumPending,
		last: cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy,
	}, nil
}

// close removes the consumer; it expires if that is lost.
func (f *feed) close() {
	_ = f.c.nc.Publish("$JS.API.CONSUMER.DELETE."+f.stream+"."+f.consumer.CachedInfo().Name, nil)
}

// ask sends the request of a fetch, and returns how many messages it is for. What is pending is
// asked for with a bound in bytes, which the library has only for a fetch that waits: one that
// does not finds out where the end is. nats-server 2.15.2 loses a message beyond the bound where
// a consumer gives the newest of each subject (loopAndGatherMsgs in server/consumer.go).
func (f *feed) ask(atOnce int) (batch jetstream.MessageBatch, asked int, err error) {
	f.ended = f.last || f.pending == 0
	if f.ended {
		batch, err = f.consumer.FetchNoWait(atOnce)
		return batch, atOnce, err
	}
	if f.seen > 0 {
		atOnce = max(atOnce, manyAtOnce)
	}
	asked = int(min(uint64(atOnce), f.pending))
	batch, err = f.consumer.Fetch(asked, jetstream.FetchMaxBytes(bytesAtOnce), jetstream.FetchMaxWait(bytesWait))
	return batch, asked, err
}

// fetch gives what the stream has now, up to about so many messages, and returns how many came. A
// message that the consumer has skipped means that the consumer was lost.
func (f *feed) fetch(ctx context.Context, atOnce int, give func(*delivery) (more bool)) (n int, more bool, err error) {
	begun := time.Now()
	if f.c.nc.IsReconnecting() { // the library keeps the subscription of a fetch that it cannot send
		return 0, false, errUnsent
	}
	batch, asked, err := f.ask(atOnce)
	if err != nil {
		return 0, false, err
	}
	for came := batch.Messages(); ; {
		var msg jetstream.Msg
		select {
		case msg = <-came:
		case <-ctx.Done():
			return n, false, ctx.Err()
		}
		if msg == nil {
			break
		}
		meta, err := msg.Metadata()
		if err != nil {
			return n, false, err
		}
		if f.seen++; meta.Sequence.Consumer != f.seen {
			return n, false, fmt.Errorf("%w: message %d came after %d", errLost, meta.Sequence.Consumer, f.seen-1)
		}
		n++
		f.pending = meta.NumPending
		if !give(&delivery{stored{seq: meta.Sequence.Stream, subject: msg.Subject(), header: msg.Headers(), data: msg.Data()}, meta.Timestamp}) {
			return n, false, nil
		}
	}
	if err := batch.Error(); err != nil {
		return n, true, err
	}
	if n == 0 {
		f.pending = 0
	}
	f.ended = f.ended && n < asked
	switch {
	case n < asked && time.Since(begun) >= fetchPatience:
		f.late = true
	case f.late:
		return n, true, f.missed(ctx)
	}
	return n, true, nil
}

// missed finds out, once a fetch was answered in time, and so all before it, whether the
// consumer has delivered more than came.
func (f *feed) missed(ctx context.Context) error {
	info, err := f.consumer.Info(ctx)
	if err != nil {
		return nil // it is asked again after the next fetch, which fails if the consumer is gone
	}
	if info.Delivered.Consumer > f.seen {
		return fmt.Errorf("%w: %d messages were delivered and %d came", errLost, info.Delivered.Consumer, f.seen)
	}
	f.late = false
	return nil
}

// all gives messages until give wants no more. Where none comes for a while, though the reader
// expects some, it calls idle, if given, and fails once that has been so for too long.
func (f *feed) all(ctx context.Context, atOnce int, give func(*delivery) (more bool), idle func() (more bool, err error)) error {
	for since := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, more, err := f.fetch(ctx, atOnce, give)
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
