package actors

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Config is what a node gives its agents.
type Config struct {
	Log         eventlog.Log
	Providers   providers.Set
	Definitions []Definition
	// Prices are what model calls cost, by provider/model. A call of a model that
	// is not in it costs nothing.
	Prices map[string]messages.Price
	// Observer is told of commits and deltas. Nil: nobody.
	Observer Observer
	// MaxPayload is the largest payload of a result, an answer or an input that
	// is kept, in Log or as one of its blobs, in bytes: what is larger is a typed
	// failure. Zero: DefaultMaxPayload.
	MaxPayload int
	// Memory bounds what the payloads of running calls may take together. Nil: there is no
	// bound.
	Memory *memory.Bound
	// Send stores a command for another agent, so that it comes there at least once,
	// in the order of what one agent sends to another. It returns when the command
	// is stored. A messages.Task or messages.Recall that its agent refuses must be
	// answered, by what messages.Refused makes of it. Nil: no tool may be an agent.
	Send func(ctx context.Context, to messages.AgentID, c messages.Command) error
	// Purger removes what is kept of a deleted agent beside Log. Nil: nothing is.
	Purger Purger
	// MayAct says whether this node may act as its agents' owner now: it is asked
	// right before each call of a tool or a model, which waits until it may, for as
	// long as the call may take. Between the append that a call follows and the call
	// the process may have been stopped, and the agent taken over. Before it says yes
	// again, the partitions that went elsewhere meanwhile must have stopped here. It
	// is called from many goroutines and must not block. Nil: always.
	MayAct func() bool
	// MaxFrame is the largest frame that Log takes, in bytes. Zero: not known;
	// it is learnt from what is refused.
	MaxFrame int
	// IdleAfter is how long an agent with nothing to do stays in memory.
	// Default five minutes.
	IdleAfter time.Duration
	// MaxAgents and AgentMemory bound the agents in memory by their number and by the bytes
	// that they are estimated to take: beyond that those with nothing to do leave, least
	// recently used first. Zero: what DefaultMaxAgents returns.
	MaxAgents   int
	AgentMemory int64
	// SnapshotEvery is how many events an agent writes, at least, between two
	// snapshots. Zero: DefaultSnapshotEvery; negative: none are written or read,
	// and every activation reads the agent's whole log.
	SnapshotEvery int
	// RecoverRate is how many model calls that were lost with an owner are begun
	// anew in a second, after as many at once. Zero: DefaultRecoverRate; negative:
	// they all begin at once.
	RecoverRate int
	// Evidence is what is known of the agents' logs from elsewhere. Nil: nothing is.
	Evidence Evidence
	// Lease is how long after a deletion an owner that lost the agent's partition may
	// still store something of it: then the removal is done once more. Zero: DefaultLease.
	Lease time.Duration
	// Settle is how long a deposed leader of the log's streams may answer. Zero: there
	// is only one copy.
	Settle time.Duration
	// Node and Host name this node and its machine in the events of takeovers. Empty: those
	// name neither.
	Node, Host string
	// Logger receives what an operator must know. Nil: slog.Default.
	Logger *slog.Logger
}

// DefaultRecoverRate is how many lost model calls are begun anew in a second.
const DefaultRecoverRate = 200

// DefaultMaxAgents returns the bounds on agents in memory of a node that is not given any: an
// eighth of the memory that this process may use, and an agent for each 8 KiB of that.
func DefaultMaxAgents() (most int, bytes int64) {
	bytes = memory.Default() / 2
	return int(bytes >> 13), bytes
}

// DefaultIdleAfter is how long an idle agent stays in memory.
const DefaultIdleAfter = 5 * time.Minute

// Runtime holds what all partitions of a node share. It is safe for concurrent
// use.
type Runtime struct {
	log        eventlog.Log
	kinds      map[string]*kind
	observer   Observer
	send       func(context.Context, messages.AgentID, messages.Command) error
	purger     Purger
	evidence   Evidence
	settle     time.Duration
	lease      time.Duration
	may        func() bool
	logger     *slog.Logger
	dispatcher dispatcher
	// activations are the node's tokens for activations.
	activations *semaphore.Weighted
	residents   residents
	// reading bounds how many first answers are read from the log at once: a crowd
	// that asks again must not take its connection from those who work.
	reading chan struct{}
	limited limited
	writers writers
	shelf   shelf
	memory  *memory.Bound
	// node and host are those of events of takeovers.
	node, host string
	// tooLarge is the size of the smallest frame that the log has refused for
	// its size; 0: none.
	tooLarge atomic.Int64

	saves                *saves // nil: no snapshots
	saveEvery, saveAtEnd int    // in events
	saving               chan struct{}
	// pace is that of model calls of turns that are recovered.
	pace *rate.Limiter
}

func pace(perSecond int) *rate.Limiter {
	switch {
	case perSecond < 0:
		return rate.NewLimiter(rate.Inf, 0)
	case perSecond == 0:
		perSecond = DefaultRecoverRate
	}
	return rate.NewLimiter(rate.Limit(perSecond), perSecond)
}

