package natslog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// LossError reports that a stream of the log does not hold all that it was
// acknowledged to hold.
type LossError struct {
	Stream string
	// Known is the last sequence that is known to have been stored, Found the last
	// one that the stream has.
	Known, Found uint64
	// Missing is how many messages up to Found are not there though nothing purged
	// them, if that is known.
	Missing uint64
	// Detail says what differs.
	Detail   string
	evidence evidence // that it was judged by
	// gap reports that messages are missing below Found, and nothing else is wrong.
	gap bool
	// Unacknowledged reports that all that is missing lies above Known. A server whose
	// disk is full assigns a sequence to a message that it then refuses, and keeps the
	// sequence. If there is no other evidence, [Log.Void] records that nothing is lost.
	Unacknowledged bool
	// Settled reports whether the answer of a deposed leader is ruled out. If not,
	// check again ten seconds later.
	Settled bool
}

// Error names the stream, what is known and what was found.
func (e *LossError) Error() string { return fmt.Sprintf("stream %s: %s", e.Stream, e.Detail) }

// evidence is what is on record of a stream.
type evidence struct {
	base *base
	rev  uint64 // of base
	// marks are those that belong to the base, and any that no base explains.
	marks []mark
}

// known returns the last sequence that was certainly stored.
func (r evidence) known() uint64 {
	last := uint64(0)
	if r.base != nil {
		last = r.base.Last
	}
	for _, m := range r.marks {
		last = max(last, m.Last)
	}
	return last
}

// removed returns how many messages are gone by purges and from before: at least, and at
// most while the outcome of some purges is unknown.
func (r evidence) removed() (least, most uint64) {
	least = r.base.Removed
	for _, m := range r.marks {
		least += m.Purged
		if m.Purge != nil {
			most += m.Purge.Messages
		}
	}
	return least - min(least, r.base.Returned), least + most
}

// Check compares a stream of the log with what is on record of it. It returns a
// *LossError if messages are missing that were acknowledged, and begins the record
// of a stream that has none. Any other error leaves the question open. With own, what this
// process was acknowledged, or has read, counts as evidence although it is not on record.
func (l *Log) Check(ctx context.Context, shard int, own bool) error {
	stream, c, err := l.shard(shard)
	if err != nil {
		return err
	}
	first, end := partitionsOf(shard)
	acked := uint64(0)
	for p := first; own && p < end; p++ {
		acked = max(acked, l.Acked(messages.Partition(p)))
	}
	before, err := l.readEvidence(ctx, shard)
	if err != nil {
		return err
	}
	info, err := c.info(ctx, stream)
	if err != nil {
		return err
	}
	if before.base == nil {
		return l.adopt(ctx, shard, before, info)
	}
	l.remember(shard, before.base)
	loss := judge(stream, max(acked, before.known()), before, before, info)
	if loss == nil {
		return l.noteReturned(ctx, shard, before, info)
	}
	after, err := l.readEvidence(ctx, shard) // something may have been purged meanwhile
	if err != nil {
		return err
	}
	if after.base == nil || after.base.ID != before.base.ID {
		return fmt.Errorf("the record of stream %s was changed: check it again", stream)
	}
	if loss = judge(stream, max(acked, before.known()), before, after, info); loss == nil {
		return nil
	}
	if loss.Unacknowledged, err = l.unacknowledged(ctx, shard, loss); err != nil {
		return err
	}
	return loss
}

// noteReturned takes into the record that messages are there which were purged. A leader
// that has been deposed may not know of the purge.
func (l *Log) noteReturned(ctx context.Context, shard int, r evidence, info streamInfo) error {
	least, _ := r.removed()
	removed := info.removed()
	if removed >= least || info.replicated() {
		return nil
	}
	b := *r.base
	b.Returned += least - removed
	if err := l.putBase(ctx, shard, b, r.rev); err != nil {
		return err
	}
	l.log.Warn("messages that were purged are in a stream again: its server was killed and did not keep the purge", "stream", l.names.log(shard), "messages", least-removed)
	return nil
}

