package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

// agentsIndex keeps the index of the agents of this node's partitions: it folds the messages that
// their owner receives into a file, and reads the log where these are not all. What the file has
// of a partition that the node loses stays there, and is not shown. It implements gateway.Index.
type agentsIndex struct {
	log partitionLog
	// blobs hold what imported agents did before, and what forks have copied of their parents. Nil: there
	// are no such agents.
	blobs  eventlog.Blobs
	path   string
	logger *slog.Logger
	// most is the most messages of a transaction.
	most int
	// streams is what is known of the streams that hold the partitions. Nil: nothing is.
	streams streams

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	// asked is how many wait for what the log holds; kick has what is new folded at once, in place
	// of in a while.
	asked atomic.Int32
	kick  chan struct{}

	mu         sync.Mutex
	store      *index.Store
	why        error         // that there is no store
	moved      chan struct{} // closed when any of these changes
	partitions [messages.Partitions]indexing
	queued     int // messages in all queues
}

// partitionLog is what the index reads of the log itself.
type partitionLog interface {
	eventlog.Reader
	ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error]
}

// indexing is what the index knows of a partition.
type indexing struct {
	// heard reports whether its owner, this node, receives all that comes; life counts how often
	// that began.
	heard bool
	life  int
	// end is the sequence of the newest message that is known.
	end uint64
	// gap is up to where the log must be read. What comes behind it is in queue.
	gap   uint64
	queue []eventlog.Stored
	// at is up to where all was applied; 0 if the file may be of another log.
	at uint64
	// ready reports whether all was applied that there was when the partition came.
	ready bool
}

// streams is what the index asks, and knows, about the streams that it is built from.
type streams interface {
	// Identity distinguishes a stream from others of the same name.
	Identity(shard int) string
	// Witness takes in that a stream has held a message with a sequence.
	Witness(shard int, seq uint64)
	// Witnessed reports that all that the index knows has been taken in.
	Witnessed()
	// Relied returns why a stream cannot be relied on now; nil: it can.
	Relied(shard int) error
}

const (
	// indexBatch is how many messages a transaction takes in, indexGather for how long they
	// gather while no query waits.
	indexBatch  = 2000
	indexGather = time.Second
	// indexQueue is how many messages wait in memory to be folded, at most; what comes beyond is
	// read from the log. indexAhead is how many are read ahead.
	indexQueue, indexAhead = 2 * indexBatch, 256
	// indexWait is how long a query waits for what the log holds.
	indexWait = 2 * time.Second
)

func newAgentsIndex(log partitionLog, path string, logger *slog.Logger) *agentsIndex {
	v := &agentsIndex{log: log, path: path, logger: logger, most: indexBatch, kick: make(chan struct{}, 1), moved: make(chan struct{})}
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

// set changes what is there to be asked. What was queued for a store before it is read again.
func (v *agentsIndex) set(store *index.Store, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store, v.why = store, why
	for p := range v.partitions {
		x := &v.partitions[p]
		v.lose(x, x.end)
		x.at, x.ready = 0, false
	}
	v.changed()
}

// changed wakes those who wait. v.mu is held.
func (v *agentsIndex) changed() {
	close(v.moved)
	v.moved = make(chan struct{})
}

// poke has the index look for what is new.
func (v *agentsIndex) poke() {
	select {
	case v.kick <- struct{}{}:
	default:
	}
}

// lose has the log read up to a sequence, in place of what is queued. v.mu is held.
func (v *agentsIndex) lose(x *indexing, upto uint64) {
	v.queued -= len(x.queue)
	x.queue, x.gap = nil, upto
}

// hears takes in a head of a partition: first those of the past, until an empty one ends them. One
// without its frame is read from the log.
func (v *agentsIndex) hears(p messages.Partition, m eventlog.Stored) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := &v.partitions[p]
	x.end = max(x.end, m.Seq)
	switch {
	case m.Agent == (messages.AgentID{}):
		x.heard, x.life = true, x.life+1
		v.lose(x, x.end)
	case !x.heard:
		return
	case m.Frame == nil || v.queued == indexQueue:
		v.lose(x, m.Seq)
	default:
		x.queue = append(x.queue, m)
		v.queued++
		if v.queued < v.most && v.asked.Load() == 0 {
			return // it gathers
		}
	}
	v.poke()
}

// forgets notes that a partition is not this node's any more, or that its heads are read again: it is
// not shown before it was read up to where they end.
func (v *agentsIndex) forgets(p messages.Partition) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := &v.partitions[p]
	v.lose(x, 0)
	*x = indexing{life: x.life}
	v.changed()
}

