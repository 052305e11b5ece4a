package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/archive"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// retention archives and deletes agents that have rested for as long as their
// kind retains them. Each node does so for the partitions that it owns, one agent
// after the other.
type retention struct {
	node  *Node
	dir   string
	kinds map[string]time.Duration
}

// How often agents are looked at, and how long the pause between two that are
// deleted is: retention is in no hurry.
const (
	lookMost   = time.Hour
	lookLeast  = 100 * time.Millisecond
	retainRest = 50 * time.Millisecond
)

// openRetention begins to look after agents whose kinds are not kept for ever.
func (n *Node) openRetention(context.Context) error {
	r := &retention{node: n, dir: n.cfg.Archive, kinds: make(map[string]time.Duration)}
	every := lookMost
	for _, d := range n.cfg.Agents {
		if d.Retain > 0 {
			r.kinds[d.Kind] = d.Retain
			every = min(every, max(d.Retain/4, lookLeast))
		}
	}
	if len(r.kinds) == 0 {
		return nil
	}
	if r.dir == "" && n.cfg.Data != "" {
		r.dir = filepath.Join(n.cfg.Data, "archive")
	}
	if r.dir == "" {
		return errors.New("agents are to be deleted after a time (retain), and there is no folder to archive them in: set Archive (retain_to)")
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx, every) })
	n.onClose(func() { cancel(); running.Wait() })
	return nil
}

func (r *retention) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.sweep(ctx, time.Now())
		}
	}
}

// sweep deletes the agents that are due.
func (r *retention) sweep(ctx context.Context, now time.Time) {
	for kind, keep := range r.kinds {
		for _, row := range r.node.owner.agents.List(projections.AgentFilter{Kind: kind, Phase: "idle"}) {
			if now.Sub(row.Updated) < keep || !r.node.owner.rests(row.Agent) {
				continue
			}
			if err := r.retire(ctx, row.Agent, now); err != nil && ctx.Err() == nil {
				r.node.cfg.Logger.Warn("an agent whose time is over is still there; it is tried again", "agent", row.Agent.String(), "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(retainRest):
			}
		}
	}
}

// retire archives an agent and deletes it, unless it goes on meanwhile.
func (r *retention) retire(ctx context.Context, a messages.AgentID, now time.Time) error {
	awake, err := r.ask(ctx, a, &actors.Wake{Agent: a}) // under this owner, which writes its own fence first
	if err != nil {
		return err
	}
	key, err := r.node.wrapped(ctx, a)
	if err != nil {
		return err
	}
	path, end, err := archive.Write(ctx, r.dir, r.node.streams, a, key, now)
	if err != nil {
		return err
	}
	if end.Last != awake.N {
		_ = os.Remove(path)
		return fmt.Errorf("it has gone on: it was archived up to event %d and is at %d", end.Last, awake.N)
	}
	c := messages.Delete{ID: fmt.Sprintf("retention:%d", end.Last), Last: end.Last, Reason: "retention"}
	if _, err := r.ask(ctx, a, &actors.Deliver{Agent: a, Command: c, Cause: messages.Cause{Door: "retention", Reason: c.Reason}}); err != nil {
		if messages.AsError(err).Code == messages.Conflict { // else it may have been deleted
			_ = os.Remove(path)
		}
		return err
	}
	r.node.cfg.Logger.Info("an agent whose time is over was archived and deleted", "agent", a.String(), "archive", path)
	return nil
}

func (r *retention) ask(ctx context.Context, a messages.AgentID, m any) (messages.Answer, error) {
	answer, err := r.node.host.ask(a, m)(ctx)
	if err == nil && answer.Err != nil {
		err = answer.Err
	}
	return answer, err
}

// wrapped is an agent's key as it is kept; nil if it has none.
func (n *Node) wrapped(ctx context.Context, a messages.AgentID) ([]byte, error) {
	if n.keys == nil {
		return nil, nil
	}
	return n.keys.Wrapped(ctx, a)
}

// rests says that an agent is ours, owes nothing and waits for no timer.
func (o *owner) rests(a messages.AgentID) bool {
	w := &o.partitions[a.Partition()]
	w.mu.Lock()
	defer w.mu.Unlock()
	_, open := w.open[a]
	return w.epoch != 0 && !open && w.timers.known[a] == nil
}
