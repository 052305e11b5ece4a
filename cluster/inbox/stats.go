package inbox

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Stats are what has become of a partition's inputs on this node, and how many
// of them wait. The counters begin at zero with the node; the rest is as of now,
// and zero while the node does not pull the partition.
type Stats struct {
	Partition messages.Partition
	// Epoch under which the node pulls; 0: it does not.
	Epoch messages.Epoch
	// InHand are the messages that the node has been given and has not settled.
	// When it has as many as it may have, the server gives it no more.
	InHand int
	// Waiting are those of InHand that no agent looks at now: they wait behind
	// others for the same agent, or to be tried again.
	Waiting int
	// Held are those of Waiting whose agents' kind is not defined here.
	Held int
	// Oldest is when the oldest of InHand was stored; zero: there is none.
	Oldest time.Time
	// Pending are the stored messages that the node has not been given yet, as of
	// when it was given the newest or, while it has some in hand, a few seconds ago.
	Pending uint64
	// Applied counts the messages that agents took, Again those of them whose id
	// was applied before or that the server gave more than once, DeadLetters
	// those that were refused and kept, partition 0 also those that no partition takes,
	// Lost how often the consumer was made anew.
	Applied, Again, DeadLetters, Lost uint64
}

// counts are the counters of a partition.
type counts struct{ applied, again, letters, lost atomic.Uint64 }

// pulled are the partitions that this node has pulled, by number.
type pulled struct {
	mu  sync.Mutex
	all map[messages.Partition]*pulling
}

// pulling is a partition of pulled. lanes is nil while there is no consumer.
type pulling struct {
	counts
	pending atomic.Uint64
	mu      sync.Mutex
	epoch   messages.Epoch
	lanes   *lanes
}

func (p *pulled) of(number messages.Partition) *pulling {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[messages.Partition]*pulling)
	}
	if p.all[number] == nil {
		p.all[number] = &pulling{}
	}
	return p.all[number]
}

// by says who pulls now: an epoch, and the lanes of its consumer.
func (p *pulling) by(epoch messages.Epoch, l *lanes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch, p.lanes = epoch, l
	if l == nil {
		p.pending.Store(0)
	}
}

// Stats tells of the partitions that this node pulls or has pulled, by number.
// It asks nobody.
func (b *Inbox) Stats() []Stats {
	b.pulled.mu.Lock()
	all := maps.Clone(b.pulled.all)
	b.pulled.mu.Unlock()
	list := make([]Stats, 0, len(all))
	for _, number := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[number].stats(number))
	}
	return list
}

func (p *pulling) stats(number messages.Partition) Stats {
	p.mu.Lock()
	epoch, l := p.epoch, p.lanes
	p.mu.Unlock()
	s := Stats{
		Partition: number, Epoch: epoch, Pending: p.pending.Load(),
		Applied: p.applied.Load(), Again: p.again.Load(), DeadLetters: p.letters.Load(), Lost: p.lost.Load(),
	}
	if l != nil {
		l.stats(&s)
	}
	return s
}

// count counts what has become of a message.
func (p *pulling) count(what outcome) {
	switch what.did {
	case settled, deleted:
		p.applied.Add(1)
		if what.again {
			p.again.Add(1)
		}
	case refused:
		p.letters.Add(1)
	}
}

// askPending asks now and then how much the server has not delivered yet, while
// something is in hand: only then may it hold something back.
func (l *lanes) askPending(ctx context.Context, consumer jetstream.Consumer) {
	ticker := time.NewTicker(pendingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
		busy := len(l.inHand) > 0
		l.mu.Unlock()
		if !busy {
			continue
		}
		if info, err := consumer.Info(ctx); err == nil {
			l.pulling.pending.Store(info.NumPending)
		}
	}
}

// lose counts the loss of a consumer that nobody has stopped.
func (p *pulling) lose(ctx context.Context) {
	if ctx.Err() == nil {
		p.lost.Add(1)
	}
}

// about is what a log line about an agent carries.
func (b *Inbox) about(a messages.AgentID) slog.Attr {
	pulling := b.pulled.of(a.Partition())
	pulling.mu.Lock()
	defer pulling.mu.Unlock()
	return a.LogAttr(pulling.epoch)
}
