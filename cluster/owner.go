package cluster

import (
	"context"
	"fmt"
	"log/slog"
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
// those that owe work, wakes those whose timer is due, and pulls its inputs. It implements lease.Owner.
type owner struct {
	// may says why this node must not take a partition; nil: it may.
	may    func(context.Context) error
	host   *host
	log    eventlog.Follower
	inbox  *inbox.Inbox
	agents *projections.Agents
	// left is called when a partition is ours no more.
	left   func(messages.Partition)
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

func (o *owner) begin() *owner {
	o.waking = make(chan struct{}, atOnce)
	o.ctx, o.cancel = context.WithCancel(context.Background())
	for p := range o.partitions {
		o.partitions[p].told = make(chan struct{})
		o.partitions[p].more = make(chan struct{}, 1)
	}
	return o
}

// watchAll reads the heads of all partitions, so that the list of agents is
// whole here and a takeover finds them read.
func (o *owner) watchAll(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, messages.Partitions)
	for p := range messages.Partitions {
		wg.Go(func() { _, errs[p] = o.heads(ctx, messages.Partition(p)) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Prepare reads the partition's heads and what is left of those who pulled its
// inputs, and says no where this node must not take it. A partition without agents
// has no heads.
func (o *owner) Prepare(ctx context.Context, p messages.Partition) (messages.Epoch, error) {
	highest, err := o.heads(ctx, p)
	if err == nil {
		err = o.may(ctx)
	}
	if err != nil {
		return 0, err
	}
	pulled, err := o.inbox.Newest(ctx, p)
	if err != nil {
		return 0, fmt.Errorf("look up who pulled the inputs: %w", err)
	}
	return max(highest, pulled), nil
}

// heads reads the partition's heads, and goes on reading them for as long as the
// node lives.
func (o *owner) heads(ctx context.Context, p messages.Partition) (messages.Epoch, error) {
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
		select {
		case <-time.After(pause.NextBackOff()):
		case <-o.ctx.Done():
		}
	}
}

// saw takes notice of a head: the list of agents, what a taker must look at,
// and whether somebody who has been replaced wrote it.
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
		Agent: head.Agent, Phase: string(head.Phase), Turn: head.Turn, Waiting: head.Waiting,
		Events: head.Last, Epoch: head.Epoch, Updated: head.Time,
	})
	w.note(head)
	if head.Epoch < w.epoch { // A107: a late frame of an owner before us
		w.owe(w.epoch, head.Agent)
	}
}

// Acquired makes the partition this node's.
func (o *owner) Acquired(p messages.Partition, epoch messages.Epoch) error {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := o.host.open(p, epoch); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(o.ctx)
	done := make(chan struct{})
	stops := []func(){o.inbox.Pull(p, epoch)}
	if p == 0 {
		stops = append(stops, o.inbox.PullStray())
	}
	w.epoch = epoch
	w.timers.begin()
	w.stop = func() {
		cancel()
		for _, stop := range stops {
			stop()
		}
		<-done
	}
	owing := w.unsettled()
	w.owe(epoch, owing...)
	if len(owing) > 0 {
		o.logger.Info("agents that owe work are recovered", "partition", p, "epoch", epoch, "agents", len(owing))
	}
	go func() {
		defer close(done)
		o.recover(ctx, w, epoch)
	}()
	return nil
}

// recover wakes the agents that owe work or whose timer is due, as they become
// known, until ctx ends.
func (o *owner) recover(ctx context.Context, w *watched, epoch messages.Epoch) {
	var wakes sync.WaitGroup
	defer wakes.Wait()
	for {
		a, ok := w.await(ctx)
		if !ok {
			return
		}
		select {
		case o.waking <- struct{}{}:
		case <-ctx.Done():
			return
		}
		wakes.Go(func() {
			defer func() { <-o.waking }()
			switch o.wake(ctx, a) {
			case awake:
				w.woken(a)
			case notNow:
				time.AfterFunc(time.Second, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.owe(epoch, a)
				})
			}
		})
	}
}

// waking is what came of waking an agent.
type waking int

const (
	awake  waking = iota + 1
	notNow        // it is tried again
	never         // trying again is of no use
)

// wake activates an agent and waits until it has gone on.
func (o *owner) wake(ctx context.Context, a messages.AgentID) waking {
	if err := o.host.runtime.Serves(a.Kind); err != nil {
		if !o.partitions[a.Partition()].owes(a) {
			return never
		}
		o.logger.Warn("an agent owes work and cannot run here; it ends what it was told to end", "agent", a.String(), "error", err)
	}
	answer, err := o.host.ask(a, &actors.Wake{Agent: a})(ctx)
	if err == nil && answer.Err != nil {
		err = answer.Err
	}
	if err == nil || ctx.Err() != nil {
		return awake
	}
	came := never
	if messages.AsError(err).Code == messages.Unavailable {
		came = notNow
	}
	o.logger.Warn("an agent that owes work could not be recovered", "agent", a.String(), "error", err, "again", came == notNow)
	return came
}

// Lost stops everything that acts in the partition.
func (o *owner) Lost(p messages.Partition) {
	w := &o.partitions[p]
	w.mu.Lock()
	stop := w.stop
	w.stop, w.epoch, w.list = nil, 0, nil
	w.mu.Unlock()
	if stop != nil {
		stop()
	}
	o.host.shut(p)
	o.left(p)
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
