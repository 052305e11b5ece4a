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
	"github.com/reprise-dev/reprise/projections/fleet"
)

// views keeps the views of the fleet: it reads all shards of the log and folds
// them into a file. It implements gateway.Fleet.
type views struct {
	log    eventlog.Shards
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
	store *fleet.Store
	at    map[int]uint64 // of shards that are known to be those that were read
	why   error          // that there is no store
	moved chan struct{}  // closed when any of these changes
}

// streams is what the views ask, and know, about the streams that they are built from.
type streams interface {
	// identity distinguishes a stream from others of the same name.
	identity(shard int) string
	// witness takes in that a stream has held a message with a sequence.
	witness(shard int, seq uint64)
	// witnessed reports that all that the views know has been taken in.
	witnessed()
	// relied returns why a stream cannot be relied on now; nil: it can.
	relied(shard int) error
}

const (
	// viewsBatch is the most messages that one transaction takes in, viewsGather
	// for how long it gathers them when nobody asks.
	viewsBatch  = 2000
	viewsGather = time.Second
	// viewsAhead is how many messages are read ahead.
	viewsAhead = 256
	// viewsWait is how long a query waits for what the log holds, viewsBriefly how
	// long if the views lack more of it than one transaction takes in: on a node
	// that is so busy it would wait in vain.
	viewsWait    = 2 * time.Second
	viewsBriefly = 250 * time.Millisecond
	// viewsShare is the part of the machine that folding may take while nobody
	// asks, if the process does nothing else: one in so many. It falls with the
	// square of what the process leaves of the machine, down to one in viewsLeast.
	// Reading the log takes up to twice as much again, with what the server does
	// for it. While the views are built they may take half a core.
	viewsShare, viewsLeast = 6, 240
	// viewsRestMost bounds a rest: at least a batch is folded in so long.
	viewsRestMost = 5 * time.Second
)

