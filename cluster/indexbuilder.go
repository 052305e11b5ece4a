package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

// indexInput is what the reader of a shard gives the indexBuilder.
type indexInput struct {
	kind  inputKind
	shard int
	index.Message
}

type inputKind int

const (
	nextMessage inputKind = iota
	sameShard             // the shard is the one that was read
	otherShard            // it is another
	noMessage             // there is no more now
)

// indexBuilder is a file that is open.
type indexBuilder struct {
	*agentsIndex
	store *index.Store
	told  chan indexInput
	ctx   context.Context
	read  sync.WaitGroup
	// building are the shards that have not been read to their end, sure those
	// that are known to be the ones that were read.
	building, sure map[int]bool
	// passed are the sequences up to which the shards have been read, as of when
	// nothing more was there: what is newest may be of no agent.
	passed map[int]uint64
	// goals are what the shards held at first.
	goals  []uint64
	begun  time.Time
	frames int

	gathered *index.Batch
	worked   time.Duration // on it
	machine  busy
}

// keep keeps the file until something fails.
func (v *agentsIndex) keep(well func()) error {
	if v.streams != nil {
		defer v.streams.witnessed() // there is no more to wait for, whatever happens
	}
	if err := os.MkdirAll(filepath.Dir(v.path), 0o700); err != nil {
		return err
	}
	store, err := index.Open(v.ctx, v.path, v.logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(v.ctx)
	k := &indexBuilder{agentsIndex: v, store: store, told: make(chan indexInput, indexAhead), ctx: ctx, building: make(map[int]bool), sure: make(map[int]bool), passed: make(map[int]uint64), gathered: store.Batch(), begun: time.Now()}
	defer func() {
		cancel()
		k.read.Wait()
		v.set(nil, err)
		_ = store.Close()
	}()
	if k.goals, err = v.ends(ctx); err != nil {
		return err
	}
	if err = k.identify(ctx); err != nil {
		return err
	}
	for shard := range v.log.Shards() {
		k.building[shard], k.sure[shard] = true, store.Shard(shard).Seq == 0
		k.follow(shard)
	}
	k.publish()
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
	for shard := range k.log.Shards() {
		identity, seq := k.streams.identity(shard), k.store.Shard(shard).Seq
		if identity == "" {
			return fmt.Errorf("stream %d of the log could not be checked yet", shard)
		}
		before, err := k.store.ReadFrom(ctx, shard, identity)
		switch {
		case err != nil:
			return err
		case before == identity && seq > 0:
			k.streams.witness(shard, seq)
		case before != "" && before != identity && seq > 0:
			k.logger.Info("a stream of the log was restored; the index reads it from its beginning", "shard", shard)
			if err := k.store.Reset(ctx, shard); err != nil {
				return err
			}
		}
	}
	k.streams.witnessed()
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

// gather folds what comes into the batch, for a while if nobody asks: an agent's
// frames are written once if they come together.
func (k *indexBuilder) gather() error {
	var enough <-chan time.Time
	for !k.gathered.Full(k.most) {
		if k.gathered.Len() > 0 && len(k.told) == 0 && k.asked.Load() > 0 {
			return nil
		}
		select {
		case m := <-k.told:
			if err := k.take(m); err != nil {
				return err
			}
			if enough == nil && k.gathered.Len() > 0 {
				enough = time.After(indexGather)
			}
		case <-k.kick:
		case <-enough:
			return nil
		case <-k.store.Broken():
			return k.store.Damage()
		case <-k.ctx.Done():
			return k.ctx.Err()
		}
	}
	return nil
}

// take takes in what a reader gives.
func (k *indexBuilder) take(m indexInput) error {
	begun := time.Now()
	defer func() { k.worked += time.Since(begun) }()
	switch m.kind {
	case sameShard:
		k.sure[m.shard] = true
		k.publish()
	case noMessage:
		k.built(m.shard)
		if k.passed[m.shard] = m.Seq; k.gathered.Len() == 0 {
			k.publish()
		}
	case otherShard:
		return k.again(m.shard)
	case nextMessage:
		return k.add(m)
	}
	return nil
}

// add folds a message. One that cannot be read now is waited for, with all that
// was read behind it: left out it would be missed for good.
func (k *indexBuilder) add(m indexInput) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 2 * time.Second
	for tell := k.logger.Warn; ; tell = k.logger.Debug {
		err := k.gathered.Add(k.ctx, m.shard, m.Message)
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
		damage := new(eventlog.DamageError)
		if err == nil || errors.As(err, &damage) || errors.Is(err, messages.ErrLocked) || errors.Is(err, messages.ErrShredded) {
			return f, err
		}
		return nil, fmt.Errorf("%w: %w", index.ErrLater, err)
	}
}

func (k *indexBuilder) commit() error {
	frames := k.gathered.Len()
	if frames == 0 {
		return nil
	}
	begun := time.Now()
	err := k.gathered.Commit(k.ctx)
	k.worked += time.Since(begun)
	k.gathered = k.store.Batch()
	if err != nil {
		return err
	}
	k.frames += frames
	k.publish()
	return nil
}

// publish tells those who wait how far each shard is.
func (k *indexBuilder) publish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for shard := range k.log.Shards() {
		if !k.sure[shard] {
			continue
		}
		k.at[shard] = max(k.at[shard], k.store.Shard(shard).Seq)
		if k.gathered.Len() == 0 {
			k.at[shard] = max(k.at[shard], k.passed[shard])
		}
		if shard < len(k.goals) && k.at[shard] >= k.goals[shard] {
			k.built(shard)
		}
	}
	k.tell()
}

