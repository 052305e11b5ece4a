package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// carryOut begins what the plan wants. Its error is why the leases must be read again first.
func (o *Ownership) carryOut() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, shown := o.seen[o.self.ID]; o.released || !shown || !o.inTime() {
		return nil
	}
	if o.reread {
		return errors.New("this node's membership had lapsed, or an agent here has met a newer owner")
	}
	members := len(o.seen)
	var lost []string
	for _, st := range o.plan(time.Now(), !o.unsure) {
		if st.do == lose {
			lost = append(lost, st.String())
		}
		o.begin(st)
	}
	if lost != nil {
		slices.Sort(lost)
		o.cfg.Logger.Warn("this node has stepped down: partitions were taken by other nodes, or their leases are gone; what it still does there is refused",
			"member", o.self.ID, "partitions@epochs", strings.Join(lost, " "))
	}
	o.unsure = o.unsure && !o.sure()
	settled := o.settled || o.count(func(p *partition) bool { return p.doing == take }) == 0
	if o.count(func(p *partition) bool { return p.drained || p.doing == drain || p.doing == handOver }) == 0 {
		o.logHanded()
	}
	if settled != o.settled || len(o.seen) != members {
		o.settled = settled
		o.change()
	}
	return nil
}

// logHanded logs what was handed over: however many partitions go at once, that is one line.
// o.mu is held.
func (o *Ownership) logHanded() {
	if len(o.handed) > 0 {
		slices.Sort(o.handed)
		o.cfg.Logger.Info("partitions were handed over", "partitions", len(o.handed), "to", o.handedTo, "partitions@epochs", strings.Join(o.handed, " "))
		o.handed, o.handedTo = nil, make(map[string]int)
	}
}

// begin does a step in the background; meanwhile nothing else is done about its partition.
// o.mu is held.
func (o *Ownership) begin(st step) {
	at, ctx := &o.partitions[st.p], o.work
	switch limit := patience; st.do {
	case hurry:
		at.cancel()
		return
	case drain:
		if o.self.Draining {
			limit = o.cfg.DrainLimit
		}
		ctx, at.cancel = context.WithTimeout(ctx, limit)
	}
	o.works.Go(func() {
		err := o.do(ctx, st)
		if err != nil && o.work.Err() == nil && (st.do != take || !errors.Is(err, jetstream.ErrKeyExists)) { // else another was first
			o.cfg.Logger.Warn("a partition could not be taken, or handed over; it is tried again", "partition", st.p, "epoch", st.epoch, "error", err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if at.doing = 0; err != nil {
			at.later = time.Now().Add(heartbeat)
		}
		o.change()
	})
}

func (o *Ownership) do(ctx context.Context, st step) error {
	switch st.do {
	case take:
		return o.take(ctx, st)
	case drain:
		quiet := o.cfg.Owner.Drain(ctx, st.p)
		o.mu.Lock()
		defer o.mu.Unlock()
		at := &o.partitions[st.p]
		at.cancel()
		at.drained, at.quiet = true, quiet
	case stay:
		o.cfg.Owner.Stay(st.p)
		o.cfg.Logger.Info("a partition stays for now", "partition", st.p, "epoch", st.epoch, "meant for", st.to)
	case lose:
		o.cfg.Owner.Lost(st.p)
	case handOver:
		o.cfg.Owner.Lost(st.p)
		return o.free(ctx, st)
	}
	return nil
}

// take takes a partition whose lease was seen to be free.
func (o *Ownership) take(ctx context.Context, st step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	highest, err := o.cfg.Owner.Prepare(ctx, st.p)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			o.cfg.Owner.Lost(st.p)
		}
	}()
	l, err := o.write(ctx, st, lease{Member: o.self.ID, Floor: max(highest, st.epoch) + 1})
	if err != nil {
		return err
	}
	if err = o.cfg.Owner.Acquired(st.p, l.epoch()); err != nil {
		return err
	}
	o.cfg.Logger.Debug("a partition is this node's", "partition", st.p, "epoch", l.epoch())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partitions[st.p].revision, o.partitions[st.p].epoch = l.revision, l.epoch()
	return nil
}

// free frees the lease of a partition where nothing acts any more, also after ctx has ended.
func (o *Ownership) free(ctx context.Context, st step) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, err := o.write(ctx, st, lease{Floor: st.epoch, Next: st.to})
	if err == nil && st.to != "" && st.to != o.self.ID {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.handed = append(o.handed, st.String())
		o.handedTo[st.to]++
	}
	return err
}

// write puts a lease in the place of the one that a step was decided on.
func (o *Ownership) write(ctx context.Context, st step, l lease) (lease, error) {
	o.mu.Lock()
	kv, session := o.leases, o.session
	o.mu.Unlock()
	b, err := json.Marshal(l)
	if err != nil {
		return l, err
	}
	if l.revision, err = kv.Update(ctx, "p."+st.p.String(), b, st.revision); err != nil {
		return l, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := &o.partitions[st.p]; o.session == session && at.lease.revision < l.revision { // else the watch shows what came of it
		at.lease, at.wrote = l, session
	}
	return l, nil
}
