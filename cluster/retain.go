package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/archive"
	"github.com/reprise-dev/reprise/eventlog/doctor"
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

// archives finds, before anything is begun, the folder that agents are archived in
// whose kinds are not kept for ever.
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

// newRetention is what looks after agents whose kinds are not kept for ever.
func (n *Node) newRetention() *retention {
	r := &retention{node: n, dir: n.cfg.Archive, kinds: make(map[string]time.Duration)}
	for _, d := range n.cfg.Agents {
		if d.Retain > 0 {
			r.kinds[d.Kind] = d.Retain
		}
	}
	return r
}

// openRetention begins to look after them.
func (n *Node) openRetention(context.Context) error {
	r, every := n.retention, lookMost
	if len(r.kinds) == 0 {
		return nil
	}
	for _, keep := range r.kinds {
		every = min(every, max(keep/4, lookLeast))
	}
	n.background(func(ctx context.Context) {
		for now := range ticks(ctx, every) {
			r.sweep(ctx, now)
		}
	})
	return nil
}

// sweep deletes the agents that are due.
func (r *retention) sweep(ctx context.Context, now time.Time) {
	for kind, keep := range r.kinds {
		for _, row := range r.node.owner.agents.List(projections.AgentFilter{Kind: kind, Phase: messages.PhaseIdle}) {
			if now.Sub(row.Updated) < keep || !r.node.owner.rests(row.Agent) {
				continue
			}
			if err := r.retire(ctx, row.Agent, now); err != nil && ctx.Err() == nil {
				r.node.cfg.Logger.Warn("an agent whose time is over is still there; it is tried again", row.Agent.LogAttr(r.node.owner.epoch(row.Agent.Partition())), "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(retainRest):
			}
		}
	}
}

// retire archives an agent and deletes it, unless something is on its way to it or
// it goes on meanwhile.
func (r *retention) retire(ctx context.Context, a messages.AgentID, now time.Time) error {
	if comes, err := r.comes(ctx, a); err != nil || comes {
		return err
	}
	awake, err := r.ask(ctx, a, &actors.Activate{Agent: a}) // under this owner, which writes its own fence first
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
	if comes, err := r.comes(ctx, a); err != nil || comes {
		_ = os.Remove(path)
		return err
	}
	c := messages.Delete{ID: fmt.Sprintf("retention:%d", end.Last), Last: end.Last, Reason: "retention"}
	if _, err := r.node.client.Do(ctx, a.Full(), c); err != nil { // stored first, so that it is done even if this node ends
		if messages.AsError(err).Code == messages.Conflict { // else it may have been deleted
			_ = os.Remove(path)
		}
		return err
	}
	r.node.cfg.Logger.Info("an agent whose time is over was archived and deleted", a.LogAttr(r.node.owner.epoch(a.Partition())), "archive", path)
	return nil
}

// comes says that something that was sent to the agent is not settled. An agent
// that is deleted meanwhile would come to life by it, though it may have been applied:
// the delete takes what it knows of ids along.
func (r *retention) comes(ctx context.Context, a messages.AgentID) (bool, error) {
	stream, err := r.node.js.Stream(ctx, r.node.streams.Names().Inbox())
	if err != nil {
		return false, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(r.node.subjects.InboxOfAgent(a)))
	return err == nil && len(info.State.Subjects) > 0, err
}

// find gives what keeps agents from being retired, for a person to see to.
func (r *retention) find(context.Context) (found []doctor.Finding) {
	if len(r.kinds) == 0 {
		return nil
	}
	if err := archive.Writable(r.dir); err != nil {
		found = append(found, doctor.Finding{Check: "retention", Status: doctor.Fail,
			Detail: fmt.Sprintf("agents whose time is over stay, for nothing can be archived in %s: %v", r.dir, err),
			Remedy: "let the node write there, or give it another folder (retain_to)"})
	}
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		late := 0
		for row, err := range r.node.gateway.AllAgents(messages.Query{Kind: kind, Phase: messages.PhasePaused}) {
			if err == nil && time.Since(row.Updated) >= r.kinds[kind] {
				late++
			}
		}
		if late > 0 {
			found = append(found, doctor.Finding{Check: "retention", Status: doctor.Warn,
				Detail: fmt.Sprintf("%d agents of kind %s have waited for a person for longer than such agents are kept (%s): they do not rest, and stay", late, kind, r.kinds[kind]),
				Remedy: "list them with reprise ls --phase paused; decide, abort or delete them; approval_timeout ends a wait by itself"})
		}
	}
	return found
}

func (r *retention) ask(ctx context.Context, a messages.AgentID, m any) (messages.Answer, error) {
	answer, err := r.node.host.ask(ctx, a, m)
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
