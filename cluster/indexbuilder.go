package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

// indexInput is what the reader of a partition sends the indexBuilder: a message, or that it has
// ended.
type indexInput struct {
	kind inputKind
	of   messages.Partition
	index.Message
	// sure reports, at the end, whether the log is the one that the file was built from.
	sure bool
}

type inputKind int

const (
	nextMessage inputKind = iota
	otherLog              // it has ended: the log is another
	readUpto              // it has ended: all up to Seq was sent
)

// indexBuilder is a file that is open.
type indexBuilder struct {
	*agentsIndex
	store      *index.Store
	told       chan indexInput
	ctx        context.Context
	read       sync.WaitGroup
	partitions [messages.Partitions]building
	gathered   *index.Batch
	worked     time.Duration // on it
}

// building is a partition of an open file.
type building struct {
	last index.Position // of the newest message that was gathered
	// upto is up to where the partition was gathered or has nothing more.
	upto uint64
	// sure reports whether the file is known to be of this log, in that life of the partition.
	sure bool
	life int
	// reading reports whether the log is read.
	reading bool
}

// keep keeps the file until something fails.
func (v *agentsIndex) keep(well func()) error {
	if v.streams != nil {
		defer v.streams.Witnessed() // there is no more to wait for, whatever happens
	}
	if err := os.MkdirAll(filepath.Dir(v.path), 0o700); err != nil {
		return err
	}
	store, err := index.Open(v.ctx, v.path, v.logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(v.ctx)
	k := &indexBuilder{agentsIndex: v, store: store, told: make(chan indexInput, indexAhead), ctx: ctx, gathered: store.Batch()}
	defer func() {
		cancel()
		k.read.Wait()
		v.set(nil, err)
		_ = store.Close()
	}()
	if err = k.identify(ctx); err != nil {
		return err
	}
	for p := range k.partitions {
		k.partitions[p].last = store.Shard(p).Position
	}
	v.set(store, nil)
	for {
		if err = k.batch(); err != nil {
			return err
		}
		well()
	}
}

// identify compares the streams with those that the file was built from. What the file
// knows of a stream is evidence for it; another stream, as after a restore, is read from
// its beginning.
func (k *indexBuilder) identify(ctx context.Context) error {
	if k.streams == nil {
		return nil
	}
	for p := range messages.Partitions {
		stream := natslog.Shard(messages.Partition(p))
		identity, seq := k.streams.Identity(stream), k.store.Shard(p).Seq
		if identity == "" {
			return fmt.Errorf("stream %d of the log could not be checked yet", stream)
		}
		before, err := k.store.ReadFrom(ctx, p, identity)
		switch {
		case err != nil:
			return err
		case before == identity && seq > 0:
			k.streams.Witness(stream, seq)
		case before != "" && before != identity && seq > 0:
			k.logger.Info("a stream of the log was restored; the index reads it from its beginning", "partition", p)
			if err := k.store.Reset(ctx, p); err != nil {
				return err
			}
		}
	}
	k.streams.Witnessed()
	return nil
}

// batch takes in what comes, commits it and rests.
func (k *indexBuilder) batch() error {
	k.gathered, k.worked = k.store.Batch(), 0
	if err := k.gather(); err != nil {
		return err
	}
	if err := k.commit(); err != nil {
		return err
	}
	k.rest()
	return nil
}

// gather folds what comes into the batch, for a while if no query waits: an agent's
// frames are written once if they come together.
func (k *indexBuilder) gather() error {
	enough := time.After(indexGather)
	err := k.look()
	for err == nil && !k.gathered.Full(k.most) {
		switch {
		case k.gathered.Len() == 0:
			k.publish()
		case len(k.told) == 0 && k.asked.Load() > 0:
			return nil
		}
		select {
		case m := <-k.told:
			err = k.take(m)
		case <-k.kick:
			err = k.look()
		case <-enough:
			return k.look()
		case <-k.store.Broken():
			return k.store.Damage()
		case <-k.ctx.Done():
			return k.ctx.Err()
		}
	}
	return err
}

// look takes in what is queued, and has the log read where that is not all.
func (k *indexBuilder) look() error {
	for p := range messages.Partition(messages.Partitions) {
		b := &k.partitions[p]
		if b.reading {
			continue
		}
		queue, goal := k.next(p, b)
		if goal > 0 {
			b.reading = true
			k.follow(p, *b, goal)
		}
		for _, m := range queue {
			if m.Seq <= b.upto {
				continue // it was read
			}
			if err := k.add(indexInput{of: p, Message: k.messageOf(m)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// next takes what is queued of a partition, or returns up to where its log must be read first.
func (k *indexBuilder) next(p messages.Partition, b *building) (queue []eventlog.Stored, goal uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := &k.agentsIndex.partitions[p]
	if !x.heard {
		return nil, 0
	}
	if b.life != x.life { // it has come since
		b.life, b.upto, b.sure = x.life, b.last.Seq, b.last.Seq == 0
	}
	if !b.sure || b.upto < x.gap {
		return nil, max(x.gap, 1)
	}
	queue, x.queue = x.queue, nil
	k.queued -= len(queue)
	return queue, 0
}

func (v *agentsIndex) messageOf(m eventlog.Stored) index.Message {
	return index.Message{
		Agent: m.Agent, Seq: m.Seq, ID: m.ID, Time: m.Time, Types: m.Types, Foreign: m.Foreign, Frame: later(m.Frame),
		Before: func(frame *messages.Frame) iter.Seq2[*messages.Frame, error] {
			return v.before(v.ctx, m.Agent, m.Seq, frame)
		},
	}
}

// before yields the frames of an agent before the one at a sequence, if that one names a blob with the
// first of them: those in the blob, and then the agent's own. For an agent that has been deleted since
// it may yield only some of them.
func (v *agentsIndex) before(ctx context.Context, a messages.AgentID, seq uint64, frame *messages.Frame) iter.Seq2[*messages.Frame, error] {
	return func(yield func(*messages.Frame, error) bool) {
		for rec, err := range v.since(ctx, a, frame) {
			if err != nil {
				if deleted, _ := eventlog.Removed(ctx, v.log, a, seq, frame.First); deleted { // the tombstone drops the rest
					return
				}
			} else if rec.Frame.First >= frame.First {
				return
			}
			if !yield(rec.Frame, unreadable(err)) {
				return
			}
		}
	}
}

// since yields the frames of the blob that a frame names, and then all of the agent's log; nothing if it
// names none.
func (v *agentsIndex) since(ctx context.Context, a messages.AgentID, frame *messages.Frame) iter.Seq2[eventlog.Recorded, error] {
	p, is := messages.StoredPrefixOf(frame)
	return func(yield func(eventlog.Recorded, error) bool) {
		if !is {
			return
		}
		for rec, err := range prefix.Frames(ctx, v.blobs, a, p, 0) {
			if !yield(rec, err) || err != nil {
				return
			}
		}
		v.log.Read(ctx, a, eventlog.Range{})(yield)
	}
}

// take takes in what a reader sends.
func (k *indexBuilder) take(m indexInput) error {
	switch b := &k.partitions[m.of]; m.kind {
	case nextMessage:
		return k.add(m)
	case readUpto:
		b.reading, b.sure, b.upto = false, m.sure, max(b.upto, m.Seq)
	case otherLog:
		if err := k.again(m.of); err != nil {
			return err
		}
	}
	return k.look()
}

// add folds a message. One that cannot be read now is waited for, with all that
// was read behind it: left out it would never be indexed.
func (k *indexBuilder) add(m indexInput) error {
	begun := time.Now()
	defer func() { k.worked += time.Since(begun) }()
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 2 * time.Second
	for tell := k.logger.Warn; ; tell = k.logger.Debug {
		err := k.gathered.Add(k.ctx, int(m.of), m.Message)
		if err == nil {
			b := &k.partitions[m.of]
			b.last, b.upto = m.Position(), m.Seq
			return nil
		}
		if !errors.Is(err, index.ErrLater) {
			return err
		}
		if k.ctx.Err() != nil {
			return k.ctx.Err()
		}
		tell("the index waits for a frame that cannot be read now", "agent", m.Agent.String(), "error", err)
		if err := k.commit(); err != nil {
			return err
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-k.store.Broken():
			return k.store.Damage()
		case <-k.ctx.Done():
			return k.ctx.Err()
		}
	}
}

// later marks the errors of a frame that may be read at another time: all but
// those that say what is wrong with the frame itself or with its key.
func later(decode func() (*messages.Frame, error)) func() (*messages.Frame, error) {
	if decode == nil {
		return nil
	}
	return func() (*messages.Frame, error) {
		f, err := decode()
		if err != nil {
			return nil, unreadable(err)
		}
		return f, nil
	}
}

// unreadable returns the error of a frame for the index.
func unreadable(err error) error {
	damage := new(eventlog.DamageError)
	if err == nil || errors.As(err, &damage) || errors.Is(err, messages.ErrLocked) || errors.Is(err, messages.ErrShredded) {
		return err
	}
	return fmt.Errorf("%w: %w", index.ErrLater, err)
}

func (k *indexBuilder) commit() error {
	if k.gathered.Len() == 0 {
		return nil
	}
	begun := time.Now()
	err := k.gathered.Commit(k.ctx)
	k.worked += time.Since(begun)
	k.gathered = k.store.Batch()
	if err != nil {
		return err
	}
	k.publish()
	return nil
}

// publish notifies those who wait how far each partition is. All that was gathered is committed.
func (k *indexBuilder) publish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p := range k.partitions {
		b, x := &k.partitions[p], &k.agentsIndex.partitions[p]
		if x.heard && b.sure && b.life == x.life {
			x.at = b.upto
			x.ready = x.ready || x.at >= x.gap
		}
	}
	k.changed()
}

// again reads a partition from its beginning.
func (k *indexBuilder) again(p messages.Partition) error {
	if err := k.commit(); err != nil {
		return err
	}
	b := &k.partitions[p]
	k.logger.Warn("a partition of the log is not the one that the index was built from; it is read again", "partition", p, "sequence", b.last.Seq)
	if err := k.store.Reset(k.ctx, int(p)); err != nil {
		return err
	}
	*b = building{life: b.life, sure: true}
	return nil
}

// rest lets others work for as long as was worked, unless what is new is to be folded at once.
func (k *indexBuilder) rest() {
	if k.asked.Load() > 0 {
		return
	}
	select {
	case <-time.After(min(k.worked, indexGather)):
	case <-k.kick:
	case <-k.store.Broken(): // gather returns why
	case <-k.ctx.Done():
	}
}

// follow reads a partition from where the file is up to where it ended, after it has seen that the
// log still holds what was read last. After an error it ends a moment later.
func (k *indexBuilder) follow(p messages.Partition, b building, goal uint64) {
	k.read.Go(func() {
		err := k.readOn(p, &b)
		end := indexInput{kind: readUpto, of: p, Message: index.Message{Seq: b.last.Seq}, sure: b.sure}
		switch {
		case err == nil:
			end.Seq = max(goal, b.last.Seq)
		case errors.Is(err, eventlog.ErrElsewhere) && k.relied(p):
			end.kind = otherLog
		case k.ctx.Err() == nil:
			k.logger.Warn("a partition of the log cannot be read; it is tried again", "partition", p, "error", err)
			select {
			case <-time.After(indexGather):
			case <-k.ctx.Done():
			}
		}
		k.deliver(end)
	})
}

// relied reports whether a partition is what its stream should be. What the index knows of
// one that has lost messages is kept.
func (k *indexBuilder) relied(p messages.Partition) bool {
	return k.streams == nil || k.streams.Relied(natslog.Shard(p)) == nil
}

// readOn reads what a partition has behind b.last.
func (k *indexBuilder) readOn(p messages.Partition, b *building) error {
	after := b.last.Seq
	if !b.sure {
		after--
	}
	for m, err := range k.log.ReadPartition(k.ctx, p, after) {
		message := k.messageOf(m)
		switch {
		case err != nil:
			return err
		case !b.sure && !message.Position().Same(b.last):
			return eventlog.ErrElsewhere
		case !b.sure:
			b.sure = true
			continue
		}
		if b.last = message.Position(); !k.deliver(indexInput{of: p, Message: message}) {
			return k.ctx.Err()
		}
	}
	if !b.sure {
		return eventlog.ErrElsewhere
	}
	return k.ctx.Err()
}

func (k *indexBuilder) deliver(m indexInput) bool {
	select {
	case k.told <- m:
		return true
	case <-k.ctx.Done():
		return false
	}
}
