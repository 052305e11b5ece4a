package inbox

import (
	"time"

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
	// when it was given the newest or, while it is given no more, a few seconds ago.
	Pending uint64
	// Applied counts the messages that agents took, Again those of them whose id
	// was applied before or that the server gave more than once, DeadLetters
	// those that were refused and kept, partition 0 also those that no partition takes,
	// Lost how often the consumer was replaced.
	Applied, Again, DeadLetters, Lost uint64
}

// Stats returns those of all partitions, by number. It asks no server.
func (b *Inbox) Stats() (list [messages.Partitions]Stats) {
	for number := range b.parts {
		p := &b.parts[number]
		list[number] = Stats{
			Partition: messages.Partition(number), Epoch: messages.Epoch(p.epoch.Load()), Pending: p.pending.Load(),
			Applied: p.applied.Load(), Again: p.again.Load(), DeadLetters: p.letters.Load(), Lost: p.lost.Load(),
		}
		if q := p.queues.Load(); q != nil {
			q.stats(&list[number])
		}
	}
	return list
}
