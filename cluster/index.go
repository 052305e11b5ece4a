package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

// agentsIndex keeps the index of all agents: it reads all shards of the log and folds
// them into a file. It implements gateway.Index.
type agentsIndex struct {
	log    eventlog.Feed
	path   string
	logger *slog.Logger
	// most is the most messages of a transaction.
	most int
	// streams is what is known of the streams that the shards are. Nil: nothing is.
	streams streams

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	// asked is how many wait for what the log holds; kick ends a rest.
	asked atomic.Int32
	kick  chan struct{}

	mu    sync.Mutex
	store *index.Store
	at    map[int]uint64 // of shards that are known to be those that were read
	why   error          // that there is no store
	moved chan struct{}  // closed when any of these changes
}

// streams is what the index asks, and knows, about the streams that it is built from.
type streams interface {
	// identity distinguishes a stream from others of the same name.
	identity(shard int) string
	// witness takes in that a stream has held a message with a sequence.
	witness(shard int, seq uint64)
	// witnessed reports that all that the index knows has been taken in.
	witnessed()
	// relied returns why a stream cannot be relied on now; nil: it can.
	relied(shard int) error
}

const (
	// indexBatch is the most messages that one transaction takes in, indexGather
	// for how long it gathers them when nobody asks.
	indexBatch  = 2000
	indexGather = time.Second
	// indexAhead is how many messages are read ahead.
	indexAhead = 256
	// indexWait is how long a query waits for what the log holds, indexBriefly how
	// long if the index lacks more of it than one transaction takes in: on a node
	// that is so busy it would wait in vain.
	indexWait    = 2 * time.Second
	indexBriefly = 250 * time.Millisecond
	// indexShare is the part of the machine that folding may take while nobody
	// asks, if the process does nothing else: one in so many. It falls with the
	// square of what the process leaves of the machine, down to one in indexLeast.
	// Reading the log takes up to twice as much again, with what the server does
	// for it. While the index is built it may take half a core.
	indexShare, indexLeast = 6, 240
	// indexRestMost bounds a rest: at least a batch is folded in so long.
	indexRestMost = 5 * time.Second
)

