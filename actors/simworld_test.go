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

// world is where a life takes place: nodes that come and go on one log, models
// and tools that do as the dice have it, and a ledger that no crash takes away.
type world struct {
	t      *testing.T
	seed   uint64
	stage  *actorstest.Stage
	faulty *logtest.Faulty
	attic  *attic
	agents []messages.AgentID
	texts  *texts
	cfg    actors.Config // of every node, but for what is the node's own

	calmed chan struct{} // closed when everything answers well and at once
	reads  atomic.Uint64
	asking sync.WaitGroup

	mu    sync.Mutex
	hosts []*host
	jobs  []*job
	runs  map[string]int // begun calls, by what names them for good
	asks  map[string][]*sent
	views map[messages.AgentID]*view
	wrong []string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, seed: seed, stage: actorstest.New(t, nil), calmed: make(chan struct{}), texts: newTexts(),
		runs: make(map[string]int), asks: make(map[string][]*sent), views: make(map[messages.AgentID]*view),
	}
	for _, key := range []string{"ada", "bob"} {
		w.agents = append(w.agents, actorstest.Agent("test", key))
	}
	for _, a := range w.agents {
		w.views[a] = newView(a)
		w.views[a].texts, w.views[a].store = true, w.texts
	}
	r := w.dice("log")
	of := []logtest.Fault{
		logtest.Pass, logtest.Pass, logtest.Pass, logtest.Pass, logtest.LoseRequest, logtest.LoseAck, logtest.Delay, logtest.Double,
		logtest.SlowRequest, logtest.SlowAck, logtest.Timeout, logtest.SlowLoseAck, logtest.SlowDelivery,
	}
	w.faulty = logtest.NewFaulty(w.stage.Log(), logtest.PlanOf(seed, r.IntN(3)*200, of...)...)
	w.faulty.Lag = time.Duration(1+r.IntN(4000)) * time.Millisecond
	w.attic = newAttic(w.faulty, w.dice("attic"))
	w.attic.slow = true
	w.cfg = w.config(w.dice("config"))
	for _, v := range w.views {
		v.most = w.cfg.Definitions[0].ShowAtMost
	}
	return w
}

// dice are those for one thing: the same in every life of the seed, whatever
// else happens.
func (w *world) dice(of ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, of...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) calm() bool {
	select {
	case <-w.calmed:
		return true
	default:
		return false
	}
}

// fail notes what must not be. Hold mu.
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

// host is a node of the world, its way to the log, and its observer.
type host struct {
	eventlog.Log
	w    *world
	node *actorstest.Node
	dead atomic.Bool
	// crashed says that it had no time to end anything.
	crashed atomic.Bool
	gone    chan struct{}            // closed when it has died
	met     map[messages.AgentID]int // how many frames there were when it began

	mu     sync.Mutex
	unsure map[messages.AgentID]bool // its newest append may or may not have landed
	fenced map[messages.AgentID]bool // it knows that somebody else owns the agent
}

// start adds a node, which takes over whatever owes work.
func (w *world) start() *host {
	h := &host{
		Log: w.attic, w: w, gone: make(chan struct{}), met: make(map[messages.AgentID]int),
		unsure: make(map[messages.AgentID]bool), fenced: make(map[messages.AgentID]bool),
	}
	cfg := w.cfg
	cfg.Log, cfg.Observer = &capped{h}, h
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
			w.wake(h, a)
		}
	}
	return h
}

// newest is the node that owns everything, if it has noticed.
func (w *world) newest() *host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[len(w.hosts)-1]
}

// living are the nodes that have not died, oldest first.
func (w *world) living() (list []*host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		if !h.dead.Load() {
			list = append(list, h)
		}
	}
	return list
}

// end ends the node: as a crash, or in order.
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

// mostBytes is what the log of a life takes.
const mostBytes = 24 << 10

// capped is a log that takes no large frames.
type capped struct{ *host }

// Append refuses what is too large.
func (c *capped) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	if len(e.Bytes) > mostBytes {
		return eventlog.Tail{}, fmt.Errorf("%d bytes: %w", len(e.Bytes), eventlog.ErrTooLarge)
	}
	return c.host.Append(ctx, e)
}

// Append appends, and notes what the node knows of it.
func (h *host) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	h.named(e)
	h.note(h.unsure, e.Agent, true)
	tail, err := h.Log.Append(ctx, e)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) && conflict.Actual.Epoch > e.Frame.Epoch {
		h.note(h.fenced, e.Agent, true)
	}
	if err == nil || conflict != nil {
		h.note(h.unsure, e.Agent, false)
	}
	return tail, err
}

func (h *host) note(in map[messages.AgentID]bool, a messages.AgentID, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in[a] = is
}

func (h *host) knows(in map[messages.AgentID]bool, a messages.AgentID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return in[a]
}

var errNoConnection = errors.New("no connection")

func (h *host) unreadable() bool {
	return !h.w.calm() && h.w.dice("read", h.w.reads.Add(1)).IntN(12) == 0
}