func newViews(log eventlog.Shards, path string, logger *slog.Logger) *views {
	v := &views{log: log, path: path, logger: logger, most: viewsBatch, kick: make(chan struct{}, 1), at: make(map[int]uint64), moved: make(chan struct{})}
	v.why = errors.New("they are being opened")
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

func (v *views) begin() { v.running.Go(v.run) }

func (v *views) close() {
	v.cancel()
	v.running.Wait()
}

// run keeps the views for as long as the node lives; what goes wrong is tried
// again.
func (v *views) run() {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 10 * time.Second
	for v.ctx.Err() == nil {
		err := v.keep(pause.Reset)
		v.set(nil, err)
		if v.ctx.Err() != nil {
			return
		}
		v.logger.Warn("the views of the fleet are opened again", "file", v.path, "reason", err)
		if fleet.Damaged(err) {
			v.logger.Warn("the views of the fleet are thrown away and built again from the log", "file", v.path)
			if err := fleet.Remove(v.path); err != nil {
				v.logger.Warn("the file of the views cannot be removed", "error", err)
			}
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-v.ctx.Done():
		}
	}
}

// set tells those who wait how it stands.
func (v *views) set(store *fleet.Store, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store, v.why = store, why
	if store == nil {
		clear(v.at)
	}
	v.tell()
}

// tell wakes those who wait. v.mu is held.
func (v *views) tell() {
	close(v.moved)
	v.moved = make(chan struct{})
}

// Views gives the views with how many messages they are behind; if they are to be
// fresh, once they tell of all that the log holds now, or when that takes too long:
// after two seconds, or a quarter of one if they lack much.
func (v *views) Views(ctx context.Context, fresh bool) (*fleet.Store, uint64, error) {
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
	late, soon := time.NewTimer(viewsWait), time.NewTimer(viewsBriefly)
	defer late.Stop()
	defer soon.Stop()
	for most := uint64(math.MaxUint64); ; {
		store, behind, moved, why := v.behind(ends)
		if store != nil && (behind == 0 || behind > most || !fresh) {
			if behind > most { // the next one who asks is to find less lacking
				leave = func() { time.AfterFunc(viewsWait-viewsBriefly, func() { v.asked.Add(-1) }) }
			}
			return store, behind, nil
		}
		select {
		case <-moved:
			continue
		case <-soon.C:
			most = viewsBatch
			continue
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-late.C:
		}
		if store == nil {
			return nil, 0, messages.Refuse(messages.Unavailable, "the views of the fleet cannot be read now: %v; try again", why)
		}
		return store, behind, nil
	}
}

// behind is how many messages the views lack of those up to ends.
func (v *views) behind(ends []uint64) (store *fleet.Store, behind uint64, moved <-chan struct{}, why error) {
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
func (v *views) whole() (*fleet.Store, error) {
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
func (v *views) ends(ctx context.Context) ([]uint64, error) {
	ends, errs := make([]uint64, v.log.Shards()), make([]error, v.log.Shards())
	var wg sync.WaitGroup
	for shard := range ends {
		wg.Go(func() { ends[shard], errs[shard] = v.log.ShardEnd(ctx, shard) })
	}
	wg.Wait()
	return ends, errors.Join(errs...)
}

// Unreadable is how many frames of a tenant's agents the views leave out since
// they could not be read.
func (v *views) Unreadable(tenant string) int {
	v.mu.Lock()
	store := v.store
	v.mu.Unlock()
	if store == nil {
		return 0
	}
	return store.Unreadable(tenant)
}

// Places tells how far each shard was read.
func (v *views) Places(ctx context.Context) ([]gateway.Place, error) {
	ends, err := v.ends(ctx)
	if err != nil {
		return nil, messages.Refuse(messages.Unavailable, "the log cannot be read now: %v", err)
	}
	v.mu.Lock()
	read := maps.Clone(v.at)
	store, why := v.whole()
	v.mu.Unlock()
	if store == nil {
		return nil, messages.Refuse(messages.Unavailable, "the views of the fleet cannot be read now: %v; try again", why)
	}
	shards, err := store.Shards(ctx)
	if err != nil {
		return nil, err
	}
	places := make([]gateway.Place, len(ends))
	for shard, end := range ends {
		at := shards[shard]
		places[shard] = gateway.Place{
			File: v.path, Shard: shard, Position: at.Seq, End: end, Behind: end - min(end, max(at.Seq, read[shard])), Unreadable: at.Unreadable,
			Stored: at.Stored.UTC(), Applied: at.Applied.UTC(),
		}
	}
	return places, nil
}

const (
	// viewsName is the name of the file in its folder.
	viewsName = "fleet.db"
	// viewsTemporary is how the names of temporary folders begin.
	viewsTemporary = "reprise-views-"
)

// openViews begins to keep the views of the fleet: in a folder of the node, where
// it has none in a temporary one, and where what is stored is encrypted in memory.
func (n *Node) openViews(context.Context) error {
	dir := n.cfg.Views
	if dir == "" && n.server != nil {
		dir = filepath.Join(n.cfg.Data, "views")
	}
	switch {
	case n.keys != nil && dir != "": // one may be left of a time without encryption
		if err := fleet.Remove(filepath.Join(dir, viewsName)); err != nil {
			return fmt.Errorf("remove the views of the fleet, which are not encrypted: %w", err)
		}
		fallthrough
	case n.keys != nil:
		return n.keepViews("")
	case dir == "":
		if left := fleet.Sweep(filepath.Join(os.TempDir(), viewsTemporary+"*"), viewsName); left > 0 {
			n.cfg.Logger.Info("views of the fleet that were left by killed processes are removed", "folders", left)
		}
		temporary, err := os.MkdirTemp("", viewsTemporary)
		if err != nil {
			return fmt.Errorf("make a folder for the views of the fleet: %w", err)
		}
		n.onClose(func() { _ = os.RemoveAll(temporary) })
		dir = temporary
	}
	return n.keepViews(filepath.Join(dir, viewsName))
}

func (n *Node) keepViews(path string) error {
	n.views = newViews(n.log, path, n.cfg.Logger)
	n.views.streams = n.integrity
	n.views.begin()
	n.onClose(n.views.close)
	return nil
}