func newAgentsIndex(log eventlog.Feed, path string, logger *slog.Logger) *agentsIndex {
	v := &agentsIndex{log: log, path: path, logger: logger, most: indexBatch, kick: make(chan struct{}, 1), at: make(map[int]uint64), moved: make(chan struct{})}
	v.why = errors.New("it is being opened")
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

func (v *agentsIndex) begin() { v.running.Go(v.run) }

func (v *agentsIndex) close() {
	v.cancel()
	v.running.Wait()
}

// run keeps the index for as long as the node lives, and opens it again after an error.
func (v *agentsIndex) run() {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 10 * time.Second
	for v.ctx.Err() == nil {
		err := v.keep(pause.Reset)
		v.set(nil, err)
		if v.ctx.Err() != nil {
			return
		}
		v.logger.Warn("the index is opened again", "file", v.path, "reason", err)
		if index.Damaged(err) {
			v.logger.Warn("the index is dropped and built again from the log", "file", v.path)
			if err := index.Remove(v.path); err != nil {
				v.logger.Warn("the file of the index cannot be removed", "error", err)
			}
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-v.ctx.Done():
		}
	}
}

// set tells those who wait how it stands.
func (v *agentsIndex) set(store *index.Store, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store, v.why = store, why
	if store == nil {
		clear(v.at)
	}
	v.tell()
}

// tell wakes those who wait. v.mu is held.
func (v *agentsIndex) tell() {
	close(v.moved)
	v.moved = make(chan struct{})
}

// Index returns the index with how many messages it is behind; if it is to be
// fresh, once it has all that the log holds now, or when that takes too long:
// after two seconds, or a quarter of one if it lacks much.
func (v *agentsIndex) Index(ctx context.Context, fresh bool) (*index.Store, uint64, error) {
	v.asked.Add(1)
	leave := func() { v.asked.Add(-1) }
	defer func() { leave() }()
	select {
	case v.kick <- struct{}{}:
	default:
	}
	ends, err := v.ends(ctx)
	if err != nil {
		return nil, 0, messages.Refuse(messages.Unavailable, "the log cannot be read now: %v", err)
	}
	late, soon := time.NewTimer(indexWait), time.NewTimer(indexBriefly)
	defer late.Stop()
	defer soon.Stop()
	for most := uint64(math.MaxUint64); ; {
		store, behind, moved, why := v.behind(ends)
		if store != nil && (behind == 0 || behind > most || !fresh) {
			if behind > most { // the next one who asks is to find less lacking
				leave = func() { time.AfterFunc(indexWait-indexBriefly, func() { v.asked.Add(-1) }) }
			}
			return store, behind, nil
		}
		select {
		case <-moved:
			continue
		case <-soon.C:
			most = indexBatch
			continue
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-late.C:
		}
		if store == nil {
			return nil, 0, messages.Refuse(messages.Unavailable, "the index cannot be read now: %v; try again", why)
		}
		return store, behind, nil
	}
}

// behind is how many messages the index lacks of those up to ends.
func (v *agentsIndex) behind(ends []uint64) (store *index.Store, behind uint64, moved <-chan struct{}, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for shard, end := range ends {
		at, sure := v.at[shard]
		if !sure {
			end = max(end, 1)
		}
		behind += end - min(end, at)
	}
	store, why = v.whole()
	return store, behind, v.moved, why
}

// whole gives the store, unless it is known to be damaged, or why there is none.
// v.mu is held.
func (v *agentsIndex) whole() (*index.Store, error) {
	if v.store == nil {
		return nil, v.why
	}
	select {
	case <-v.store.Broken():
		return nil, v.store.Damage()
	default:
		return v.store, nil
	}
}

// ends are the sequences of the shards' newest messages.
func (v *agentsIndex) ends(ctx context.Context) ([]uint64, error) {
	ends, errs := make([]uint64, v.log.Shards()), make([]error, v.log.Shards())
	var wg sync.WaitGroup
	for shard := range ends {
		wg.Go(func() { ends[shard], errs[shard] = v.log.ShardEnd(ctx, shard) })
	}
	wg.Wait()
	return ends, errors.Join(errs...)
}

// Unreadable is how many frames of a tenant's agents the index leaves out since
// they could not be read.
func (v *agentsIndex) Unreadable(tenant string) int {
	v.mu.Lock()
	store := v.store
	v.mu.Unlock()
	if store == nil {
		return 0
	}
	return store.Unreadable(tenant, nil)
}

// Positions returns how far each shard was read.
func (v *agentsIndex) Positions(ctx context.Context) ([]gateway.IndexPosition, error) {
	ends, err := v.ends(ctx)
	if err != nil {
		return nil, messages.Refuse(messages.Unavailable, "the log cannot be read now: %v", err)
	}
	v.mu.Lock()
	read := maps.Clone(v.at)
	store, why := v.whole()
	v.mu.Unlock()
	if store == nil {
		return nil, messages.Refuse(messages.Unavailable, "the index cannot be read now: %v; try again", why)
	}
	shards, err := store.Shards(ctx)
	if err != nil {
		return nil, err
	}
	positions := make([]gateway.IndexPosition, len(ends))
	for shard, end := range ends {
		at := shards[shard]
		positions[shard] = gateway.IndexPosition{
			File: v.path, Shard: shard, Position: at.Seq, End: end, Behind: end - min(end, max(at.Seq, read[shard])), Unreadable: at.Unreadable,
			Stored: at.Stored.UTC(), Applied: at.Applied.UTC(),
		}
	}
	return positions, nil
}

const (
	// indexName is the name of the file in its folder.
	indexName = "index.db"
	// indexTemporary is how the names of temporary folders begin.
	indexTemporary = "reprise-index-"
)

// openIndex begins to keep the index: in a folder of the node, where
// it has none in a temporary one, and where what is stored is encrypted in memory.
func (n *Node) openIndex(context.Context) error {
	dir := n.cfg.IndexDir
	if dir == "" && n.server != nil {
		dir = filepath.Join(n.cfg.Data, "index")
	}
	switch {
	case n.keys != nil && dir != "": // one may be left of a time without encryption
		if err := index.Remove(filepath.Join(dir, indexName)); err != nil {
			return fmt.Errorf("remove the index, which is not encrypted: %w", err)
		}
		fallthrough
	case n.keys != nil:
		return n.keepIndex("")
	case dir == "":
		if left := index.Sweep(filepath.Join(os.TempDir(), indexTemporary+"*"), indexName); left > 0 {
			n.cfg.Logger.Info("indexes left by killed processes were removed", "folders", left)
		}
		temporary, err := os.MkdirTemp("", indexTemporary)
		if err != nil {
			return fmt.Errorf("make a folder for the index: %w", err)
		}
		n.onClose(func() { _ = os.RemoveAll(temporary) })
		dir = temporary
	}
	return n.keepIndex(filepath.Join(dir, indexName))
}

func (n *Node) keepIndex(path string) error {
	n.index = newAgentsIndex(n.log, path, n.cfg.Logger)
	n.index.streams = n.integrity
	n.index.begin()
	n.onClose(n.index.close)
	return nil
}