// Read reads, or cannot.
func (h *host) Read(ctx context.Context, a messages.AgentID, from messages.EventNumber) iter.Seq2[eventlog.Recorded, error] {
	if h.unreadable() {
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errNoConnection) }
	}
	return h.Log.Read(ctx, a, from)
}

// ReadFrom reads, or cannot.
func (h *host) ReadFrom(ctx context.Context, a messages.AgentID, after eventlog.Tail) iter.Seq2[eventlog.Recorded, error] {
	if h.unreadable() {
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errNoConnection) }
	}
	return h.Log.ReadFrom(ctx, a, after)
}

// Tips gives tips, some of them old.
func (h *host) Tips(ctx context.Context, p messages.Partition, agents []messages.AgentID) iter.Seq2[eventlog.Tip, error] {
	return func(yield func(eventlog.Tip, error) bool) {
		for tip, err := range h.Log.Tips(ctx, p, agents) {
			if h.unreadable() {
				tip, err = eventlog.Tip{}, errNoConnection
			}
			if err == nil && !h.w.calm() && h.w.dice("tip", h.w.reads.Add(1)).IntN(4) == 0 {
				tip = h.older(ctx, tip)
			}
			if !yield(tip, err) || err != nil {
				return
			}
		}
	}
}

// older is the tip that was there before, if there was one.
func (h *host) older(ctx context.Context, tip eventlog.Tip) eventlog.Tip {
	old := tip
	for rec, err := range h.Log.ReadTo(ctx, tip, eventlog.Tail{}) {
		if err == nil && rec.Seq < tip.Seq {
			old.Seq, old.Last, old.Size = rec.Seq, rec.Frame.Last(), rec.Size
		}
	}
	return old
}

// ReadTo reads, or cannot.
func (h *host) ReadTo(ctx context.Context, tip eventlog.Tip, after eventlog.Tail) iter.Seq2[eventlog.Recorded, error] {
	if h.unreadable() {
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errNoConnection) }
	}
	return h.Log.ReadTo(ctx, tip, after)
}

// Tail reads the tail, or cannot.
func (h *host) Tail(ctx context.Context, a messages.AgentID) (eventlog.Tail, error) {
	if h.unreadable() {
		return eventlog.Tail{}, errNoConnection
	}
	return h.Log.Tail(ctx, a)
}

// TailByHead reads it from the headers, or cannot.
func (h *host) TailByHead(ctx context.Context, a messages.AgentID) (eventlog.Tail, error) {
	if h.unreadable() {
		return eventlog.Tail{}, errNoConnection
	}
	return h.Log.TailByHead(ctx, a)
}

func (h *host) Committed(actors.Commit) {}
func (h *host) Owed([]actors.Reply)     {}
func (h *host) Delta(actors.Delta)      {}

// Fenced notes that the node knows of a newer owner.
func (h *host) Fenced(a messages.AgentID, _ messages.Epoch) { h.note(h.fenced, a, true) }

// job is a model call, a tool call, a question to a tool or to a hook under way.
type job struct {
	host    *host
	agent   messages.AgentID
	what    string // model, tool, check or hook
	call    messages.CallID
	attempt int
	told    bool // it is told of a turn that has ended, and may outlast its owner
	ctx     context.Context
	free    chan struct{}
	let     sync.Once
}

var errGone = errors.New("the process is gone")

// begin enters a job in the ledger. name names it for good; intended says whether
// the log holds the intent.
func (h *host) begin(ctx context.Context, j *job, name string, intended func(*view) bool) (*job, error) {
	if h.dead.Load() {
		return nil, errGone
	}
	w := h.w
	j.host, j.ctx, j.free = h, ctx, make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !intended(w.fold(j.agent)) {
		w.fail("%s: %s began before its intent was in the log, by the node of epoch %d", j.agent, name, h.node.Epoch())
	}
	if w.runs[name]++; w.runs[name] > 1 && j.what != "hook" && j.what != "check" {
		w.fail("%s: %s began twice", j.agent, name)
	}
	w.jobs = append(w.jobs, j)
	return j, nil
}

// end takes the job from those under way.
func (j *job) end() {
	w := j.host.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = slices.DeleteFunc(w.jobs, func(o *job) bool { return o == j })
}

// release lets a held job go on.
func (j *job) release() { j.let.Do(func() { close(j.free) }) }

// take takes its time, as the dice have it: none, some, until it is released, or
// until then without heed of its context.
func (j *job) take(r *rand.Rand) error {
	w, done := j.host.w, j.ctx.Done()
	var after <-chan time.Time
	switch n := r.IntN(14); {
	case w.calm() || n < 6:
		return j.ctx.Err()
	case n < 10:
		after = time.After(time.Duration(r.IntN(5000)) * time.Millisecond)
	case n < 12:
		done = nil
	}
	select {
	case <-after:
	case <-j.free:
	case <-w.calmed:
	case <-j.host.gone:
		return errGone
	case <-done:
		return j.ctx.Err()
	}
	return nil
}
