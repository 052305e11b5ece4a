package actors

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/tool"
)

// kind holds the newest definition of the agents of a kind.
type kind struct {
	now     atomic.Pointer[definition]
	sources []tool.Source
	logger  *slog.Logger
	renewal sync.Mutex // held while a definition is prepared
	prepare func(context.Context, []tool.Source) (*definition, error)
	// change prepares a definition with the changes of a fork.
	change func(context.Context, Definition, messages.ForkChanges) (*definition, error)
}

// fixed returns a kind whose definition never changes.
func fixed(def *definition) *kind {
	k := new(kind)
	k.now.Store(def)
	return k
}

// begin prepares the first definition, without the tools of its sources if they are why it cannot
// be stored: what others offer must not keep the node from starting.
func (k *kind) begin(ctx context.Context) error {
	err := k.renew(ctx)
	if err == nil || len(k.sources) == 0 {
		return err
	}
	def, bare := k.prepare(ctx, nil)
	if bare != nil {
		return err
	}
	k.logger.Error("agents begin without the tools of their sources, because the definition with them could not be stored", "agent", def.Kind, "error", err)
	k.now.Store(def)
	return nil
}

// renew prepares the definition with the tools that its sources have now. Agents see it once
// it is stored. It may have the digest of the one before, and other tools behind the same specs.
func (k *kind) renew(ctx context.Context) error {
	k.renewal.Lock()
	defer k.renewal.Unlock()
	def, err := k.prepare(ctx, k.sources)
	if err != nil {
		return err
	}
	k.now.Store(def)
	return nil
}

const (
	// renewBurst is how often a source that keeps changing renews a definition at once; then it
	// does so once a minute: each renewal may leave a definition in the log permanently.
	renewBurst = 5
	// maxGathered is how many bytes of names, descriptions and schemas the tools of sources may have
	// together. A definition must fit into a message of NATS.
	maxGathered = 512 << 10
)

// Watch follows the sources of the definitions and returns when ctx ends. Without it agents
// keep the tools that there were when the runtime was made.
func (r *Runtime) Watch(ctx context.Context) {
	var wg sync.WaitGroup
	for _, k := range r.kinds {
		for _, s := range k.sources {
			wg.Go(func() { k.follow(ctx, r, s) })
		}
	}
	wg.Wait()
}

// follow renews the definition when a source has changed, until ctx ends.
func (k *kind) follow(ctx context.Context, r *Runtime, s tool.Source) {
	for pace := rate.NewLimiter(rate.Every(time.Minute), renewBurst); pace.Wait(ctx) == nil; {
		_, changed := s.Tools()
		_ = r.retry(ctx, func() error { return k.renew(ctx) }, "a definition with other tools could not be stored")
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Gathered returns d with the tools that its sources have now as its own, but for those that no
// agent of it can have: these are logged.
func (d Definition) Gathered(logger *slog.Logger) Definition {
	d = d.gathered(d.Sources, logger)
	d.Sources = nil
	return d
}

// gathered returns d with the tools that sources have now, but for those that no agent of it can
// have, and for those that would make it too large.
func (d Definition) gathered(sources []tool.Source, logger *slog.Logger) Definition {
	owners := make(map[string]int)
	for _, t := range d.Tools {
		owners[t.Spec().Name]++
	}
	var found []tool.Tool
	for _, s := range sources {
		now, _ := s.Tools()
		found = append(found, now...)
	}
	for _, t := range found {
		owners[t.Spec().Name]++
	}
	d.Tools = slices.Clip(d.Tools)
	left, large := maxGathered, 0
	for _, t := range found {
		name, bytes := t.Spec().Name, size(t.Spec())
		alone := Definition{Kind: d.Kind, Tools: []tool.Tool{t}}
		switch _, child := t.(*AgentTool); {
		case owners[name] > 1:
			logger.Error("a tool is left out, because its name is taken; give its source a prefix", "agent", d.Kind, "tool", name)
		case child:
			logger.Error("a tool is left out, because no source may have agents as tools", "agent", d.Kind, "tool", name)
		case alone.validateTools(nil) != nil:
			logger.Error("a tool is left out", "agent", d.Kind, "error", alone.validateTools(nil))
		case bytes > left:
			large++
		default:
			left -= bytes
			d.Tools = append(d.Tools, t)
		}
	}
	if large > 0 {
		logger.Error("tools of sources are left out, because they are too large together; have its sources offer fewer", "agent", d.Kind, "tools", large, "limit", maxGathered)
	}
	return d
}

// size returns how many bytes of a definition a tool takes with what its source describes.
func size(s tool.Spec) int {
	encoded, _ := json.Marshal([]any{s.Name, s.Description, s.Parameters})
	return len(encoded)
}
