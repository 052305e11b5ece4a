package inbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// The settings of a consumer. AckWait only matters for an acknowledgement that a
// server lost: the owner itself tries again what has not been applied, and makes
// the consumer anew when something may not have reached it.
const (
	ackWait    = 10 * time.Minute
	ackPending = 1 << 16
	batch      = 256
	// heartbeat is how often the server tells that the consumer is there while
	// nothing comes. After twice that without a word it is taken for lost.
	heartbeat = 750 * time.Millisecond
	// pendingEvery is how often the server is asked what it has not delivered yet,
	// while something is in hand.
	pendingEvery = 5 * time.Second
)

// consumerOf is the name of an owner's consumer.
func consumerOf(p messages.Partition, epoch messages.Epoch) string {
	return fmt.Sprintf("p%s-e%d", p, epoch)
}

// stray is the name of the consumer for messages that no partition takes.
const stray = "stray"

// compare says whether two names are of the same partition, and whether a's
// epoch is the earlier one.
func compare(a, b string) (earlier, same bool) {
	p, m := parts(a)
	q, n := parts(b)
	return m < n, p == q
}

// parts are a name's partition and epoch; none is 0.
func parts(name string) (partition string, epoch uint64) {
	partition, text, _ := strings.Cut(name, "-e")
	epoch, _ = strconv.ParseUint(text, 10, 64)
	return partition, epoch
}

// source is a consumer that was made and delivers.
type source struct {
	conn     *nats.Conn
	stream   jetstream.Stream
	origins  natslog.Origins
	consumer jetstream.Consumer
	broken   <-chan nats.Status // receives when the connection breaks
	it       *puller
	// delivered is the number of the newest message among those delivered, owed what
	// the server said that it is after something may have been lost.
	delivered, owed uint64
	pending         uint64
	// resumed is told what a consumer says that is heard of again; its error says that
	// the source is lost. Nil: nobody is.
	resumed func(*jetstream.ConsumerInfo) error
}

// handler works a source's messages off until next fails.
type handler func(ctx context.Context, s *source) error

