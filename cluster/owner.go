package cluster

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/inbox"
	"github.com/reprise-dev/reprise/cluster/ownership"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// owner does what owning a partition means: it hosts its agents, recovers
// those that owe work, wakes those whose timer is due, and pulls its inputs. It implements ownership.Owner.
type owner struct {
	// may says why this node must not take a partition; nil: it may.
	may func(context.Context) error
	// check returns why a partition must not be taken as its stream is; nil: it may.
	check func(context.Context, messages.Partition) error
	// damaged returns what the agents of a partition answer whose log has lost messages; nil: it
	// has not.
	damaged func(messages.Partition) *messages.Error
	host    *host
	log     heads
	index   *agentsIndex
	inbox   *inbox.Inbox
	agents  *projections.Agents
	// came is called when a partition is ours, left when it is ours no more.
	came   func(messages.Partition)
	left   func(messages.Partition)
	logger *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	// waking bounds how many are recovered at once.
	waking slots

	recovered recovered

	partitions [messages.Partitions]partition
}

// heads is what an owner reads of the log itself.
type heads interface {
	Follow(ctx context.Context, p messages.Partition) iter.Seq2[eventlog.Stored, error]
	ReadAhead(ctx context.Context, p messages.Partition, agents []messages.AgentID) iter.Seq2[eventlog.Newest, error]
}

// atOnce is how many agents are recovered at the same time: enough to keep the
// log busy. What they ask of model providers has a pace of its own, see
// actors.Config.RecoverRate.
const atOnce = 128

func (o *owner) begin() *owner {
	o.waking.free = atOnce
	o.ctx, o.cancel = context.WithCancel(context.Background())
	for p := range o.partitions {
		o.partitions[p].more = make(chan struct{}, 1)
	}
	return o
}

// Prepare reads the partition's heads and what is left of those who pulled its
// inputs, and says no where this node must not take it. A partition without agents
// has no heads. Heads that take longer to read than ctx lasts are read on for the next attempt.
func (o *owner) Prepare(ctx context.Context, p messages.Partition) (_ messages.Epoch, err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			o.forget(p)
		}
	}()
	if err := o.check(ctx, p); err != nil {
		return 0, err
	}
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

