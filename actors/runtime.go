package actors

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Config is what a node gives its agents.
type Config struct {
	Log         eventlog.Log
	Providers   providers.Set
	Definitions []Definition
	// Observer is told of commits and deltas. Nil: nobody.
	Observer Observer
	// MaxFrame is the largest frame that Log takes, in bytes. Zero: not known;
	// it is learnt from what is refused.
	MaxFrame int
	// IdleAfter is how long an agent with nothing to do stays in memory.
	// Default five minutes.
	IdleAfter time.Duration
	// Logger receives what an operator must know. Nil: slog.Default.
	Logger *slog.Logger
}

// DefaultIdleAfter is how long an idle agent stays in memory.
const DefaultIdleAfter = 5 * time.Minute

// Runtime holds what all partitions of a node share. It is safe for concurrent
// use.
type Runtime struct {
	log       eventlog.Log
	kinds     map[string]*definition
	observer  Observer
	idleAfter time.Duration
	logger    *slog.Logger
	crew      crew
	limited   limited
	// tooLarge is the size of the smallest frame that the log has refused for
	// its size; 0: none.
	tooLarge atomic.Int64
}

// definition is a Definition made ready to run.
type definition struct {
	Definition
	turn     turn.Definition
	provider providers.Provider
	model    string
	tools    map[string]tool.Tool
	specs    []providers.ToolSpec
}

// NewRuntime checks the definitions and stores each by its hash.
func NewRuntime(ctx context.Context, cfg Config) (*Runtime, error) {
	r := &Runtime{
		crew: newCrew(),
		log:  cfg.Log, kinds: make(map[string]*definition), observer: cfg.Observer,
		idleAfter: cfg.IdleAfter, logger: cfg.Logger,
	}
	if r.observer == nil {
		r.observer = nobody{}
	}
	if r.idleAfter == 0 {
		r.idleAfter = DefaultIdleAfter
	}
	if r.logger == nil {
		r.logger = slog.Default()
	}
	if cfg.MaxFrame > 0 {
		r.refused(cfg.MaxFrame - frameRest)
	}
	for _, d := range cfg.Definitions {
		if r.kinds[d.Kind] != nil {
			return nil, fmt.Errorf("agent %s is defined twice", d.Kind)
		}
		def, err := prepare(ctx, cfg.Log, cfg.Providers, d)
		if err != nil {
			return nil, err
		}
		r.kinds[d.Kind] = def
	}
	return r, nil
}

func prepare(ctx context.Context, log eventlog.Definitions, set providers.Set, d Definition) (*definition, error) {
	if err := d.Validate(set); err != nil {
		return nil, err
	}
	d = d.withDefaults()
	provider, model, err := set.Split(d.Model)
	if err != nil {
		return nil, err
	}
	encoded, err := d.encode()
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", d.Kind, err)
	}
	digest, err := log.PutDefinition(ctx, encoded)
	if err != nil {
		return nil, fmt.Errorf("agent %s: store its definition: %w", d.Kind, err)
	}
	def := &definition{Definition: d, provider: provider, model: model, tools: make(map[string]tool.Tool)}
	classes := make(map[string]string)
	for _, t := range d.Tools {
		spec := t.Spec()
		def.tools[spec.Name] = t
		def.specs = append(def.specs, providers.ToolSpec{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters})
		classes[spec.Name] = string(class(spec))
	}
	def.turn = turn.Definition{
		Digest: string(digest), Model: d.Model, Instructions: string(messages.DigestOf([]byte(d.Instructions))),
		MaxSteps: d.MaxSteps, MaxQueue: d.MaxQueue, MaxAttempts: d.MaxAttempts, Parallel: d.Parallel, Classes: classes,
	}
	return def, nil
}

// Kinds are the kinds that agents here may be of, sorted.
func (r *Runtime) Kinds() []string {
	kinds := make([]string, 0, len(r.kinds))
	for k := range r.kinds {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Serves says whether kind is defined here; if not, the refusal names those
// that are.
func (r *Runtime) Serves(kind string) error {
	if r.kinds[kind] == nil {
		return messages.Refuse(messages.UnknownKind, "no agent kind is named %q: this node knows %v", kind, r.Kinds())
	}
	return nil
}

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

// fits refuses an input that the log is known not to take: finding out once
// more would stop what the agent is doing.
func (r *Runtime) fits(c messages.Command) *messages.Error {
	limit := r.tooLarge.Load()
	in, ok := c.(messages.Input)
	if !ok || limit == 0 {
		return nil
	}
	if size := contentSize(in.Content) + len(in.Metadata); int64(size) >= limit {
		return messages.Refuse(messages.TooLarge, "the input has %d bytes: the log here takes less than %d", size, limit)
	}
	return nil
}

type nobody struct{}

func (nobody) Committed(Commit)                        {}
func (nobody) Owed([]Reply)                            {}
func (nobody) Delta(Delta)                             {}
func (nobody) Fenced(messages.AgentID, messages.Epoch) {}
