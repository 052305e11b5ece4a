package inbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// feed reads a consumer by pull requests on an ordinary subscription. The server answers a
// request on the subject that came with it, and a message keeps its own: they differ in the
// subject, which no publisher chooses. The library's consumers go by headers instead, which any
// publisher sets (docs/decisions/0025-inbox.md). One goroutine uses a feed.
type feed struct {
	conn     *nats.Conn
	sub      *nats.Subscription
	consumer jetstream.Consumer
	queues   *queues
	msgs     chan *nats.Msg
	box      string // begins the subject of an answer; the request's number follows
	request  int    // the number of the open request
	left     int    // how many messages it may still bring
	// delivered is the number of the newest message among those delivered.
	delivered uint64
	// owed is the number of the newest one that the server had delivered when something may
	// have been lost. 0: all has come.
	owed    uint64
	suspect bool // an acknowledgement seemed to be lost
	heard   bool // something has come since the last tick
	tick    *time.Ticker
}

const (
	// A request is for as many messages, with as many bytes, and good for as long. A server cuts a
	// connection on which 64 MiB wait to be sent, and a node may own 64 partitions.
	batch      = 256
	batchBytes = 512 << 10
	requestFor = 30 * time.Second
	// heartbeat is how often the server reports that the consumer is there while
	// nothing comes. After twice that without a word it is looked for.
	heartbeat = 750 * time.Millisecond
)

func newFeed(conn *nats.Conn, consumer jetstream.Consumer, q *queues) (*feed, error) {
	f := &feed{
		conn: conn, consumer: consumer, queues: q, msgs: make(chan *nats.Msg, 4*batch), box: conn.NewInbox() + ".",
		tick: time.NewTicker(2 * heartbeat),
	}
	var err error
	f.sub, err = conn.ChanSubscribe(f.box+"*", f.msgs)
	return f, err
}

func (f *feed) close() {
	f.tick.Stop()
	_ = f.sub.Unsubscribe() // fails only with the connection
}

// run puts what comes into queues, until ctx ends or the consumer is lost, or one of its
// messages may be: what comes behind that must not be given before it. A consumer that is
// only silent is waited for: its copies elect another leader.
func (f *feed) run(ctx context.Context, broken <-chan nats.Status) error {
	err := f.ask(batch, batchBytes)
	for err == nil {
		select {
		case raw := <-f.msgs:
			err = f.take(ctx, raw)
		case <-broken:
			err = f.check(ctx)
		case <-f.tick.C:
			switch silent := !f.heard && len(f.msgs) == 0; {
			case silent:
				err = f.check(ctx)
			case f.queues.inHand() >= ackPending: // what the server holds back grows
				err = f.compare(ctx)
			}
			f.heard = false
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// ask asks for the next messages, of any size if bytes is 0. Without a connection nothing is sent:
// that it broke is noticed.
func (f *feed) ask(most, bytes int) error {
	f.request++
	f.left = most
	info := f.consumer.CachedInfo()
	err := f.conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+info.Stream+"."+info.Name, f.box+strconv.Itoa(f.request),
		fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`, most, bytes, requestFor, heartbeat))
	if unanswered(err) {
		return nil
	}
	return err
}

// take takes what has come: a message, or the server's word about a request.
func (f *feed) take(ctx context.Context, raw *nats.Msg) error {
	f.heard = true
	if request, is := strings.CutPrefix(raw.Subject, f.box); is {
		if request != strconv.Itoa(f.request) {
			return nil
		}
		return f.answered(ctx, raw.Header.Get("Status"), raw.Header.Get("Description"))
	}
	msg, meta, err := f.queues.from.message(raw)
	if err != nil {
		return err
	}
	if n := meta.Sequence.Consumer; n != f.delivered+1 {
		return fmt.Errorf("delivery %d followed %d: the deliveries in between are missing", n, f.delivered)
	}
	f.delivered++
	f.queues.part.pending.Store(meta.NumPending)
	f.queues.take(msg)
	if f.left--; f.left == 0 {
		return f.ask(batch, batchBytes)
	}
	return nil
}

// answered handles what the server says of the open request.
func (f *feed) answered(ctx context.Context, status, what string) error {
	switch {
	case status == "100": // it is there, and all that it has delivered is here
		if f.owed > 0 {
			return f.compare(ctx)
		}
	case strings.Contains(what, "MaxBytes") && f.left == batch: // the next message alone is larger
		return f.ask(1, 0)
	case status == "408", strings.Contains(what, "MaxBytes"), strings.Contains(what, "Batch Completed"):
		return f.ask(batch, batchBytes)
	default: // it is gone, or another server leads it soon
		f.heard = false
		f.tick.Reset(insistEach / 10)
	}
	return nil
}

// check looks for a consumer that is silent, or behind a connection that broke, waits until it
// answers, and asks it for more. It fails if the consumer is gone, or was taken back to an earlier state.
func (f *feed) check(ctx context.Context) error {
	info, err := insist(ctx, f.consumer.Info)
	if err != nil {
		return err
	}
	if f.owed = info.Delivered.Consumer; f.owed < f.delivered {
		return fmt.Errorf("delivery %d has come, and the last of the consumer is %d: it was taken back to an earlier state", f.delivered, f.owed)
	}
	f.tick.Reset(2 * heartbeat)
	return f.ask(batch, batchBytes)
}

// compare asks for which messages the server waits. It fails if a message on its way here was lost,
// or an acknowledgement on its way there.
func (f *feed) compare(ctx context.Context) error {
	if f.delivered < f.owed {
		return fmt.Errorf("delivery %d was the last of %d: the deliveries in between are missing", f.delivered, f.owed)
	}
	f.owed = 0
	before, delivered := f.queues.inHand(), f.delivered
	info, err := insist(ctx, f.consumer.Info)
	if err != nil {
		return err
	}
	f.queues.part.pending.Store(info.NumPending)
	most := before + int(max(delivered, info.Delivered.Consumer)-delivered)
	switch {
	case info.NumAckPending <= most:
		f.suspect = false
	case f.suspect:
		return fmt.Errorf("the server waits for %d messages, and there are %d: acknowledgements were lost", info.NumAckPending, most)
	default: // one may be on its way
		f.suspect, f.owed = true, f.delivered
	}
	return nil
}