// heads reads the partition's heads, and keeps reading them until they are forgotten.
func (o *owner) heads(ctx context.Context, p messages.Partition) (messages.Epoch, error) {
	w := &o.partitions[p]
	w.mu.Lock()
	if w.told == nil {
		var reading context.Context
		reading, w.end = context.WithCancel(o.ctx)
		w.told, w.read = make(chan struct{}), make(chan struct{})
		go o.follow(reading, p, w.read)
	}
	told := w.told
	w.mu.Unlock()
	select {
	case <-told:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest, nil
}

// follow reads the partition's heads, and closes done when it has ended; a reader that fails
// is replaced.
func (o *owner) follow(ctx context.Context, p messages.Partition, done chan<- struct{}) {
	defer close(done)
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 2 * time.Second
	for ctx.Err() == nil {
		o.index.forgets(p)
		for m, err := range o.log.Follow(ctx, p) {
			if err != nil {
				if ctx.Err() == nil {
					o.logger.Warn("the heads of a partition cannot be read; it is tried again", "partition", p, "error", err)
				}
				break
			}
			pause.Reset()
			o.index.hears(p, m)
			o.saw(p, m.Head)
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

// forget ends the reading of a partition's heads, and drops them.
func (o *owner) forget(p messages.Partition) {
	w := &o.partitions[p]
	w.mu.Lock()
	reading, end := w.read, w.end
	w.mu.Unlock()
	if reading == nil {
		return
	}
	end()
	<-reading
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = known{}
	o.agents.Drop(p)
	o.index.forgets(p)
}

// saw takes notice of a head: the list of agents, what a taker must look at, and whether an owner
// that has been replaced wrote it.
func (o *owner) saw(p messages.Partition, head eventlog.Head) {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case head.Agent == messages.AgentID{}:
		select {
		case <-w.told: // a reader that failed was replaced
		default:
			close(w.told)
		}
		return
	case head.Foreign:
		o.logger.Warn("a message that is no frame stands on an agent's log subject; it is skipped", head.Agent.LogAttr(w.epoch), "sequence", head.Seq)
		return
	}
	o.agents.Apply(projections.Agent{
		Agent: head.Agent, Phase: head.Phase, Turn: head.Turn, Waiting: head.Waiting, LastFailed: head.Failed,
		Events: head.Last, Epoch: head.Epoch, Updated: head.Time,
	})
	w.note(head)
	if head.Epoch < w.epoch { // A107: a late frame of an owner before us
		w.owe(w.epoch, wakeup{head.Agent, head.Time})
	}
}

// Acquired makes the partition this node's.
func (o *owner) Acquired(p messages.Partition, epoch messages.Epoch) error {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	if why := o.damaged(p); why != nil {
		if err := o.host.openDamaged(p, epoch, why); err != nil {
			return err
		}
		w.epoch, w.damaged = epoch, true
		if p == 0 {
			w.stop = o.inbox.PullStray()
		}
		o.came(p)
		return nil
	}
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
	woken := w.toWake()
	w.owe(epoch, woken...)
	o.recovered.tell(o.logger, p, epoch, len(w.open), len(woken)-len(w.open))
	o.came(p)
	go func() {
		defer close(done)
		o.recover(ctx, w, epoch)
	}()
	return nil
}

// recover wakes the agents that owe work or whose timer is due, as they become
// known, until ctx ends.
func (o *owner) recover(ctx context.Context, w *partition, epoch messages.Epoch) {
	var wakes sync.WaitGroup
	defer wakes.Wait()
	for {
		crowd := w.await(ctx)
		if len(crowd) == 0 {
			return
		}
		ahead := o.readAhead(ctx, crowd)
		for _, next := range crowd {
			if !o.waking.take(ctx, next.since) {
				return
			}
			newest := ahead[next.agent]
			delete(ahead, next.agent) // it may be large
			wakes.Go(func() {
				defer o.waking.leave()
				o.recoverOne(ctx, w, epoch, next, newest)
			})
		}
	}
}

func (o *owner) recoverOne(ctx context.Context, w *partition, epoch messages.Epoch, next wakeup, ahead *eventlog.Newest) {
	switch o.wake(ctx, &actors.Activate{Agent: next.agent, Ahead: ahead}) {
	case awake:
		w.woken(next.agent)
	case notNow:
		time.AfterFunc(time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.owe(epoch, next)
		})
	}
}

const (
	// crowded is how many agents of a partition are looked up together, at most, and
	// fewCrowd how many fewer look themselves up.
	crowded, fewCrowd = 128, 4
	// aheadHeld is how much of what they have written is held meanwhile for a partition,
	// in bytes; the others look themselves up.
	aheadHeld = 1 << 20
)

// readAhead reads ahead for agents that are about to be woken. What it does not return they read
// themselves.
func (o *owner) readAhead(ctx context.Context, crowd []wakeup) map[messages.AgentID]*eventlog.Newest {
	if len(crowd) < fewCrowd {
		return nil
	}
	agents := make([]messages.AgentID, len(crowd))
	for i, next := range crowd {
		agents[i] = next.agent
	}
	ahead, held := make(map[messages.AgentID]*eventlog.Newest, len(crowd)), 0
	for newest, err := range o.log.ReadAhead(ctx, agents[0].Partition(), agents) {
		if err != nil {
			o.logger.Debug("agents that are recovered are not read ahead", "partition", agents[0].Partition(), "error", err)
			break
		}
		ahead[newest.Agent] = &newest
		if held += newest.Size; held > aheadHeld {
			break
		}
	}
	return ahead
}

// waking is what came of waking an agent.
type waking int

const (
	awake  waking = iota + 1
	notNow        // it is tried again
	never         // trying again is of no use
)

// wake activates an agent and waits until it has gone on.
func (o *owner) wake(ctx context.Context, w *actors.Activate) waking {
	a := w.Agent
	if err := o.host.runtime.Serves(a.Kind); err != nil {
		if !o.partitions[a.Partition()].owes(a) {
			return never
		}
		o.logger.Warn("an agent has open work and its kind is not configured here; only commands that end or delete something are carried out", a.LogAttr(o.epoch(a.Partition())), "error", err)
	}
	answer, err := o.host.ask(ctx, a, w)
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
	o.logger.Warn("an agent with open work could not be recovered", a.LogAttr(o.epoch(a.Partition())), "error", err, "again", came == notNow)
	return came
}

// Drain has nothing begin in the partition that must not be cut off, and waits until
// nothing of the kind is under way, which it says.
func (o *owner) Drain(ctx context.Context, p messages.Partition) (quiet bool) {
	return o.host.drain(ctx, p)
}

// Owns reports whether a partition is this node's, and whether it refuses commands
// there because its log has lost messages.
func (o *owner) Owns(p messages.Partition) (owned, damaged bool) {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epoch != 0, w.damaged
}

// owned are the partitions that an owner has by its leases.
type owned struct {
	*owner
	ownership *ownership.Ownership
}

// GiveUp gives a partition up, to be taken again.
func (o owned) GiveUp(p messages.Partition) { o.ownership.GiveUp(p) }

// Stay ends a drain: the partition is not given up after all.
func (o *owner) Stay(p messages.Partition) { o.host.cancelDrain(p) }

// Lost stops everything that acts in the partition. Agents that do not stop in ten
// seconds are left to the log's fence.
func (o *owner) Lost(p messages.Partition) {
	w := &o.partitions[p]
	w.mu.Lock()
	stop, owned := w.stop, w.epoch != 0
	w.stop, w.epoch, w.damaged, w.list = nil, 0, false, nil
	w.mu.Unlock()
	if stop != nil {
		stop()
	}
	o.host.shut(p)
	o.forget(p)
	if owned {
		o.left(p)
	}
}

// openAgents returns how many of a partition's agents owe work.
func (o *owner) openAgents(p messages.Partition) int {
	w := &o.partitions[p]
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
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
	for p := range messages.Partition(messages.Partitions) {
		o.forget(p)
	}
	o.recovered.flush(o.logger)
}
