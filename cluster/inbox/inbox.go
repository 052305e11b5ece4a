// Package inbox brings in what was published to the input and command
// subjects: one consumer for each partition, pulled by the partition's owner.
//
// # Guarantees
//
//   - A message is acknowledged after its append, or after its dead letter is
//     stored, and on no other path.
//   - A sender is told of a refusal, at most once, when no other owner can be given the
//     message any more: what was told to be refused is not obeyed. Where an owner dies in
//     between nobody tells, and the dead letter is there.
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
	"log/slog"

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
	// Serves says whether a kind of agent is defined on this node; what is for other
	// kinds is tried less often. Nil: every kind is.
	Serves func(kind string) bool
	// KnownElsewhere says whether a kind that is not defined here is defined on
	// another node, or may be soon: what is for it is held, and no dead letter. It
	// must not block. Nil: none is.
	KnownElsewhere func(kind string) bool
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
	pulled pulled
	seen   seen
	// failures is how often an agent may fail at a message.
	failures int
}

// Open finds the input stream.
func Open(ctx context.Context, cfg Config) (*Inbox, error) {
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, err
	}
	b := &Inbox{cfg: cfg, js: js, name: natslog.NamesOf(cfg.Subjects).Inbox(), failures: failuresAtMost}
	b.stream, err = js.Stream(ctx, b.name)
	return b, err
}

// Newest is the highest epoch under which an owner of the partition has pulled, as
// far as its consumer is still there; 0: none is. Pull needs a higher one.
func (b *Inbox) Newest(ctx context.Context, p messages.Partition) (messages.Epoch, error) {
	names := b.stream.ConsumerNames(ctx)
	ours, _ := parts(consumerOf(p, 0))
	var newest uint64
	var found []string
	for n := range names.Name() {
		if of, epoch := parts(n); of == ours {
			newest, found = max(newest, epoch), append(found, n)
		}
	}
	b.seen.put(ours, found)
	err := names.Err()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = nil // nor are its consumers there
	}
	return messages.Epoch(newest), err
}

// Pull begins to bring in the inputs of partition p under epoch. The function
// it returns stops that and waits until nothing is under way; what agents look at
// has a moment to be settled.
//
// The epoch is part of the consumer's name: an owner that was cut off and comes
// back asks a consumer that is gone, and takes nothing from its successor's.
func (b *Inbox) Pull(p messages.Partition, epoch messages.Epoch) (stop func()) {
	pulling := b.pulled.of(p)
	pulling.by(epoch, nil)
	end := b.start(consumerOf(p, epoch), []string{b.cfg.Subjects.InboxOf(p)}, func(ctx context.Context, s *source) error {
		l := b.lanes(context.WithoutCancel(ctx), pulling, readAgain(s.stream, s.origins))
		pulling.by(epoch, l)
		defer pulling.lose(ctx)
		defer pulling.by(epoch, nil)
		defer l.end()
		s.resumed = l.resumed
		go l.askPending(ctx, s.consumer)
		for {
			msg, err := s.next(ctx)
			if err != nil {
				return err
			}
			pulling.pending.Store(s.pending)
			l.take(msg)
		}
	})
	return func() {
		end()
		pulling.by(0, nil)
	}
}

// strayPartition is whose dead letters those of no partition are counted with.
const strayPartition messages.Partition = 0

// PullStray begins to dead-letter what the partitions do not take, such as a
// subject without a tenant. One node in a cluster does so.
func (b *Inbox) PullStray() (stop func()) {
	filters := []string{b.cfg.Subjects.Any("in"), b.cfg.Subjects.Any("ctl")}
	return b.start(stray, filters, func(ctx context.Context, s *source) error {
		for {
			msg, err := s.next(ctx)
			if err != nil {
				return err
			}
			_, _, why := b.cfg.Subjects.ParseAgent(msg.subject)
			if why == nil {
				why = messages.Refuse(messages.BadAddress, "subject %q was not taken by any partition", msg.subject)
			}
			if b.refuse(ctx, messages.AgentID{}, msg, "", messages.AsError(why)).did == left {
				return ctx.Err()
			}
			b.pulled.of(strayPartition).letters.Add(1)
		}
	})
}
