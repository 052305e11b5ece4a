package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Backlog is what is stored for a partition and not settled.
type Backlog struct {
	// Waiting is how many messages there are, InHand how many of them the
	// partition's owner has taken.
	Waiting, InHand uint64
	// Oldest is when the oldest was stored. Zero: there is none.
	Oldest time.Time
}

// Backlogs looks up what waits, by partition, whichever node owns it. It asks the server
// once for all partitions, and once more for each in which something waits.
func (b *Inbox) Backlogs(ctx context.Context) (list [messages.Partitions]Backlog, err error) {
	pulled, err := b.consumers(ctx)
	if err != nil {
		return list, fmt.Errorf("list the consumers of stream %s: %w", b.name, err)
	}
	var errs []error
	for p, consumer := range pulled {
		if consumer != nil {
			list[p].InHand = uint64(max(consumer.NumAckPending, 0))
			list[p].Waiting = consumer.NumPending + list[p].InHand
		}
		if consumer == nil || list[p].Waiting > 0 {
			errs = append(errs, b.look(ctx, messages.Partition(p), consumer != nil, &list[p]))
		}
	}
	return list, errors.Join(errs...)
}

// consumers returns the owners' consumers by partition, the newest of each; nil where
// there is none.
func (b *Inbox) consumers(ctx context.Context) (list [messages.Partitions]*jetstream.ConsumerInfo, err error) {
	var newest [messages.Partitions]messages.Epoch
	lister := b.stream.ListConsumers(ctx)
	for info := range lister.Info() {
		var p messages.Partition
		var epoch messages.Epoch
		if n, _ := fmt.Sscanf(info.Name, "p%d-e%d", &p, &epoch); n == 2 && p < messages.Partitions && epoch >= newest[p] {
			list[p], newest[p] = info, epoch
		}
	}
	return list, lister.Err()
}

// look finds the oldest message of a partition, and counts them if it has no consumer.
func (b *Inbox) look(ctx context.Context, p messages.Partition, counted bool, to *Backlog) error {
	filter := b.cfg.Subjects.InboxOf(p)
	if !counted {
		info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return fmt.Errorf("count the messages of partition %s: %w", p, err)
		}
		for _, n := range info.State.Subjects {
			to.Waiting += n
		}
		if to.Waiting == 0 {
			return nil
		}
	}
	oldest, err := b.stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(filter))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound): // it is settled by now
	case err != nil:
		return fmt.Errorf("read the oldest message of partition %s: %w", p, err)
	default:
		to.Oldest = oldest.Time
	}
	return nil
}
