package actors_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/messages"
)

// world is the environment of a simulated run: nodes that start and end on one log, models
// and tools that act by the dice, and a ledger that survives crashes.
type world struct {
	t         *testing.T
	seed      uint64
	stage     *actorstest.Stage
	faulty    *logtest.Faulty
	snapshots *faultySnapshots
	agents    []messages.AgentID
	texts     *texts
	reader    *actors.Runtime // of what is stored
	cfg       actors.Config   // shared by all nodes

	faultsEnd chan struct{} // closed when there are no more faults and delays
	reads     atomic.Uint64
	inFlight  sync.WaitGroup

	mu       sync.Mutex
	hosts    []*host
	jobs     []*job
	runs     map[string]int // calls that began, by their unique names
	commands map[string][]*sent
	views    map[messages.AgentID]*view
	wrong    []string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, seed: seed, stage: actorstest.New(t, nil), faultsEnd: make(chan struct{}), texts: newTexts(),
		runs: make(map[string]int), commands: make(map[string][]*sent), views: make(map[messages.AgentID]*view),
	}
	for _, key := range []string{"ada", "bob"} {
		w.agents = append(w.agents, actorstest.Agent("test", key))
	}
	r := w.dice("log")
	of := []logtest.Fault{
		logtest.Pass, logtest.Pass, logtest.Pass, logtest.Pass, logtest.LoseRequest, logtest.LoseAck, logtest.Delay, logtest.Double,
		logtest.SlowRequest, logtest.SlowAck, logtest.Timeout, logtest.SlowLoseAck, logtest.SlowDelivery,
	}
	w.faulty = logtest.NewFaulty(w.stage.Store(), logtest.PlanOf(seed, r.IntN(3)*200, of...)...)
	w.faulty.Lag = time.Duration(1+r.IntN(4000)) * time.Millisecond
	w.snapshots = newFaultySnapshots(w.dice("attic"))
	w.snapshots.slow = true
	w.reader = newReader(w)
	w.cfg = w.config(w.dice("config"))
	for _, a := range w.agents {
		w.views[a] = w.newView(a)
	}
	return w
}

// dice returns the dice for one thing. They are the same in every run of the seed, whatever
// else happens.
func (w *world) dice(of ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, of...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) faultless() bool {
	select {
	case <-w.faultsEnd:
		return true
	default:
		return false
	}
}

// fail records a broken rule. Hold mu.
func (w *world) fail(format string, args ...any) {
	if len(w.wrong) < 5 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wrong) > 0
}

// host is a node of the world, with its store and its observer.
type host struct {
	eventlog.Store
	w    *world
	node *actorstest.Node
	dead atomic.Bool
	// crashed reports that the node did not stop cleanly.
	crashed atomic.Bool
	gone    chan struct{}            // closed when the node has ended
	met     map[messages.AgentID]int // number of frames when the node started

	mu     sync.Mutex
	unsure map[messages.AgentID]bool // its newest append may or may not be stored
	fenced map[messages.AgentID]bool // it received notice of a newer owner
}

// start adds a node, which activates the agents that owe work.
func (w *world) start() *host {
	of := w.stage.Store()
	h := &host{
		Store: eventlog.Store{Log: w.faulty, Blobs: of.Blobs, Snapshots: w.snapshots, Definitions: of.Definitions}, w: w, gone: make(chan struct{}), met: make(map[messages.AgentID]int),
		unsure: make(map[messages.AgentID]bool), fenced: make(map[messages.AgentID]bool),
	}
	cfg := w.cfg
	cfg.Store, cfg.Observer = eventlog.Store{Log: &capped{h}, Blobs: h, Snapshots: h, Definitions: h}, h
	if w.dice("limit").IntN(4) > 0 { // else the log takes less than its nodes were started with
		cfg.MaxFrame = mostBytes
	}
	h.equip(&cfg)
	h.node = w.stage.Start(cfg)
	for _, a := range w.agents {
		h.met[a] = len(w.stage.Entries(a))
	}
	w.mu.Lock()
	w.hosts = append(w.hosts, h)
	w.mu.Unlock()
	for _, a := range w.agents {
		if entries := w.stage.Entries(a)[:h.met[a]]; len(entries) > 0 && entries[len(entries)-1].Summary.Open {
			w.activate(h, a)
		}
	}
	return h
}

// newest returns the node that owns all agents, though it may not have taken over yet.
func (w *world) newest() *host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[len(w.hosts)-1]
}

// running returns the nodes that have not ended, oldest first.
func (w *world) running() (list []*host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		if !h.dead.Load() {
			list = append(list, h)
		}
	}
	return list
}

// end ends the node by a crash or a clean stop.
func (h *host) end(crash bool) {
	if h.dead.Swap(true) {
		return
	}
	if crash {
		h.crashed.Store(true)
		h.node.Crash()
	} else {
		h.node.Stop()
	}
	close(h.gone)
}

// mostBytes is the largest frame that the log accepts.
const mostBytes = 24 << 10

// capped is a log that rejects large frames.
type capped struct{ *host }