// unacknowledged reports whether all that is missing lies above what is known to have
// been stored.
func (l *Log) unacknowledged(ctx context.Context, shard int, loss *LossError) (bool, error) {
	behind := loss.Found - min(loss.Found, loss.Known)
	if !loss.gap || loss.Missing > behind {
		return false, nil
	}
	stream, c, err := l.shard(shard)
	if err != nil {
		return false, err
	}
	there := uint64(0)
	behindKnown := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: loss.Known + 1, HeadersOnly: true}
	_, err = c.readHeaders(ctx, stream, behindKnown, loss.Known, loss.Found, func(string, nats.Header, uint64) error { there++; return nil })
	if err != nil {
		return false, fmt.Errorf("count what stream %s has behind sequence %d: %w", stream, loss.Known, err)
	}
	now, err := c.info(ctx, stream)
	if err != nil {
		return false, err
	}
	if now.State.LastSeq != loss.Found {
		return false, fmt.Errorf("stream %s was written to while what is missing in it was counted: check it again", stream)
	}
	return there+loss.Missing == behind, nil
}

// adopt begins the record of a stream. Marks without a base are what is left of a
// record whose base cannot be read.
func (l *Log) adopt(ctx context.Context, shard int, r evidence, info streamInfo) error {
	if known := r.known(); known > info.State.LastSeq {
		return &LossError{Stream: l.names.log(shard), Known: known, Found: info.State.LastSeq, Settled: !info.replicated(), Detail: ends(known, info.State.LastSeq)}
	}
	b, err := l.begin(ctx, shard, info)
	if err != nil {
		return fmt.Errorf("begin the record of stream %s: %w", l.names.log(shard), err)
	}
	l.remember(shard, b)
	return nil
}

func ends(known, found uint64) string {
	return fmt.Sprintf("messages that were acknowledged are lost: it was known to reach sequence %d and ends with %d", known, found)
}

// judge compares what the leader says of a stream with what was on record before
// and after it said so.
func judge(stream string, known uint64, before, after evidence, info streamInfo) *LossError {
	loss := &LossError{Stream: stream, Known: known, Found: info.State.LastSeq, Settled: !info.replicated(), evidence: after}
	_, most := after.removed()
	removed := info.removed()
	switch {
	case before.base.Stream != info.identity():
		loss.Detail = fmt.Sprintf("it was removed and made again, or an older copy was put in its place: it was known to reach sequence %d and ends with %d", known, info.State.LastSeq)
	case info.State.LastSeq < known:
		loss.Detail = ends(known, info.State.LastSeq)
	case removed > most:
		loss.Missing, loss.gap = removed-most, true
		loss.Detail = fmt.Sprintf("messages that were acknowledged are lost: %d of those up to sequence %d are not there, and nothing purged them", loss.Missing, info.State.LastSeq)
	case info.lost() > before.base.Lost:
		loss.Missing = uint64(info.lost() - before.base.Lost)
		loss.Detail = fmt.Sprintf("the NATS server reports that it has lost %d messages of it", loss.Missing)
	default:
		return nil
	}
	return loss
}

// readEvidence reads what is on record of a stream.
func (l *Log) readEvidence(ctx context.Context, shard int) (r evidence, err error) {
	first, end := partitionsOf(shard)
	read, errs := make([]mark, end-first), make([]error, end-first+1)
	var b base
	var rev uint64
	var wg sync.WaitGroup
	wg.Go(func() { rev, errs[end-first] = l.getMark(ctx, baseKey(shard), &b) })
	for i := range read {
		wg.Go(func() { _, errs[i] = l.getMark(ctx, markKey(messages.Partition(first+i)), &read[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return evidence{}, fmt.Errorf("read what is on record of stream %s: %w", l.names.log(shard), err)
	}
	if rev > 0 {
		r.base, r.rev = &b, rev
	}
	for _, m := range read {
		if r.base == nil || m.Base == r.base.ID {
			r.marks = append(r.marks, m)
		}
	}
	return r, nil
}

// remember keeps a base for the marks that are written from now on. What this
// process knew of the stream under another base is void.
func (l *Log) remember(shard int, b *base) {
	was := l.marks.bases[shard].Load()
	if was == nil || was.ID == b.ID {
		l.marks.bases[shard].Store(b)
		return
	}
	l.forgetAcked(shard) // before, so that no position of the old record is taken for one of the new
	l.marks.bases[shard].Store(b)
	l.forgetAcked(shard)
}

func (l *Log) forgetAcked(shard int) {
	first, end := partitionsOf(shard)
	for p := first; p < end; p++ {
		l.marks.acked[p].Store(0)
	}
}

// Stored returns a sequence that a partition's stream is on record to have stored, as of
// what this process has read.
func (l *Log) Stored(p messages.Partition) uint64 {
	last := l.Marked(p)
	if b := l.marks.bases[Shard(p)].Load(); b != nil {
		last = max(last, b.Last)
	}
	return last
}
