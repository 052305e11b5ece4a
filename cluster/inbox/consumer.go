package inbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// The settings of a consumer. ackWait only matters for an acknowledgement that a
// server lost: the owner itself tries again what has not been applied, and replaces
// the consumer when something may not have reached it.
const (
	ackWait    = 10 * time.Minute
	ackPending = 1 << 16
)

// stray is the name of the consumer for messages that no partition takes.
const stray = "stray"

// consumerOf returns the name of an owner's consumer.
func consumerOf(p messages.Partition, epoch messages.Epoch) string {
	return fmt.Sprintf("p%s-e%d", p, epoch)
}

// split returns the partition and epoch of a consumer's name; none is 0.
func split(name string) (partition string, epoch messages.Epoch) {
	partition, text, _ := strings.Cut(name, "-e")
	n, _ := strconv.ParseUint(text, 10, 64)
	return partition, messages.Epoch(n)
}

// made returns the names of a partition's consumers.
func made(ctx context.Context, stream jetstream.Stream, partition string) (list []string, err error) {
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		if of, _ := split(name); of == partition {
			list = append(list, name)
		}
	}
	return list, names.Err()
}

// start makes a consumer, and replaces it whenever it is lost, until it is
// stopped. Stop returns when nothing is under way. shown receives the queues of each
// consumer, and nil when it is gone.
func (b *Inbox) start(name string, of *part, shown func(*queues), filters ...string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pause := backoff.NewExponentialBackOff()
		pause.InitialInterval, pause.MaxInterval = firstPause, longestPause/4
		for ctx.Err() == nil {
			came, err := b.consume(ctx, name, of, shown, filters)
			if ctx.Err() != nil {
				return
			}
			if came {
				pause.Reset()
				of.lost.Add(1)
			}
			b.cfg.Logger.Warn("an inbox consumer was lost; it is made again", "consumer", name, "error", err)
			select {
			case <-time.After(pause.NextBackOff()):
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// consume replaces the consumer and reads it until ctx ends or it is lost; came reports
// whether there was one.
func (b *Inbox) consume(ctx context.Context, name string, of *part, shown func(*queues), filters []string) (came bool, err error) {
	broken := b.cfg.Conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer b.cfg.Conn.RemoveStatusListener(broken)
	// The stream is looked up each time: ids depend on when it was created.
	stream, err := insist(ctx, func(ctx context.Context) (jetstream.Stream, error) { return b.js.Stream(ctx, b.name) })
	if err != nil {
		return false, err
	}
	from := source{stream: stream}
	if from.origins, err = natslog.OriginsOf(stream.CachedInfo().Created, stream.CachedInfo().Config); err != nil {
		return false, err
	}
	consumer, err := replace(ctx, stream, name, filters)
	if err != nil {
		return false, err
	}
	q := b.queues(context.WithoutCancel(ctx), of, from)
	f, err := newFeed(b.cfg.Conn, consumer, q)
	if err != nil {
		return false, err
	}
	shown(q)
	defer func() {
		f.close()
		q.end()
		shown(nil)
		of.pending.Store(0)
	}()
	return true, f.run(ctx, broken)
}

// replace makes a consumer that delivers all that is not settled, in order. Those that the
// partition had are removed first, unless one is a later owner's.
func replace(ctx context.Context, stream jetstream.Stream, name string, filters []string) (jetstream.Consumer, error) {
	partition, epoch := split(name)
	old, err := insist(ctx, func(ctx context.Context) ([]string, error) { return made(ctx, stream, partition) })
	if err != nil {
		return nil, err
	}
	for _, n := range old {
		if _, other := split(n); other > epoch {
			return nil, fmt.Errorf("consumer %s of a later owner is there", n)
		}
		_, err := insist(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, stream.DeleteConsumer(ctx, n) })
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil, err
		}
	}
	cfg := jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		MaxAckPending: ackPending, MemoryStorage: true, FilterSubjects: filters,
	}
	return insist(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return stream.CreateConsumer(ctx, cfg) })
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

// unanswered reports whether an error says only that JetStream did not answer, or cannot now.
func unanswered(err error) bool {
	const noLeader = 10008 // the library has no name for it
	var refusal *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.As(err, &refusal) && refusal.ErrorCode == noLeader
}
