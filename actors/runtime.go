package actors

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Config is what a node provides to its agents.
type Config struct {
	// Store keeps what is stored. Forks are read through it as package prefix does.
	Store       eventlog.Store
	Providers   providers.Set
	Definitions []Definition
	// Prices are what model calls cost, by provider/model. A call of a model that
	// is not in it costs nothing.
	Prices map[string]messages.Price
	// Observer is notified of commits and deltas. Nil: none is.
	Observer Observer
	// MaxPayload is the largest payload of a result, an answer or an input that
	// is kept, in a frame or as a blob, in bytes: what is larger is a typed
	// failure. Zero: DefaultMaxPayload.
	MaxPayload int
	// Memory bounds what the payloads of running calls may take together. Nil: there is no
	// bound.
	Memory *memory.Bound
	// Send stores a command for another agent, so that it comes there at least once,
	// in the order of what one agent sends to another. It returns when the command
	// is stored. A messages.Task or messages.CancelChild that its agent refuses must be
	// answered, by what messages.Refused makes of it. The command is sent with the trace context
	// that is in ctx ([messages.TraceIn]). Nil: no tool may be an agent.
	Send func(ctx context.Context, to messages.AgentID, c messages.Command) error
	// Purger removes what is kept of a deleted agent beside Store. Nil: nothing is.
	Purger Purger
	// MayAct reports whether this node may act as its agents' owner now: it is asked
	// right before each call of a tool or a model, which waits until it may, for as
	// long as the call may take. Between the append that a call follows and the call
	// the process may have been stopped, and the agent taken over. Before it reports true
	// again, the partitions that went elsewhere meanwhile must have stopped here. It
	// is called from many goroutines and must not block. Nil: always.
	MayAct func() bool
	// MaxFrame is the largest frame that Store takes, in bytes. Zero: eventlog.MaxFrame.
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
	// again in a second, after as many at once. Zero: DefaultRecoverRate; negative:
	// they all begin at once.
	RecoverRate int
	// Evidence is what is known of the agents' logs from elsewhere. Nil: nothing is.
	Evidence Evidence
	// Lease is how long after a deletion an owner that lost the agent's partition may
	// still store something of it: then the removal is done once more. Zero: DefaultLease.
	Lease time.Duration
	// ElectionTimeout is how long a deposed leader of the log's streams may answer. Zero: there
	// is only one copy.
	ElectionTimeout time.Duration
	// Node and Host name this node and its machine in the events of takeovers. Empty: those
	// name neither.
	Node, Host string
	// Logger receives what an operator must know. Its handler bounds floods of alike warnings. Nil: slog.Default.
	Logger *slog.Logger
}

// DefaultRecoverRate is how many lost model calls are begun again in a second.
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
	store           eventlog.Store
	kinds           map[string]*kind
	observer        Observer
	send            func(context.Context, messages.AgentID, messages.Command) error
	purger          Purger
	evidence        Evidence
	electionTimeout time.Duration
	lease           time.Duration
	may             func() bool
	logger          *slog.Logger
	dispatcher      dispatcher
	// activations are the node's tokens for activations.
	activations *semaphore.Weighted
	residents   residents
	// reading bounds how many first answers are read from the log at once: many callers
	// that ask again must not take its connection from agents at work.
	reading *semaphore.Weighted
	writers writers
	blobs   blobs
	memory  *memory.Bound
	// node and host are those of events of takeovers.
	node, host string
	// maxText is how many bytes the texts of a frame may take together. maxResult is the largest
	// result of a tool or model that fits into a frame with what follows from it.
	maxText, maxResult int

	saveEvery, saveAtEnd int // in events; negative: snapshots are neither written nor read
	saving               *semaphore.Weighted
	// pace is that of model calls of turns that are recovered.
	pace *rate.Limiter
}

func pace(perSecond int) *rate.Limiter {
	if perSecond < 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), perSecond)
}

// NewRuntime checks the definitions and stores each by its hash.
func NewRuntime(ctx context.Context, cfg Config) (*Runtime, error) {
	r := &Runtime{
		dispatcher: newDispatcher(), activations: semaphore.NewWeighted(activationsAtOnce), reading: semaphore.NewWeighted(readAtOnce),
		store: prefix.New(cfg.Store), kinds: make(map[string]*kind), observer: cfg.Observer, send: cfg.Send, purger: cfg.Purger, evidence: cfg.Evidence, electionTimeout: cfg.ElectionTimeout, lease: cmp.Or(cfg.Lease, DefaultLease), may: cfg.MayAct,
		memory: cfg.Memory, node: cfg.Node, host: cfg.Host, residents: newResidents(cfg), pace: pace(cmp.Or(cfg.RecoverRate, DefaultRecoverRate)),
		saveEvery: cmp.Or(cfg.SnapshotEvery, DefaultSnapshotEvery), logger: cmp.Or(cfg.Logger, slog.Default()), saving: semaphore.NewWeighted(savesAtOnce),
	}
	r.saveAtEnd = min(snapshotAtEnd, r.saveEvery)
	if r.send == nil {
		r.send = func(context.Context, messages.AgentID, messages.Command) error { return errNoPost }
	}
	if r.may == nil {
		r.may = func() bool { return true }
	}
	r.blobs = blobs{rt: r, most: cfg.maxPayload()}
	r.maxText = cmp.Or(cfg.MaxFrame, eventlog.MaxFrame) - frameRest
	r.maxResult = r.maxText / 3
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
		}, change: func(ctx context.Context, base Definition, c messages.ForkChanges) (*definition, error) {
			return prepareChanged(ctx, cfg, base, c)
		}}
		if err := k.begin(ctx); err != nil {
			return nil, err
		}
		r.kinds[d.Kind] = k
	}
	return r, nil
}

// InMemory returns how many agents are in memory.
func (r *Runtime) InMemory() int { return r.residents.inMemory() }

// Kinds returns the kinds that agents here may be of, sorted.
func (r *Runtime) Kinds() []string {
	kinds := make([]string, 0, len(r.kinds))
	for k := range r.kinds {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Digests returns the hashes of the newest definitions, by kind.
func (r *Runtime) Digests() map[string]string {
	digests := make(map[string]string, len(r.kinds))
	for name, k := range r.kinds {
		digests[name] = k.now.Load().turn.Digest
	}
	return digests
}

// Serves returns nil if kind is defined here; if not, the refusal names those
// that are.
func (r *Runtime) Serves(kind string) error {
	if r.kinds[kind] == nil {
		return messages.Refuse(messages.UnknownKind, "no agent kind is named %q: this node knows %v", kind, r.Kinds())
	}
	return nil
}

// readAtOnce is how many first answers are read from the log at the same time.
const readAtOnce = 8
