package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// lookAtOnce bounds how many requests Backlogs has under way.
const lookAtOnce = 8

// Backlogs looks up what waits, by partition, whoever owns it. It asks the server
// once for all partitions, and once more for each in which something waits.
func (b *Inbox) Backlogs(ctx context.Context) (list [messages.Partitions]Backlog, err error) {
	pulled, err := b.consumers(ctx)
	if err != nil {
		return list, err
	}
	errs := make([]error, messages.Partitions)
	limit := make(chan struct{}, lookAtOnce)
	var wg sync.WaitGroup
	for p := range messages.Partitions {
		consumer := pulled[p]
		if consumer != nil {
			list[p].InHand = uint64(max(consumer.NumAckPending, 0))
			list[p].Waiting = consumer.NumPending + list[p].InHand
			if list[p].Waiting == 0 {
				continue
			}
		}
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			errs[p] = b.look(ctx, messages.Partition(p), consumer != nil, &list[p])
		})
	}
	wg.Wait()
	return list, errors.Join(errs...)
}

// consumers are the owners' consumers by partition, the newest of each; nil where
// nobody pulls.
func (b *Inbox) consumers(ctx context.Context) (list [messages.Partitions]*jetstream.ConsumerInfo, err error) {
	index := make(map[string]int, messages.Partitions)
	for p := range messages.Partitions {
		name, _ := split(consumerOf(messages.Partition(p), 0))
		index[name] = p
	}
	var newest [messages.Partitions]messages.Epoch
	lister := b.stream.ListConsumers(ctx)
	for info := range lister.Info() {
		of, epoch := split(info.Name)
		if p, ours := index[of]; ours && epoch >= newest[p] {
			list[p], newest[p] = info, epoch
		}
	}
	if err := lister.Err(); err != nil {
		return list, fmt.Errorf("list the consumers of stream %s: %w", b.name, err)
	}
	return list, nil
}

// look finds the oldest message of a partition, and counts them if nobody pulls.
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
