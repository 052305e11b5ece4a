// Package inbox brings in what was published to the input and command
// subjects: one consumer for each partition, pulled by the partition's owner.
//
// # Guarantees
//
//   - A message is acknowledged after its append, or after its dead letter is
//     stored, and on no other path.
//   - The messages of one agent are given to it one by one, in the order in
//     which the stream stored them; a passing failure holds them, it does not
//     reorder them. What other agents tell it is in order among itself, by what it
//     is: tasks, what takes them back, what becomes of them, decisions.
//   - An input without an id gets one from its place in the stream, so that a
//     redelivery is the same input.
//   - What was published before a delete is settled before it and does not come
//     again after it, even if its acknowledgement was lost.
//   - A new owner makes the consumer anew: what was not acknowledged comes
//     again, in order, at once. Its epoch must be above [Inbox.Newest]: one that
//     finds a later owner's consumer takes nothing.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// Config says where inputs come from and where they go.
type Config struct {
	Conn     *nats.Conn
	Subjects messages.Subjects
	// Deliver gives a command to its agent and waits for the answer. An error
	// means that there was none: the same command is delivered again.
	Deliver func(context.Context, *actors.Deliver) (messages.Answer, error)
	// Told publishes an answer or refusal to a subject that its sender named.
	Told   func(subject string, a messages.AgentID, answer messages.Answer)
	Logger *slog.Logger
}

// Inbox pulls the inputs of the partitions it is told to. Safe for concurrent use.
type Inbox struct {
	cfg    Config
	js     jetstream.JetStream
	name   string // of the stream
	stream jetstream.Stream
}

// message is a message of the stream, with the id it has if its sender gave none.
type message struct {
	jetstream.Msg
	seq uint64
	id  string
}

// Open finds the input stream.
func Open(ctx context.Context, cfg Config) (*Inbox, error) {
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, err
	}
	b := &Inbox{cfg: cfg, js: js, name: natslog.NamesOf(cfg.Subjects).Inbox()}
	b.stream, err = js.Stream(ctx, b.name)
	return b, err
}

// Newest is the highest epoch under which an owner of the partition has pulled, as
// far as its consumer is still there; 0: none is. Pull needs a higher one.
func (b *Inbox) Newest(ctx context.Context, p messages.Partition) (messages.Epoch, error) {
	names := b.stream.ConsumerNames(ctx)
	ours, _ := parts(consumerOf(p, 0))
	var newest uint64
	for n := range names.Name() {
		if of, epoch := parts(n); of == ours {
			newest = max(newest, epoch)
		}
	}
	err := names.Err()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = nil // nor are its consumers there
	}
	return messages.Epoch(newest), err
}

// consumerOf is the name of an owner's consumer.
func consumerOf(p messages.Partition, epoch messages.Epoch) string {
	return fmt.Sprintf("p%s-e%d", p, epoch)
}

// stray is the name of the consumer for messages that no partition takes.
const stray = "stray"

// Pull begins to bring in the inputs of partition p under epoch. The function
// it returns stops that and waits until nothing is under way.
//
// The epoch is part of the consumer's name: an owner that was cut off and comes
// back asks a consumer that is gone, and takes nothing from its successor's.
func (b *Inbox) Pull(p messages.Partition, epoch messages.Epoch) (stop func()) {
	return b.start(consumerOf(p, epoch), []string{b.cfg.Subjects.InboxOf(p)}, func(ctx context.Context, next func() (message, error)) error {
		l := &lanes{inbox: b, ctx: ctx, waiting: make(map[lane][]message), inHand: make(map[uint64]struct{}), deleted: make(map[messages.AgentID]uint64)}
		defer l.running.Wait()
		for {
			msg, err := next()
			if err != nil {
				return err
			}
			l.take(msg)
		}
	})
}

// PullStray begins to dead-letter what the partitions do not take, such as a
// subject without a tenant. One node in a cluster does so.
func (b *Inbox) PullStray() (stop func()) {
	filters := []string{b.cfg.Subjects.Any("in"), b.cfg.Subjects.Any("ctl")}
	return b.start(stray, filters, func(ctx context.Context, next func() (message, error)) error {
		for {
			msg, err := next()
			if err != nil {
				return err
			}
			_, _, why := b.cfg.Subjects.ParseAgent(msg.Subject())
			if why == nil {
				why = messages.Refuse(messages.BadAddress, "subject %q was not taken by any partition", msg.Subject())
			}
			b.deadLetter(ctx, msg, messages.AgentID{}, messages.AsError(why))
		}
	})
}

// handler works a consumer's messages off until next fails.
type handler func(ctx context.Context, next func() (message, error)) error

func (b *Inbox) start(name string, filters []string, h handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause := time.Duration(0); wait(ctx, pause); pause = 250 * time.Millisecond {
			err := b.consume(ctx, name, filters, h)
			if ctx.Err() == nil {
				b.cfg.Logger.Warn("an inbox consumer was lost; it is made anew", "consumer", name, "error", err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// wait pauses and says whether ctx is still alive.
func wait(ctx context.Context, pause time.Duration) bool {
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// The settings of a consumer. AckWait only matters for an ack that was lost:
// the owner itself tries again what has not been applied.
const (
	ackWait    = time.Minute
	ackPending = 1000
	batch      = 256
)

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
		if err := stream.DeleteConsumer(ctx, n); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return nil
}

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

// consume makes the consumer anew and works its messages off until ctx ends or
// the consumer is lost.
func (b *Inbox) consume(ctx context.Context, name string, filters []string, h handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.name) // asked anew: ids depend on when it was created
	if err != nil {
		return err
	}
	origins, err := natslog.OriginsOf(stream.CachedInfo().Created, stream.CachedInfo().Config)
	if err != nil {
		return err
	}
	if err := remove(ctx, stream, name); err != nil {
		return err
	}
	cfg := jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
		MaxAckPending: ackPending, MemoryStorage: true,
	}
	if len(filters) == 1 {
		cfg.FilterSubject = filters[0]
	} else {
		cfg.FilterSubjects = filters
	}
	consumer, err := stream.CreateConsumer(ctx, cfg)
	if err != nil {
		return err
	}
	it, err := consumer.Messages(jetstream.PullMaxMessages(batch), jetstream.PullHeartbeat(5*time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	end := context.AfterFunc(ctx, it.Stop)
	defer end()
	return h(ctx, func() (message, error) {
		msg, err := it.Next()
		if err != nil {
			cancel() // what is under way
			return message{}, err
		}
		meta, err := msg.Metadata()
		if err != nil {
			cancel()
			return message{}, err
		}
		seq := meta.Sequence.Stream
		return message{msg, seq, messages.StreamInputID(origins.Of(seq), seq)}, nil
	})
}
