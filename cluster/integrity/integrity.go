// Package integrity watches over the streams of the log: it records how far they go,
// compares them with what is on record, reads them through in the background, and finds
// what is wrong with them.
//
// # Guarantees
//
//   - A stream that has less than is on record is checked again before its partitions are
//     owned. A loss that is confirmed has its agents answer that they are damaged; nothing
//     is written to it until a person accepts the loss.
//   - What a server may lose with its power is never called a loss.
//   - Reading through stops no agent, and reads no file that the server would cut.
package integrity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

const (
	// markEvery is how often a node records how far the log went, and checks again
	// what it has reason to.
	markEvery = 2 * time.Second
	// checkEvery is how often all streams are checked, and a node looks which are to be read
	// through. Where streams have several copies they are checked as often as their leaders
	// may change unseen.
	checkEvery = time.Minute
	// deposed is how long a leader that has been deposed may answer.
	deposed = 10 * time.Second
	// checkAgain is how long after a check that failed a stream in doubt is checked again.
	checkAgain = 250 * time.Millisecond
	// fresh is how long a check is believed by those who take partitions.
	fresh = time.Second
	// checkLimit bounds one check, and one round of marks, of which marksAtOnce are
	// written at the same time.
	checkLimit, marksAtOnce = 5 * time.Second, 8
)

// Config names what a Monitor watches over.
type Config struct {
	Log *natslog.Log
	// Conns are the connections that Log writes to.
	Conns    []*nats.Conn
	Subjects messages.Subjects
	// SyncInterval is how long a server may keep what it acknowledged from the disk. Zero:
	// not at all, or it is not known.
	SyncInterval time.Duration
}

// Monitor compares the streams of the log with what is on record of them, and records how
// far they go. It implements actors.Evidence. Safe for concurrent use.
type Monitor struct {
	server *embedded.Server // nil: the node has none of its own
	agents *projections.Agents
	logger *slog.Logger
	log    *natslog.Log
	// lag is how long ago a frame must have been stored to be recorded: what the
	// servers may lose with their power is no damage. Zero: it is on disk at once.
	lag time.Duration
	// recheck has run check what is in doubt.
	recheck chan struct{}
	// checking is held, one for each stream, while it is checked.
	checking []sync.Mutex
	scrubber *scrubber
	stop     func()

	mu sync.Mutex
	// partitions is nil until Follow.
	partitions Partitions
	// indexed reports that what the agents index knows of the streams is taken in.
	indexed bool
	shards  []shardState
	samples []sample // of the positions, oldest first
}

// Partitions are those that this node owns.
type Partitions interface {
	// Owns reports whether a partition is this node's, and whether it refuses commands
	// there.
	Owns(p messages.Partition) (owned, damaged bool)
	// GiveUp gives a partition up, to be taken again as its stream is then.
	GiveUp(p messages.Partition)
}

// shardState is what is known of one stream.
type shardState struct {
	checked time.Time
	// doubts counts what gave reason to check the stream before it is relied on; those up
	// to settled are.
	doubts, settled uint64
	// suspected is since when messages seem to be lost. Zero: they do not.
	suspected time.Time
	loss      *natslog.LossError // confirmed; nil: none
}

// New returns a Monitor that checks nothing until it is opened. server is the node's own; nil:
// it has none.
func New(server *embedded.Server, agents *projections.Agents, logger *slog.Logger) *Monitor {
	g := &Monitor{
		server: server, agents: agents, logger: logger, recheck: make(chan struct{}, 1),
		checking: make([]sync.Mutex, natslog.LogStreams), shards: make([]shardState, natslog.LogStreams),
	}
	g.scrubber = &scrubber{Monitor: g, limits: natslog.ScrubLimits{Bytes: scrubStep, Rate: scrubRate}}
	if server != nil {
		g.scrubber.broken = server.Broken
	}
	return g
}

