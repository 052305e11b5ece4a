package inbox

import (
	"context"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// lanes gives each agent its messages one by one while others go on. How many
// it holds is bounded by ackPending.
type lanes struct {
	inbox *Inbox
	ctx   context.Context

	running sync.WaitGroup
	mu      sync.Mutex
	waiting map[messages.AgentID][]message
	inHand  map[uint64]struct{} // sequences that are not settled
	// deleted are the sequences of the newest deletes: what was published before
	// one of them is over, however late it comes again.
	deleted map[messages.AgentID]uint64
}

// take puts a message into its agent's lane. One that is there already, sent
// again because its agent takes longer than ackWait, is left out: it would only
// make the lane longer.
func (l *lanes) take(msg message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.inHand[msg.seq]; again {
		return
	}
	l.inHand[msg.seq] = struct{}{}
	_, a, err := l.inbox.cfg.Subjects.ParseInbox(msg.Subject())
	if err != nil {
		l.running.Go(func() {
			defer l.settled(msg)
			l.inbox.deadLetter(l.ctx, msg, a, messages.AsError(err))
		})
		return
	}
	queue, running := l.waiting[a]
	l.waiting[a] = append(queue, msg)
	if !running {
		l.running.Go(func() { l.run(a) })
	}
}

func (l *lanes) settled(msg message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inHand, msg.seq)
}

// run works off an agent's messages; the entry in waiting stays for as long as
// it does.
func (l *lanes) run(a messages.AgentID) {
	for {
		l.mu.Lock()
		queue := l.waiting[a]
		if len(queue) == 0 || l.ctx.Err() != nil {
			delete(l.waiting, a)
			l.mu.Unlock()
			return
		}
		msg := queue[0]
		l.waiting[a] = queue[1:]
		over := msg.seq < l.deleted[a]
		l.mu.Unlock()
		if over {
			_ = msg.Ack() // it is gone from the stream already
		} else if l.inbox.apply(l.ctx, a, msg) {
			l.mu.Lock()
			l.deleted[a] = msg.seq
			l.mu.Unlock()
		}
		l.settled(msg)
	}
}
