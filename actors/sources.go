package actors

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/providers/tool"
)

// kind holds the newest definition of the agents of a kind.
type kind struct {
	now     atomic.Pointer[definition]
	sources []tool.Source
	logger  *slog.Logger
	renewal sync.Mutex // held while a definition is prepared
	prepare func(context.Context) (*definition, error)
}

// fixed returns a kind whose definition never changes.
func fixed(def *definition) *kind {
	k := new(kind)
	k.now.Store(def)
	return k
}

// renew prepares the definition with the tools that its sources have now. Agents see it once
// it is stored.
func (k *kind) renew(ctx context.Context) error {
	k.renewal.Lock()
	defer k.renewal.Unlock()
	def, err := k.prepare(ctx)
	if err != nil {
		return err
	}
	if old := k.now.Load(); old == nil || old.turn.Digest != def.turn.Digest {
		k.now.Store(def)
	}
	return nil
}

// renewPause is how long a definition that could not be stored waits for the next try.
const renewPause = time.Second

// Watch follows the sources of the definitions and returns when ctx ends. Without it agents
// keep the tools that there were when the runtime was made.
func (r *Runtime) Watch(ctx context.Context) {
	var wg sync.WaitGroup
	for _, k := range r.kinds {
		for _, s := range k.sources {
			wg.Go(func() { k.follow(ctx, s) })
		}
	}
	wg.Wait()
}

// follow renews the definition whenever a source has changed, until ctx ends.
func (k *kind) follow(ctx context.Context, s tool.Source) {
	for ctx.Err() == nil {
		_, changed := s.Tools()
		var again <-chan time.Time
		if err := k.renew(ctx); err != nil && ctx.Err() == nil {
			k.logger.Warn("a definition with other tools could not be stored", "error", err)
			again = time.After(renewPause)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// gathered returns d with the tools that its sources have now, but for those that no agent of
// it can have.
func (d Definition) gathered(logger *slog.Logger) Definition {
	owners := make(map[string]int)
	for _, t := range d.Tools {
		owners[t.Spec().Name]++
	}
	var found []tool.Tool
	for _, s := range d.Sources {
		now, _ := s.Tools()
		found = append(found, now...)
	}
	for _, t := range found {
		owners[t.Spec().Name]++
	}
	d.Tools = slices.Clip(d.Tools)
	for _, t := range found {
		name := t.Spec().Name
		alone := Definition{Kind: d.Kind, Tools: []tool.Tool{t}}
		switch _, child := t.(*AgentTool); {
		case owners[name] > 1:
			logger.Error("a tool is left out, because its name is taken; give its source a prefix", "agent", d.Kind, "tool", name)
		case child:
			logger.Error("a tool is left out, because no source may have agents as tools", "agent", d.Kind, "tool", name)
		case alone.validateTools() != nil:
			logger.Error("a tool is left out", "agent", d.Kind, "error", alone.validateTools())
		default:
			d.Tools = append(d.Tools, t)
		}
	}
	return d
}