// committed notes what this node has appended to a partition: its head follows.
func (v *agentsIndex) committed(p messages.Partition, seq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := &v.partitions[p]; x.heard {
		x.end = max(x.end, seq)
	}
}

// indexed is an observer of agents that notes in the index what they commit.
type indexed struct {
	actors.Observer
	index *agentsIndex
}

// Committed notes a frame, and hands it on.
func (o indexed) Committed(c actors.Commit) {
	o.index.committed(c.Agent.Partition(), c.Seq)
	o.Observer.Committed(c)
}

// Index returns the index with those of some partitions that it can answer for, and what it lacks of
// them. If it is to be fresh it waits until it has all that they hold now, but not for long; else it
// lacks those that it cannot answer for: a page that follows shows what the first one has waited for.
func (v *agentsIndex) Index(ctx context.Context, of []messages.Partition, fresh bool) (*index.Store, []messages.Partition, []messages.Uncovered, error) {
	v.asked.Add(1)
	defer v.asked.Add(-1)
	v.poke()
	var ends [messages.Partitions]uint64
	if fresh {
		ends = v.ends()
	}
	late := time.NewTimer(indexWait)
	defer late.Stop()
	for {
		store, ready, lacks, moved, why := v.lacking(of, ends)
		if store != nil && (len(lacks) == 0 || !fresh) {
			return store, ready, lacks, nil
		}
		select {
		case <-moved:
			continue
		case <-ctx.Done():
			return nil, nil, nil, ctx.Err()
		case <-late.C:
		}
		if store == nil {
			return nil, nil, nil, messages.Refuse(messages.Unavailable, "the index cannot be read now: %v; try again", why)
		}
		return store, ready, lacks, nil
	}
}

// ends returns the sequences of the newest messages that are known.
func (v *agentsIndex) ends() (ends [messages.Partitions]uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p := range ends {
		ends[p] = v.partitions[p].end
	}
	return ends
}

// lacking is what the index lacks of partitions up to ends.
func (v *agentsIndex) lacking(of []messages.Partition, ends [messages.Partitions]uint64) (store *index.Store, ready []messages.Partition, lacks []messages.Uncovered, moved <-chan struct{}, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range of {
		x := &v.partitions[p]
		if x.ready {
			ready = append(ready, p)
		}
		if !x.ready || x.at < ends[p] {
			lacks = append(lacks, messages.Uncovered{Partition: p, Reason: v.unread(p, x), Indexed: x.at, End: max(ends[p], x.end)})
		}
	}
	store, why = v.whole()
	return store, ready, lacks, v.moved, why
}

// unread returns why nothing of a partition can be shown; empty if that is a matter of time.
func (v *agentsIndex) unread(p messages.Partition, x *indexing) string {
	if x.ready || v.streams == nil {
		return ""
	}
	if loss, lost := errors.AsType[*natslog.LossError](v.streams.Relied(natslog.Shard(p))); lost {
		return fmt.Sprintf("cannot be read: %v", loss)
	}
	return ""
}

// whole returns the store, unless it is known to be damaged, or why there is none. v.mu is held.
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

// behind is how far the index is behind what is known of the partitions of this node, as the sum of
// distances between sequences.
func (v *agentsIndex) behind() (behind uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, x := range v.partitions {
		if x.heard {
			behind += x.end - min(x.end, x.at)
		}
	}
	return behind
}

// Unreadable is how many frames of a tenant's agents in this node's partitions the index leaves out
// since they could not be read.
func (v *agentsIndex) Unreadable(tenant string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store == nil {
		return 0
	}
	return v.store.Unreadable(tenant, func(p int) bool { return v.partitions[p].heard })
}

// Positions returns how far partitions were read.
func (v *agentsIndex) Positions(ctx context.Context, of []messages.Partition) ([]gateway.IndexPosition, error) {
	v.mu.Lock()
	known := v.partitions
	store, why := v.whole()
	v.mu.Unlock()
	if store == nil {
		return nil, messages.Refuse(messages.Unavailable, "the index cannot be read now: %v; try again", why)
	}
	read, err := store.Shards(ctx)
	if err != nil {
		return nil, err
	}
	positions := make([]gateway.IndexPosition, len(of))
	for i, p := range of {
		at, x := read[int(p)], known[p]
		positions[i] = gateway.IndexPosition{
			File: v.path, Partition: p, Position: at.Seq, End: x.end, Behind: x.end - min(x.end, max(at.Seq, x.at)), Unreadable: at.Unreadable,
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
	n.index.streams, n.index.blobs = n.integrity, n.log
	n.index.begin()
	n.onClose(n.index.close)
	return nil
}