// definition is a Definition made ready to run.
type definition struct {
	Definition
	turn   turn.Definition
	models map[string]model // by provider/model
	tools  map[string]tool.Tool
	specs  []providers.ToolSpec
	hooks  []Hook // as they are asked
	// judges says that answers are looked at before they are recorded, around
	// that hooks stand around calls, afterTool that they are asked about results.
	judges, around, afterTool bool
}

// model is where a model is reached.
type model struct {
	provider providers.Provider
	name     string // without the provider
	settings providers.Settings
}

// NewRuntime checks the definitions and stores each by its hash.
func NewRuntime(ctx context.Context, cfg Config) (*Runtime, error) {
	r := &Runtime{
		dispatcher: newDispatcher(), activations: semaphore.NewWeighted(activationsAtOnce), reading: make(chan struct{}, readAtOnce),
		log: cfg.Log, kinds: make(map[string]*kind), observer: cfg.Observer, send: cfg.Send, purger: cfg.Purger, evidence: cfg.Evidence, settle: cfg.Settle, lease: cmp.Or(cfg.Lease, DefaultLease), may: cfg.MayAct,
		memory: cfg.Memory, node: cfg.Node, host: cfg.Host, residents: newResidents(cfg), logger: cfg.Logger, saving: make(chan struct{}, savesAtOnce),
	}
	r.snapshots(cfg)
	r.pace = pace(cfg.RecoverRate)
	if r.observer == nil {
		r.observer = nobody{}
	}
	if r.send == nil {
		r.send = func(context.Context, messages.AgentID, messages.Command) error { return errNoPost }
	}
	if r.may == nil {
		r.may = func() bool { return true }
	}
	if r.logger == nil {
		r.logger = slog.Default()
	}
	r.shelf = shelf{log: cfg.Log, writers: &r.writers, most: cfg.MaxPayload, logger: r.logger, limited: &r.limited}
	if r.shelf.most == 0 {
		r.shelf.most = DefaultMaxPayload
	}
	if cfg.MaxFrame > 0 {
		r.refused(cfg.MaxFrame - frameRest)
	}
	if err := checkAgentTools(cfg); err != nil {
		return nil, err
	}
	for _, d := range cfg.Definitions {
		if r.kinds[d.Kind] != nil {
			return nil, fmt.Errorf("agent %s is defined twice", d.Kind)
		}
		if err := d.Validate(cfg.Providers); err != nil {
			return nil, err
		}
		k := &kind{sources: d.Sources, logger: r.logger, prepare: func(ctx context.Context, sources []tool.Source) (*definition, error) {
			return prepare(ctx, cfg, d.gathered(sources, r.logger))
		}}
		if err := k.begin(ctx); err != nil {
			return nil, err
		}
		r.kinds[d.Kind] = k
	}
	return r, nil
}

func prepare(ctx context.Context, cfg Config, d Definition) (*definition, error) {
	d = d.withDefaults()
	encoded, err := d.encode()
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", d.Kind, err)
	}
	digest, err := cfg.Log.PutDefinition(ctx, encoded)
	if err != nil {
		return nil, fmt.Errorf("agent %s: store its definition: %w", d.Kind, err)
	}
	def := &definition{Definition: d, models: make(map[string]model), tools: make(map[string]tool.Tool), hooks: sortHooks(d.Hooks)}
	maxOutput := make(map[string]int)
	for _, m := range append(d.models(), d.Compact.Model) {
		if m == "" {
			continue
		}
		provider, name, err := cfg.Providers.Split(m)
		if err != nil {
			return nil, err
		}
		settings, _ := d.settings(provider, m, name)
		def.models[m] = model{provider, name, settings}
		maxOutput[m] = settings.MaxOutputTokens
	}
	choice := d.ToolChoice
	if choice == "auto" {
		choice = ""
	}
	def.turn = turn.Definition{
		Digest: string(digest), Model: d.Model, Fallbacks: d.Fallbacks, Instructions: string(messages.DigestOf([]byte(d.Instructions))),
		MaxSteps: d.MaxSteps, MaxQueue: d.MaxQueue, MaxAttempts: d.MaxAttempts, Parallel: d.Parallel, ToolChoice: choice,
		TurnLimits: d.TurnLimits, AgentLimits: d.AgentLimits, PauseAtLimit: d.PauseAtLimit, Prices: cfg.Prices,
		Compact:    turn.Compact{AtTokens: d.Compact.AtTokens, Keep: d.Compact.Keep, How: d.Compact.How, Model: d.Compact.Model},
		ShowAtMost: d.showAtMost(), Overhead: len(d.Instructions), MaxOutput: maxOutput, Tools: make(map[string]turn.Tool),
	}
	if has(d.Hooks, func(h Hook) bool { return h.TurnStart != nil || h.BeforeModel != nil }) {
		def.turn.Hooks = append(def.turn.Hooks, turn.BeforeModel)
	}
	if has(d.Hooks, func(h Hook) bool { return h.TurnEnd != nil }) {
		def.turn.Hooks = append(def.turn.Hooks, turn.TurnEnd)
	}
	def.judges = has(d.Hooks, func(h Hook) bool { return h.AfterModel != nil || h.BeforeTools != nil || h.BeforeTool != nil })
	def.around = has(d.Hooks, func(h Hook) bool { return h.AroundModel != nil || h.AroundTool != nil })
	def.afterTool = has(d.Hooks, func(h Hook) bool { return h.AfterTool != nil })
	for _, t := range d.Tools {
		def.add(t)
	}
	return def, nil
}