// Append rejects a frame that is too large.
func (c *capped) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if len(e.Bytes) > mostBytes {
		return eventlog.Position{}, fmt.Errorf("%d bytes: %w", len(e.Bytes), eventlog.ErrTooLarge)
	}
	return c.host.Append(ctx, e)
}

// Append appends, and marks what its result shows about the agent's owner.
func (h *host) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	h.checkBlobs(e)
	h.mark(h.unsure, e.Agent, true)
	tail, err := h.Store.Append(ctx, e)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) && conflict.Actual.Epoch > e.Frame.Epoch {
		h.mark(h.fenced, e.Agent, true)
	}
	if err == nil || conflict != nil {
		h.mark(h.unsure, e.Agent, false)
	}
	return tail, err
}

func (h *host) mark(in map[messages.AgentID]bool, a messages.AgentID, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in[a] = is
}

func (h *host) marked(in map[messages.AgentID]bool, a messages.AgentID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return in[a]
}

var errNoConnection = errors.New("no connection")

func (h *host) unreadable() bool {
	return !h.w.faultless() && h.w.dice("read", h.w.reads.Add(1)).IntN(12) == 0
}

// Read reads, or fails.
func (h *host) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	if h.unreadable() {
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errNoConnection) }
	}
	return h.Store.Read(ctx, a, r)
}

// ReadAhead returns newest frames, some of them outdated.
func (h *host) ReadAhead(ctx context.Context, p messages.Partition, agents []messages.AgentID) iter.Seq2[eventlog.Newest, error] {
	return func(yield func(eventlog.Newest, error) bool) {
		for newest, err := range h.Store.ReadAhead(ctx, p, agents) {
			if h.unreadable() {
				newest, err = eventlog.Newest{}, errNoConnection
			}
			if err == nil && !h.w.faultless() && h.w.dice("ahead", h.w.reads.Add(1)).IntN(4) == 0 {
				newest = h.older(ctx, newest)
			}
			if !yield(newest, err) || err != nil {
				return
			}
		}
	}
}

// older returns the frame before this one, or this one if it is the first.
func (h *host) older(ctx context.Context, newest eventlog.Newest) eventlog.Newest {
	old := newest
	for rec, err := range h.Store.Read(ctx, newest.Agent, eventlog.Range{Upto: &newest}) {
		if err == nil && rec.Seq < newest.Seq {
			old.Seq, old.Last, old.Size = rec.Seq, rec.Frame.Last(), rec.Size
		}
	}
	return old
}

// Head reads the tail, or fails.
func (h *host) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	if h.unreadable() {
		return eventlog.Position{}, errNoConnection
	}
	return h.Store.Head(ctx, a)
}

func (h *host) Committed(actors.Commit) {}
func (h *host) Owed([]actors.Reply)     {}
func (h *host) Delta(actors.Delta)      {}

func (*host) Streaming(messages.AgentID, map[string]messages.Stream) {}

// Fenced marks the agent as owned by a newer owner.
func (h *host) Fenced(a messages.AgentID, _ messages.Epoch) { h.mark(h.fenced, a, true) }

// job is a running model call, tool call, reconcile or hook.
type job struct {
	host     *host
	agent    messages.AgentID
	what     string // model, tool, check or hook
	call     messages.CallID
	attempt  int
	afterEnd bool // a hook of a turn that has ended, which may outlast the owner
	ctx      context.Context
	released chan struct{}
	once     sync.Once
}

var errGone = errors.New("the process has ended")

// begin adds a job to the ledger. name must be unique; intended reports whether the log has
// the intent.
func (h *host) begin(ctx context.Context, j *job, name string, intended func(*view) bool) (*job, error) {
	if h.dead.Load() {
		return nil, errGone
	}
	w := h.w
	j.host, j.ctx, j.released = h, ctx, make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !intended(w.fold(j.agent)) {
		w.fail("%s: %s began before its intent was stored, on the node of epoch %d", j.agent, name, h.node.Epoch())
	}
	if w.runs[name]++; w.runs[name] > 1 && j.what != "hook" && j.what != "check" {
		w.fail("%s: got two starts of %s, want one", j.agent, name)
	}
	w.jobs = append(w.jobs, j)
	return j, nil
}

// end removes the job from those that run.
func (j *job) end() {
	w := j.host.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = slices.DeleteFunc(w.jobs, func(o *job) bool { return o == j })
}

// release lets a held job continue.
func (j *job) release() { j.once.Do(func() { close(j.released) }) }

// delay blocks by the dice: not at all, for some time, until the job is released, or until
// then without regard to its context.
func (j *job) delay(r *rand.Rand) error {
	w, done := j.host.w, j.ctx.Done()
	var after <-chan time.Time
	switch n := r.IntN(14); {
	case w.faultless() || n < 6:
		return j.ctx.Err()
	case n < 10:
		after = time.After(time.Duration(r.IntN(5000)) * time.Millisecond)
	case n < 12:
		done = nil
	}
	select {
	case <-after:
	case <-j.released:
	case <-w.faultsEnd:
	case <-j.host.gone:
		return errGone
	case <-done:
		return j.ctx.Err()
	}
	return nil
}
