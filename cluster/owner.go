package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/inbox"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// owner does what owning a partition means: it hosts its agents, recovers
// those that owe work, and pulls its inputs. It implements lease.Owner.
type owner struct {
	host   *host
	log    eventlog.Follower
	inbox  *inbox.Inbox
	agents *projections.Agents
	logger *slog.Logger

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	// waking bounds how many agents are recovered at once.
	waking chan struct{}

	partitions [messages.Partitions]watched
}

// atOnce is how many agents are recovered at the same time: enough to keep the
// log busy, too few to flood a model provider after a crash.
const atOnce = 64

func newOwner(h *host, log eventlog.Follower, in *inbox.Inbox, agents *projections.Agents, logger *slog.Logger) *owner {
	o := &owner{host: h, log: log, inbox: in, agents: agents, logger: logger, waking: make(chan struct{}, atOnce)}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	for p := range o.partitions {
		o.partitions[p].told = make(chan struct{})
	}
	return o
}

// watched is a partition whose heads this node reads.
type watched struct {
	mu        sync.Mutex
	begun     bool
	told      chan struct{} // closed when the past has been read
	isTold    bool
	highest   messages.Epoch
	newest    time.Time
	unsettled map[messages.AgentID]eventlog.Head // those that a taker must look at
	epoch     messages.Epoch                     // ours; 0: the partition is not
	stops     []func()
}

// Prepare reads the partition's heads, and goes on reading them for as long as
// the node lives.
func (o *owner) Prepare(ctx context.Context, p messages.Partition) (messages.Epoch, error) {
	w := &o.partitions[p]
	w.mu.Lock()
	if !w.begun {
		w.begun = true
		o.running.Go(func() { o.follow(p) })
	}
	w.mu.Unlock()
	select {
	case <-w.told:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest, nil
}

// follow reads the partition's heads; a reader that fails begins anew.
func (o *owner) follow(p messages.Partition) {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 2 * time.Second
	for o.ctx.Err() == nil {
		for head, err := range o.log.Follow(o.ctx, p) {
			if err != nil {
				if o.ctx.Err() == nil {
					o.logger.Warn("the heads of a partition cannot be read; it is tried again", "partition", p, "error", err)
				}
				break
			}
			pause.Reset()
			o.saw(p, head)
		}
		t := time.NewTimer(pause.NextBackOff())
		select {
		case <-t.C:
		case <-o.ctx.Done():
			t.Stop()
		}
	}
}

// saw takes notice of a head: the list of agents, and whether somebody who has
// been replaced wrote it.
func (o *owner) saw(p messages.Partition, head eventlog.Head) {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case head.Agent == messages.AgentID{}:
		if !w.isTold {
			w.isTold = true
			close(w.told)
		}
		return
	case head.Foreign:
		o.logger.Warn("a message that is no frame stands on an agent's log subject; it is skipped", "agent", head.Agent.String(), "sequence", head.Seq)
		return
	}
	o.agents.Apply(projections.Agent{
		Agent: head.Agent, Phase: string(head.Phase), Turn: head.Turn, Events: head.Last, Epoch: head.Epoch, Updated: head.Time,
	})
	w.highest = max(w.highest, head.Epoch)
	if head.Time.After(w.newest) {
		w.newest = head.Time
	}
	switch {
	case w.epoch == 0:
		w.note(head)
	case head.Epoch < w.epoch: // A107: a late frame of an owner before us
		go o.wake(head.Agent)
	}
}

// note remembers a head that a taker of the partition must look at: the agent
// owes work, or may owe a reply for a turn that has just ended.
func (w *watched) note(head eventlog.Head) {
	if head.Open || slices.ContainsFunc(head.Types, ends) {
		if w.unsettled == nil {
			w.unsettled = make(map[messages.AgentID]eventlog.Head)
		}
		w.unsettled[head.Agent] = head
		return
	}
	delete(w.unsettled, head.Agent)
}

func ends(eventType string) bool {
	return eventType == "turn.completed" || eventType == "turn.failed" || eventType == "turn.aborted"
}

// replyWindow is how long before the partition's newest frame a turn may have
// ended for its replies to be sent again: their sending takes milliseconds.
const replyWindow = 10 * time.Second

// Acquired makes the partition this node's.
func (o *owner) Acquired(p messages.Partition, epoch messages.Epoch) {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := o.host.open(p, epoch); err != nil {
		o.logger.Error("a partition could not be opened", "partition", p, "error", err)
		return
	}
	w.epoch = epoch
	w.stops = []func(){o.inbox.Pull(p)}
	if p == 0 {
		w.stops = append(w.stops, o.inbox.PullStray())
	}
	var owing []eventlog.Head
	for _, head := range w.unsettled {
		if head.Open || head.Time.After(w.newest.Add(-replyWindow)) {
			owing = append(owing, head)
		}
	}
	w.unsettled = nil
	slices.SortFunc(owing, func(a, b eventlog.Head) int { return a.Time.Compare(b.Time) })
	if len(owing) > 0 {
		o.logger.Info("agents that owe work are recovered", "partition", p, "epoch", epoch, "agents", len(owing))
		o.running.Go(func() {
			for _, head := range owing {
				o.wake(head.Agent)
			}
		})
	}
}

// wake activates an agent and waits until it has gone on.
func (o *owner) wake(a messages.AgentID) {
	select {
	case o.waking <- struct{}{}:
	case <-o.ctx.Done():
		return
	}
	wait := o.host.ask(a, &actors.Wake{Agent: a})
	go func() {
		defer func() { <-o.waking }()
		if answer, err := wait(); err != nil || answer.Err != nil {
			o.logger.Warn("an agent that owes work could not be recovered", "agent", a.String(), "error", err, "refusal", answer.Err)
		}
	}()
}

// Lost stops everything that acts in the partition.
func (o *owner) Lost(p messages.Partition) {
	w := &o.partitions[p]
	w.mu.Lock()
	stops := w.stops
	w.stops, w.epoch = nil, 0
	w.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	o.host.shut(p)
}

// epoch is the one under which this node owns the partition; 0 if it does not.
func (o *owner) epoch(p messages.Partition) messages.Epoch {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epoch
}

// close stops reading heads.
func (o *owner) close() {
	o.cancel()
	o.running.Wait()
}