// add makes a tool known to the machine and to models.
func (def *definition) add(t tool.Tool) {
	spec := t.Spec()
	def.tools[spec.Name] = t
	def.specs = append(def.specs, providers.ToolSpec{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters})
	def.turn.Overhead += len(spec.Name) + len(spec.Description) + len(spec.Parameters)
	expiry := spec.ApprovalTimeout
	if expiry == 0 {
		expiry = def.ApprovalTimeout
	}
	def.turn.Tools[spec.Name] = asChild(t, turn.Tool{
		OnUnknown: onUnknown(spec), Approval: string(spec.Approval), Repeats: spec.ApproveRepeats,
		Expiry: expiry, Stop: slices.Contains(def.StopOn, spec.Name),
	})
	_, child := t.(*AgentTool)
	def.judges = def.judges || child || spec.Approval != tool.Never || spec.ApproveRepeats
}

// snapshots takes over what the configuration says of them.
func (r *Runtime) snapshots(cfg Config) {
	if cfg.SnapshotEvery >= 0 {
		r.saves = &saves{cfg.Log}
	}
	r.saveEvery = cfg.SnapshotEvery
	if r.saveEvery == 0 {
		r.saveEvery = DefaultSnapshotEvery
	}
	r.saveAtEnd = min(snapshotAtEnd, r.saveEvery)
}

// InMemory returns how many agents are in memory.
func (r *Runtime) InMemory() int { return r.residents.inMemory() }

// Kinds are the kinds that agents here may be of, sorted.
func (r *Runtime) Kinds() []string {
	kinds := make([]string, 0, len(r.kinds))
	for k := range r.kinds {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Digests are the hashes of the newest definitions, by kind.
func (r *Runtime) Digests() map[string]string {
	digests := make(map[string]string, len(r.kinds))
	for name, k := range r.kinds {
		digests[name] = k.now.Load().turn.Digest
	}
	return digests
}

// Serves says whether kind is defined here; if not, the refusal names those
// that are.
func (r *Runtime) Serves(kind string) error {
	if r.kinds[kind] == nil {
		return messages.Refuse(messages.UnknownKind, "no agent kind is named %q: this node knows %v", kind, r.Kinds())
	}
	return nil
}

// readAtOnce is how many first answers are read from the log at the same time.
const readAtOnce = 8

// frameRest is what a frame holds beside an input's content: its own fields and
// those of the other events.
const frameRest = 4 << 10

// refused notes that the log refused a frame of so many bytes for its size.
func (r *Runtime) refused(size int) {
	for {
		old := r.tooLarge.Load()
		if old != 0 && old <= int64(size) || r.tooLarge.CompareAndSwap(old, int64(size)) {
			return
		}
	}
}

// maxResult is the largest result of a tool or model, in bytes, that fits into
// a frame with what follows from it.
func (r *Runtime) maxResult() int {
	if size := r.tooLarge.Load(); size != 0 {
		return min(maxResult, int(size)/3)
	}
	return maxResult
}

// fits refuses a command that the log is known not to take: finding out once
// more would stop what the agent is doing.
func (r *Runtime) fits(c messages.Command) *messages.Error {
	if err := messages.Bounded(c); err != nil {
		return messages.AsError(err)
	}
	size := commandSize(c)
	switch c := c.(type) {
	case messages.Input:
		var least int
		if size, least = inputSize(c); size > r.shelf.most {
			return messages.Refuse(messages.TooLarge, "the input has %d bytes: the limit is %d", size, r.shelf.most)
		}
		if r.spills(c) {
			size = least
		}
		if size > messages.MaxBody {
			return messages.Refuse(messages.TooLarge, "what of the input must stand in the log itself (metadata, and parts of content that are small) has %d bytes: the limit is %d", size, messages.MaxBody)
		}
	case messages.Decide:
		if limit := r.maxResult(); size > limit {
			return messages.Refuse(messages.TooLarge, "the result has %d bytes: the limit is %d", size, limit)
		}
	}
	if limit := r.tooLarge.Load(); limit != 0 && int64(size) >= limit {
		return messages.Refuse(messages.TooLarge, "the %s has %d bytes: the log here takes less than %d", c.CommandType(), size, limit)
	}
	return nil
}

type nobody struct{}

func (nobody) Committed(Commit)                        {}
func (nobody) Owed([]Reply)                            {}
func (nobody) Delta(Delta)                             {}
func (nobody) Fenced(messages.AgentID, messages.Epoch) {}