// again reads a shard from its beginning.
func (k *indexBuilder) again(shard int) error {
	if err := k.commit(); err != nil {
		return err
	}
	k.logger.Warn("a shard of the log is not the one that the index was built from; it is read again", "shard", shard, "sequence", k.store.Shard(shard).Seq)
	if err := k.store.Reset(k.ctx, shard); err != nil {
		return err
	}
	k.building[shard], k.sure[shard] = true, true // it is at its beginning
	k.forget(shard)
	k.publish()
	k.follow(shard)
	return nil
}

// forget takes back how far a shard was read.
func (k *indexBuilder) forget(shard int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.at, shard)
	delete(k.passed, shard)
}

// built notes that a shard has been read to its end.
func (k *indexBuilder) built(shard int) {
	if delete(k.building, shard); len(k.building) == 0 && k.frames > 0 {
		k.logger.Debug("the index has caught up", "frames", k.frames, "took", time.Since(k.begun).Round(time.Millisecond))
		k.frames = 0
	}
}

// restFor is how long to rest from what took so long on one of the machine's
// processors, of which that part is busy.
func restFor(worked time.Duration, busy float64, processors int) time.Duration {
	share := max((1-busy)*(1-busy)/indexShare, 1.0/indexLeast) * float64(processors)
	return max(0, time.Duration(float64(worked)/share)-worked)
}

// rest lets others work, in proportion to how long was worked, unless somebody
// asks.
func (k *indexBuilder) rest() {
	rest := restFor(k.worked, k.machine.look(), runtime.GOMAXPROCS(0))
	if len(k.building) > 0 {
		rest = min(rest, k.worked)
	}
	timer := time.NewTimer(min(rest, indexRestMost))
	defer timer.Stop()
	for k.asked.Load() == 0 {
		select {
		case <-timer.C:
			return
		case <-k.store.Broken(): // who gathers tells why
			return
		case <-k.kick:
		case <-k.ctx.Done():
			return
		}
	}
}

// follow reads a shard from where the file is, after it has seen that the log
// still holds what was read last.
func (k *indexBuilder) follow(shard int) {
	last := k.store.Shard(shard).Position
	k.read.Go(func() {
		pause := backoff.NewExponentialBackOff()
		pause.MaxInterval = 2 * time.Second
		for k.ctx.Err() == nil {
			err := k.readOn(shard, &last, pause.Reset)
			if errors.Is(err, eventlog.ErrElsewhere) && k.relied(shard) {
				k.deliver(indexInput{kind: otherShard, shard: shard})
				return
			}
			if k.ctx.Err() == nil {
				k.logger.Warn("a shard of the log cannot be read; it is tried again", "shard", shard, "error", err)
			}
			select {
			case <-time.After(pause.NextBackOff()):
			case <-k.ctx.Done():
			}
		}
	})
}

// relied reports whether a shard is what its stream should be. What the index knows of
// one that has lost messages is kept.
func (k *indexBuilder) relied(shard int) bool {
	return k.streams == nil || k.streams.relied(shard) == nil
}

// readOn reads a shard behind last, until something fails.
func (k *indexBuilder) readOn(shard int, last *index.Position, well func()) error {
	known := last.Seq == 0
	for m, err := range k.log.ReadShard(k.ctx, shard, max(last.Seq, 1)-1) {
		message := index.Message{Agent: m.Agent, Seq: m.Seq, ID: m.ID, Time: m.Time, Types: m.Types, Foreign: m.Foreign, Frame: later(m.Frame)}
		here := message.Position()
		none := err == nil && m.Agent == (messages.AgentID{})
		switch {
		case err != nil:
			return err
		case !known && !none && here.Same(*last):
			if known = true; !k.deliver(indexInput{kind: sameShard, shard: shard}) {
				return k.ctx.Err()
			}
			continue
		case !known || !none && here.Seq <= last.Seq:
			return eventlog.ErrElsewhere
		}
		well()
		next := indexInput{nextMessage, shard, message}
		if none {
			next.kind = noMessage
		} else {
			*last = here
		}
		if !k.deliver(next) {
			return k.ctx.Err()
		}
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