// Open checks all streams, and begins to watch over them. cfg.Log reports its doubts to Doubt.
func (g *Monitor) Open(ctx context.Context, cfg Config) error {
	g.mu.Lock() // it may be in doubt already
	g.log, g.lag = cfg.Log, 2*cfg.SyncInterval
	g.mu.Unlock()
	if g.server != nil {
		if err := g.recordQuarantined(ctx, cfg.Subjects); err != nil {
			return err
		}
	}
	g.CheckAll(ctx)
	running, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { g.run(running) })
	wg.Go(func() { g.record(running) })
	wg.Go(func() { g.scrubber.run(running, time.Tick(checkEvery)) })
	for _, nc := range cfg.Conns {
		changed := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED)
		wg.Go(func() { g.watch(running, nc, changed) })
	}
	g.stop = func() {
		cancel()
		wg.Wait()
	}
	return nil
}

// Close stops that, and records how far the streams are. stopped reports whether the node's own
// server can be stopped in order after it, which forces to disk what it has.
func (g *Monitor) Close(stopped func() bool) {
	g.stop()
	if stopped() {
		g.lag = 0
	}
	g.markAll(context.Background(), g.onDisk(g.sample()))
}

// run checks until ctx ends.
func (g *Monitor) run(ctx context.Context) {
	all := checkEvery
	if g.log.Replicas() > 1 {
		all = deposed
	}
	again, check := time.Tick(markEvery), time.Tick(all)
	for {
		select {
		case <-again:
			g.align()
			g.checkEach(ctx, func(s *shardState) bool { return s.relied() != nil })
		case <-check:
			g.CheckAll(ctx)
		case <-g.recheck:
			g.checkEach(ctx, (*shardState).doubted)
		case <-ctx.Done():
			return
		}
	}
}

// watch has every stream checked after a connection was lost, until ctx ends. changed
// receives its status.
func (g *Monitor) watch(ctx context.Context, nc *nats.Conn, changed chan nats.Status) {
	defer nc.RemoveStatusListener(changed)
	for {
		select {
		case status, open := <-changed:
			switch {
			case !open:
				return
			case status == nats.RECONNECTING:
				g.doubtAll()
			default:
				g.checkSoon()
			}
		case <-ctx.Done():
			return
		}
	}
}

func (g *Monitor) doubtAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for shard := range g.shards {
		g.raise(shard)
	}
}

// Doubt has a stream checked before it is relied on again.
func (g *Monitor) Doubt(shard int) {
	g.mu.Lock()
	g.raise(shard)
	g.mu.Unlock()
	g.checkSoon()
}

// raise notes a doubt, and has nothing appended until it is settled. g.mu is held.
func (g *Monitor) raise(shard int) {
	g.shards[shard].doubts++
	if g.log != nil {
		g.log.Hold(shard, true)
	}
}

func (g *Monitor) checkSoon() {
	select {
	case g.recheck <- struct{}{}:
	default:
	}
}

// CheckAll checks all streams.
func (g *Monitor) CheckAll(ctx context.Context) {
	g.checkEach(ctx, func(*shardState) bool { return true })
}

// checkEach checks the streams of which which reports true, all at once.
func (g *Monitor) checkEach(ctx context.Context, which func(*shardState) bool) {
	var checks sync.WaitGroup
	g.mu.Lock()
	for shard := range g.shards {
		if which(&g.shards[shard]) {
			checks.Go(func() { _ = g.check(ctx, shard) })
		}
	}
	g.mu.Unlock()
	checks.Wait()
}

// check checks a stream and returns why its partitions must not be owned now. A loss
// that is confirmed is no reason: their agents answer that they are damaged.
func (g *Monitor) check(ctx context.Context, shard int) error {
	g.checking[shard].Lock()
	defer g.checking[shard].Unlock()
	return g.checkNow(ctx, shard)
}

