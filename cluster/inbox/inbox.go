// Package inbox delivers to agents what was published to the input and command subjects: one
// consumer for each partition, which the partition's owner reads.
//
// # Guarantees
//
//   - A message is acknowledged after its append, or after its dead letter is
//     stored, and on no other path.
//   - The sender of a refused message is answered, at most once, when no other owner
//     can be given the message any more: a message that was refused is not applied
//     later. If an owner dies in between, the dead letter is stored and no answer sent.
//   - The messages of one agent are given to it one by one, in the order in
//     which the stream stored them; a passing failure holds them, it does not
//     reorder them. Messages from other agents keep their order within each group:
//     tasks, their cancellations, their results, decisions.
//   - An input without an id gets one from its place in the stream, so that a
//     redelivery is the same input.
//   - What was published before a delete is settled before it and does not come
//     again after it, even if its acknowledgement was lost.
//   - A new owner replaces the consumer: what was not acknowledged comes
//     again, in order, at once. Its epoch must be above [Inbox.Newest]: one that
//     finds a later owner's consumer takes nothing.
//   - Headers and bodies of messages are never taken for what the server reports
//     about a consumer.
package inbox

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

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
	// Serves reports whether a kind of agent is defined on this node; what is for other
	// kinds is tried less often. Nil: every kind is.
	Serves func(kind string) bool
	// KnownElsewhere reports whether a kind that is not defined here is defined on
	// another node, or may be soon: what is for it is held, and no dead letter. It
	// must not block. Nil: none is.
	KnownElsewhere func(kind string) bool
	// Told publishes an answer or refusal to a subject that its sender named.
	Told   func(subject string, a messages.AgentID, answer messages.Answer)
	Logger *slog.Logger
}

// Inbox brings in the inputs of the partitions that it is asked to. Safe for concurrent use.
type Inbox struct {
	cfg    Config
	js     jetstream.JetStream
	name   string // of the stream
	stream jetstream.Stream
	parts  [messages.Partitions]part
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

// Newest returns the highest epoch under which an owner of the partition has pulled, as
// far as its consumer is still there; 0: none is. Pull needs a higher one.
func (b *Inbox) Newest(ctx context.Context, p messages.Partition) (newest messages.Epoch, err error) {
	partition, _ := split(consumerOf(p, 0))
	names, err := made(ctx, b.stream, partition)
	for _, name := range names {
		_, epoch := split(name)
		newest = max(newest, epoch)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = nil // nor are its consumers there
	}
	return newest, err
}

// Pull begins to bring in the inputs of partition p under epoch. The function
// it returns stops that and waits until nothing is under way; what agents have been
// given has a moment to be settled.
//
// The epoch is part of the consumer's name: an owner that was cut off and comes
// back asks a consumer that is gone, and takes nothing from its successor's.
func (b *Inbox) Pull(p messages.Partition, epoch messages.Epoch) (stop func()) {
	of := &b.parts[p]
	of.epoch.Store(uint64(epoch))
	end := b.start(consumerOf(p, epoch), of, of.queues.Store, b.cfg.Subjects.InboxOf(p))
	return func() {
		end()
		of.epoch.Store(0)
	}
}

// PullStray begins to dead-letter what the partitions do not take, such as a
// subject without a tenant. One node in a cluster does so. Partition 0 counts the dead letters.
func (b *Inbox) PullStray() (stop func()) {
	return b.start(stray, &b.parts[0], func(*queues) {}, b.cfg.Subjects.Any("in"), b.cfg.Subjects.Any("ctl"))
}

// part is a partition as far as this node has pulled it: its counters, and what there is
// now. Without a consumer queues is nil and pending 0.
type part struct {
	epoch                                  atomic.Uint64
	queues                                 atomic.Pointer[queues]
	applied, again, letters, lost, pending atomic.Uint64
}

// count counts what has become of a message.
func (p *part) count(what outcome) {
	switch what.did {
	case settled, deleted:
		p.applied.Add(1)
		if what.again {
			p.again.Add(1)
		}
	case refused:
		p.letters.Add(1)
	}
}

// about returns what a log line about an agent carries.
func (b *Inbox) about(a messages.AgentID) slog.Attr {
	return a.LogAttr(messages.Epoch(b.parts[a.Partition()].epoch.Load()))
}
