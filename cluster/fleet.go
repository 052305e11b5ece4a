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
	"runtime"
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
	// asks: one in so many. Reading the log takes up to twice as much again, with
	// what the server does for it. While the views are built it is half a core.
	viewsShare = 60
	// viewsRestMost bounds a rest.
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

// toldOf is what a reader tells the keeper of its shard.
type toldOf struct {
	shard int
	fleet.Stored
	// here says that the shard is the one that was read, elsewhere that it is
	// another, idle that there is no more now.
	here, elsewhere, idle bool
}

// keeper is a file that is open.
type keeper struct {
	*views
	store *fleet.Store
	told  chan toldOf
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

	gathered *fleet.Batch
	worked   time.Duration // on it
}

// keep keeps the file until something fails.
func (v *views) keep(well func()) error {
	if err := os.MkdirAll(filepath.Dir(v.path), 0o700); err != nil {
		return err
	}
	store, err := fleet.Open(v.ctx, v.path, v.logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(v.ctx)
	k := &keeper{views: v, store: store, told: make(chan toldOf, viewsAhead), ctx: ctx, building: make(map[int]bool), sure: make(map[int]bool), passed: make(map[int]uint64), gathered: store.Batch(), begun: time.Now()}
	defer func() {
		cancel()
		k.read.Wait()
		v.set(nil, err)
		_ = store.Close()
	}()
	if k.goals, err = v.ends(ctx); err != nil {
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

// batch takes in what comes, commits it and rests.
func (k *keeper) batch() error {
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
func (k *keeper) gather() error {
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
				enough = time.After(viewsGather)
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

// take takes in what a reader tells.
func (k *keeper) take(m toldOf) error {
	begun := time.Now()
	defer func() { k.worked += time.Since(begun) }()
	switch {
	case m.here:
		k.sure[m.shard] = true
		k.publish()
	case m.idle:
		k.built(m.shard)
		if k.passed[m.shard] = m.Seq; k.gathered.Len() == 0 {
			k.publish()
		}
	case m.elsewhere:
		return k.again(m.shard)
	default:
		return k.add(m)
	}
	return nil
}

// add folds a message. One that cannot be read now is waited for, with all that
// was read behind it: left out it would be missed for good.
func (k *keeper) add(m toldOf) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 2 * time.Second
	for tell := k.logger.Warn; ; tell = k.logger.Debug {
		err := k.gathered.Add(k.ctx, m.shard, m.Stored)
		if !errors.Is(err, fleet.ErrLater) {
			return err
		}
		if k.ctx.Err() != nil {
			return k.ctx.Err()
		}
		tell("the views of the fleet wait for a frame that cannot be read now", "agent", m.Agent.String(), "error", err)
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
		return nil, fmt.Errorf("%w: %w", fleet.ErrLater, err)
	}
}

func (k *keeper) commit() error {
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
func (k *keeper) publish() {
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
func (k *keeper) again(shard int) error {
	if err := k.commit(); err != nil {
		return err
	}
	k.logger.Warn("a shard of the log is not the one that the views of the fleet were built from; it is read again", "shard", shard, "sequence", k.store.Shard(shard).Seq)
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
func (k *keeper) forget(shard int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.at, shard)
	delete(k.passed, shard)
}

// built notes that a shard has been read to its end.
func (k *keeper) built(shard int) {
	if delete(k.building, shard); len(k.building) == 0 && k.frames > 0 {
		k.logger.Debug("the views of the fleet have caught up", "frames", k.frames, "took", time.Since(k.begun).Round(time.Millisecond))
		k.frames = 0
	}
}

// rest lets others work, in proportion to how long was worked, unless somebody
// asks.
func (k *keeper) rest() {
	rest := k.worked*viewsShare/time.Duration(runtime.GOMAXPROCS(0)) - k.worked
	if len(k.building) > 0 {
		rest = min(rest, k.worked)
	}
	timer := time.NewTimer(min(rest, viewsRestMost))
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
func (k *keeper) follow(shard int) {
	last := k.store.Shard(shard).Position
	k.read.Go(func() {
		pause := backoff.NewExponentialBackOff()
		pause.MaxInterval = 2 * time.Second
		for k.ctx.Err() == nil {
			err := k.readOn(shard, &last, pause.Reset)
			if errors.Is(err, eventlog.ErrElsewhere) {
				k.tellOf(toldOf{shard: shard, elsewhere: true})
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

// readOn reads a shard behind last, until something fails.
func (k *keeper) readOn(shard int, last *fleet.Position, well func()) error {
	known := last.Seq == 0
	for m, err := range k.log.ReadShard(k.ctx, shard, max(last.Seq, 1)-1) {
		here := fleet.Position{Seq: m.Seq, Agent: m.Agent.Full(), Stored: m.Time}
		none := err == nil && m.Agent == (messages.AgentID{})
		switch {
		case err != nil:
			return err
		case !known && !none && here.Seq == last.Seq && here.Agent == last.Agent && here.Stored.Equal(last.Stored):
			if known = true; !k.tellOf(toldOf{shard: shard, here: true}) {
				return k.ctx.Err()
			}
			continue
		case !known || !none && here.Seq <= last.Seq:
			return eventlog.ErrElsewhere
		}
		well()
		told := toldOf{shard: shard, idle: none, Stored: fleet.Stored{Seq: m.Seq}}
		if !none {
			*last = here
			told.Stored = fleet.Stored{Agent: m.Agent, Seq: m.Seq, Time: m.Time, Types: m.Types, Foreign: m.Foreign, Frame: later(m.Frame)}
		}
		if !k.tellOf(told) {
			return k.ctx.Err()
		}
	}
	return k.ctx.Err()
}

func (k *keeper) tellOf(m toldOf) bool {
	select {
	case k.told <- m:
		return true
	case <-k.ctx.Done():
		return false
	}
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
	n.views.begin()
	n.onClose(n.views.close)
	return nil
}