// checkNow is check. g.checking of the stream is held.
func (g *Monitor) checkNow(ctx context.Context, shard int) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	g.mu.Lock()
	doubts, indexed := g.shards[shard].doubts, g.indexed
	g.mu.Unlock()
	if x := g.notOpened(g.log.ShardName(shard)); x != nil {
		if err := g.log.Recall(ctx, shard); err != nil {
			g.logger.Debug("what is on record of a stream of the log cannot be read now", "stream", x.Stream, "error", err)
		}
		return g.assess(shard, unopenedLoss(*x), doubts, time.Now())
	}
	err := g.log.Check(ctx, shard, g.lag == 0)
	var loss *natslog.LossError
	if err != nil && !errors.As(err, &loss) {
		g.logger.Debug("a stream of the log cannot be checked now", "stream", g.log.ShardName(shard), "error", err)
		time.AfterFunc(checkAgain, g.checkSoon)
		return fmt.Errorf("check whether the log is whole: %w", err)
	}
	if loss != nil && loss.Unacknowledged && indexed {
		if err := g.log.Void(ctx, shard, loss); err != nil {
			return fmt.Errorf("check whether the log is whole: %w", err)
		}
		loss = nil
	}
	return g.assess(shard, loss, doubts, time.Now())
}

// assess takes in what a check has found that began when there were so many doubts.
func (g *Monitor) assess(shard int, loss *natslog.LossError, doubts uint64, now time.Time) error {
	g.mu.Lock()
	s := &g.shards[shard]
	was := *s
	*s = shardState{checked: now, doubts: was.doubts, settled: doubts}
	switch {
	case loss == nil:
	case !loss.Unacknowledged && (loss.Settled || was.loss != nil || !was.suspected.IsZero() && now.Sub(was.suspected) >= deposed):
		s.loss = loss
	default:
		s.suspected = was.suspected
		if s.suspected.IsZero() {
			s.suspected = now
		}
	}
	is := *s
	if g.log != nil {
		g.log.Hold(shard, is.relied() != nil)
	}
	g.mu.Unlock()
	switch {
	case is.loss != nil && was.loss == nil:
		g.logger.Error("a stream of the log has lost messages; its agents answer that they are damaged, and nothing is written to it", "stream", loss.Stream, "known", loss.Known, "found", loss.Found, "missing", loss.Missing, "error", loss.Detail, "do", g.remedy(loss.Stream))
	case !is.suspected.IsZero() && was.suspected.IsZero():
		g.logger.Warn("a stream of the log seems to have lost messages; it is checked again before its partitions are owned", "stream", loss.Stream, "known", loss.Known, "found", loss.Found, "error", loss.Detail)
	case is.loss == nil && was.loss != nil:
		g.logger.Warn("a stream of the log is relied on again", "stream", was.loss.Stream)
	}
	g.align()
	if !is.suspected.IsZero() {
		return fmt.Errorf("stream %s seems to have lost messages (%s): it is checked again for %v", loss.Stream, loss.Detail, deposed)
	}
	return nil
}

// Prepare returns why a partition must not be taken now; it checks its stream if that
// was not just done.
func (g *Monitor) Prepare(ctx context.Context, p messages.Partition) error {
	shard := natslog.Shard(p)
	g.checking[shard].Lock()
	defer g.checking[shard].Unlock()
	g.mu.Lock()
	s := g.shards[shard]
	g.mu.Unlock()
	if !s.doubted() && s.suspected.IsZero() && time.Since(s.checked) < fresh {
		return nil
	}
	return g.checkNow(ctx, shard)
}

// doubted reports whether the stream must be checked before it is relied on.
func (s *shardState) doubted() bool { return s.doubts > s.settled }

var errChecked = errors.New("it is being checked for losses")

// Follow has the partitions of this node follow what is known of their streams.
func (g *Monitor) Follow(owned Partitions) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.partitions = owned
}

// align gives up partitions that are not owned as their streams are.
func (g *Monitor) align() {
	g.mu.Lock()
	partitions, shards := g.partitions, slices.Clone(g.shards)
	g.mu.Unlock()
	if partitions == nil {
		return
	}
	for p := range messages.Partition(messages.Partitions) {
		s := shards[natslog.Shard(p)]
		if owned, damaged := partitions.Owns(p); owned && (!s.suspected.IsZero() || damaged != (s.loss != nil)) {
			partitions.GiveUp(p)
		}
	}
}

// ElectionTimeout returns how long a deposed leader of the log's streams may answer.
func (g *Monitor) ElectionTimeout() time.Duration {
	if g.log.Replicas() > 1 {
		return deposed
	}
	return 0
}
