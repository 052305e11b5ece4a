package cluster

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"github.com/reprise-dev/reprise/cluster/archive"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// archives finds, before anything is begun, the folder that agents are archived in whose kinds
// are not kept forever.
func (n *Node) archives(context.Context) error {
	for _, d := range n.cfg.Agents {
		if d.Retain <= 0 || n.cfg.Archive != "" {
			continue
		}
		if n.cfg.Data == "" {
			return fmt.Errorf("agents %s are to be deleted after a time (Retain), and there is no folder to archive them in: set Archive", d.Kind)
		}
		n.cfg.Archive = filepath.Join(n.cfg.Data, "archive")
	}
	return nil
}

// newRetention is what looks after agents whose kinds are not kept forever.
func (n *Node) newRetention() *archive.Retention {
	r := &archive.Retention{
		Kinds: make(map[string]time.Duration), Dir: n.cfg.Archive, Source: n.streams, Agents: n.agents, AllAgents: func(q messages.Query) iter.Seq2[projections.Agent, error] { return n.gateway.AllAgents(q) },
		Rests: n.owner.rests, Epoch: n.owner.epoch, Ask: n.host.ask, Do: n.client.Do, Key: n.wrapped,
		JetStream: n.js, Inbox: n.streams.Names().Inbox(), Subjects: n.subjects, Logger: n.cfg.Logger,
	}
	for _, d := range n.cfg.Agents {
		if d.Retain > 0 {
			r.Kinds[d.Kind] = d.Retain
		}
	}
	return r
}

// openRetention begins to look after them.
func (n *Node) openRetention(context.Context) error {
	if r := n.retention; len(r.Kinds) > 0 {
		n.background(func(ctx context.Context) {
			for now := range ticks(ctx, r.Every()) {
				r.Sweep(ctx, now)
			}
		})
	}
	return nil
}

// wrapped is an agent's key as it is kept; nil if it has none.
func (n *Node) wrapped(ctx context.Context, a messages.AgentID) ([]byte, error) {
	if n.keys == nil {
		return nil, nil
	}
	return n.keys.Wrapped(ctx, a)
}

// rests reports whether an agent is ours, owes nothing and waits for no timer.
func (o *owner) rests(a messages.AgentID) bool {
	w := &o.partitions[a.Partition()]
	w.mu.Lock()
	defer w.mu.Unlock()
	_, open := w.open[a]
	return w.epoch != 0 && !open && w.timers.known[a] == nil
}
