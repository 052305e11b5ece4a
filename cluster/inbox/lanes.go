package inbox

import (
	"bytes"
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
	waiting map[lane][]message
	inHand  map[uint64]struct{} // sequences that are not settled
	// deleted are the sequences of the newest deletes: what was published before
	// one of them is over, however late it comes again.
	deleted map[messages.AgentID]uint64
}

// lane is where messages wait for their turn. What agents tell one another has
// lanes of its own: an agent that is being deleted takes nothing else until its
// children have said that they have ended, so that must not wait behind it; and
// what is held until the agent's kind is known here must not be in the way of what
// ends the agent.
type lane struct {
	agent messages.AgentID
	of    string // task, recall or report, peer for what else an agent tells; empty: the others
}

// laneOf is where a message waits, by the form in which messages.Body writes it.
func laneOf(a messages.AgentID, family string, data []byte) lane {
	if family != "peer" {
		return lane{agent: a}
	}
	for _, of := range []string{messages.Task{}.CommandType(), messages.Recall{}.CommandType(), messages.Report{}.CommandType()} {
		if bytes.HasPrefix(data, []byte(`{"type":"`+of+`"`)) {
			return lane{a, of}
		}
	}
	return lane{a, family}
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
	family, a, err := l.inbox.cfg.Subjects.ParseInbox(msg.Subject())
	if err != nil {
		l.running.Go(func() {
			defer l.settled(msg)
			l.inbox.deadLetter(l.ctx, msg, a, messages.AsError(err))
		})
		return
	}
	in := laneOf(a, family, msg.Data())
	queue, running := l.waiting[in]
	l.waiting[in] = append(queue, msg)
	if !running {
		l.running.Go(func() { l.run(in) })
	}
}

func (l *lanes) settled(msg message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inHand, msg.seq)
}

// run works off the messages of a lane; the entry in waiting stays for as long as
// it does.
func (l *lanes) run(in lane) {
	for {
		l.mu.Lock()
		queue := l.waiting[in]
		if len(queue) == 0 || l.ctx.Err() != nil {
			delete(l.waiting, in)
			l.mu.Unlock()
			return
		}
		msg := queue[0]
		l.waiting[in] = queue[1:]
		over := msg.seq < l.deleted[in.agent]
		l.mu.Unlock()
		if over {
			_ = msg.Ack() // it is gone from the stream already
		} else if l.inbox.apply(l.ctx, in.agent, msg) {
			l.mu.Lock()
			l.deleted[in.agent] = msg.seq
			l.mu.Unlock()
		}
		l.settled(msg)
	}
}