// next waits for a message. An error says that the source is lost, or that one of
// its messages may be: what comes behind it must not be given before it. A consumer
// that is only not heard of is waited for: its copies elect another leader, sooner
// than a new consumer would.
func (s *source) next(ctx context.Context) (*message, error) {
	raw, err := s.it.next(ctx)
	for errors.Is(err, errSilent) && ctx.Err() == nil {
		if err = s.resume(ctx, err); err == nil {
			raw, err = s.it.next(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	msg, meta, err := read(raw, s.origins)
	if err != nil {
		return nil, err
	}
	if n := meta.Sequence.Consumer; n != s.delivered+1 {
		return nil, fmt.Errorf("delivery %d followed %d: what is between did not come", n, s.delivered)
	}
	s.delivered++
	s.pending = meta.NumPending
	return msg, nil
}

// resume asks for the consumer until it answers, and for its messages from where they
// have come to.
func (s *source) resume(ctx context.Context, why error) error {
	s.it.stop()
	select {
	case <-time.After(insistEach / 10): // whoever leads now is there
	case <-ctx.Done():
		return ctx.Err()
	}
	info, err := insist(ctx, s.consumer.Info)
	if err != nil {
		return fmt.Errorf("%v, and then: %w", why, err)
	}
	if info.Delivered.Consumer < s.delivered {
		return fmt.Errorf("%v, and then it was not the one it was", why)
	}
	s.owed = info.Delivered.Consumer
	if s.resumed != nil {
		if err := s.resumed(info); err != nil {
			return err
		}
	}
	return s.pull()
}

// pull begins to ask for messages.
func (s *source) pull() (err error) {
	info := s.consumer.CachedInfo()
	s.it, err = pull(s.conn, info.Stream, info.Name, s.broken, func() error {
		if s.delivered < s.owed {
			return fmt.Errorf("delivery %d was the last of %d: what is between did not come", s.delivered, s.owed)
		}
		return nil
	})
	return err
}

const (
	// insistFor is how long JetStream is asked again that does not answer: an election
	// takes 4 to 9 seconds. Each time it has insistEach.
	insistFor  = 15 * time.Second
	insistEach = time.Second
)

// insist asks JetStream until it answers, ctx ends or insistFor is over. What is asked
// for must come to the same when it is asked twice.
func insist[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	return backoff.Retry(ctx, func() (T, error) {
		within, cancel := context.WithTimeout(ctx, insistEach)
		defer cancel()
		got, err := ask(within)
		if err != nil && !unanswered(err) {
			return got, backoff.Permanent(err)
		}
		return got, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(insistEach/10)), backoff.WithMaxElapsedTime(insistFor))
}

// unanswered says that nobody has answered for JetStream, or only that it cannot now.
func unanswered(err error) bool {
	const noLeader = 10008 // the library has no name for it
	var refusal *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.As(err, &refusal) && refusal.ErrorCode == noLeader
}

// start makes a consumer, and makes it anew whenever it is lost, until it is
// stopped. Stop returns when nothing is under way.
func (b *Inbox) start(name string, filters []string, h handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.keep(ctx, name, filters, h)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (b *Inbox) keep(ctx context.Context, name string, filters []string, h handler) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 20*time.Millisecond, 500*time.Millisecond
	partition, _ := parts(name)
	for old := b.seen.take(partition); ctx.Err() == nil; {
		made, err := b.consume(ctx, name, filters, old, h)
		if ctx.Err() != nil {
			return
		}
		if made {
			pause.Reset()
			old = []string{name}
		}
		b.cfg.Logger.Warn("an inbox consumer was lost; it is made anew", "consumer", name, "error", err)
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

// consume makes the consumer anew and works its messages off until ctx ends or
// the consumer is lost. made says that there was one.
func (b *Inbox) consume(ctx context.Context, name string, filters, old []string, h handler) (made bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broken := b.cfg.Conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer b.cfg.Conn.RemoveStatusListener(broken)
	s, err := b.open(ctx, name, filters, old)
	if err != nil {
		return false, err
	}
	s.broken = broken
	if err := s.pull(); err != nil {
		return true, err
	}
	defer func() { s.it.stop() }()
	return true, h(ctx, s)
}

// open makes a consumer from which everything comes that is not settled, in order.
func (b *Inbox) open(ctx context.Context, name string, filters, old []string) (*source, error) {
	// It is asked anew: ids depend on when it was created.
	stream, err := insist(ctx, func(ctx context.Context) (jetstream.Stream, error) { return b.js.Stream(ctx, b.name) })
	if err != nil {
		return nil, err
	}
	s := &source{conn: b.cfg.Conn, stream: stream}
	if s.origins, err = natslog.OriginsOf(stream.CachedInfo().Created, stream.CachedInfo().Config); err != nil {
		return nil, err
	}
	s.consumer, err = create(ctx, stream, name, filters, old)
	return s, err
}

// create makes a consumer that has delivered nothing. Old ones of the same
// partition are removed first. Where another is in the way, which the server does
// not allow, that is looked for, and removed unless it is a later owner's.
func create(ctx context.Context, stream jetstream.Stream, name string, filters, old []string) (jetstream.Consumer, error) {
	cfg := jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
		MaxAckPending: ackPending, MemoryStorage: true,
	}
	if len(filters) == 1 {
		cfg.FilterSubject = filters[0]
	} else {
		cfg.FilterSubjects = filters
	}
	for _, n := range old {
		if earlier, same := compare(n, name); !same || !earlier && n != name {
			continue
		}
		if err := discard(ctx, stream, n); err != nil {
			return nil, err
		}
	}
	made := func() (jetstream.Consumer, error) {
		return insist(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return stream.CreateConsumer(ctx, cfg) })
	}
	consumer, err := made()
	switch {
	case err == nil && consumer.CachedInfo().Delivered.Consumer == 0:
		return consumer, nil
	case err != nil && !inTheWay(err):
		return nil, err
	}
	if err := remove(ctx, stream, name); err != nil {
		return nil, err
	}
	return made()
}

func discard(ctx context.Context, stream jetstream.Stream, name string) error {
	_, err := insist(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, stream.DeleteConsumer(ctx, name) })
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return err
}

// inTheWay says that a consumer was refused because of another one.
func inTheWay(err error) bool {
	const notUnique = 10100 // of a work queue; the library has no name for it
	var refusal *jetstream.APIError
	return errors.Is(err, jetstream.ErrConsumerExists) || errors.As(err, &refusal) && refusal.ErrorCode == notUnique
}

// remove deletes the consumer and those of earlier epochs of its partition. One
// of a later epoch says that somebody else owns it, and is left alone.
func remove(ctx context.Context, stream jetstream.Stream, name string) error {
	names := stream.ConsumerNames(ctx)
	var old []string
	for n := range names.Name() {
		switch earlier, same := compare(n, name); {
		case !same:
		case !earlier && n != name:
			return fmt.Errorf("consumer %s of a later owner is there", n)
		default:
			old = append(old, n)
		}
	}
	if err := names.Err(); err != nil {
		return err
	}
	for _, n := range old {
		if err := discard(ctx, stream, n); err != nil {
			return err
		}
	}
	return nil
}

// seen are consumers that were found when somebody looked, by partition.
type seen struct {
	mu    sync.Mutex
	names map[string][]string
}

func (s *seen) put(partition string, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = make(map[string][]string)
	}
	s.names[partition] = names
}

func (s *seen) take(partition string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names[partition]
	delete(s.names, partition)
	return names
}
