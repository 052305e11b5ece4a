package inbox

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// queues deliver to each agent its messages one by one while others continue. How many they hold
// is bounded by ackPending, what their bodies take by keptBytes: of those beyond it only the
// place in the stream is kept, and they are read again when their turn comes. A queue that waits
// takes no goroutine.
type queues struct {
	inbox  *Inbox
	part   *part
	from   source
	ctx    context.Context
	cancel context.CancelFunc

	working   sync.WaitGroup
	mu        sync.Mutex
	ended     bool // nothing more is begun
	all       map[lane]*queue
	ready     []*queue            // whose first message can be given, in the order of their turns
	giving    int                 // how many messages agents are being given
	unsettled map[uint64]struct{} // sequences
	kept      int                 // bytes of bodies
	warned    map[string]bool     // kinds
}

const (
	// keptBytes is what the bodies of a partition's messages may take.
	keptBytes = 8 << 20
	// bodyRest is what a body takes beside its bytes.
	bodyRest = 512
	// givenAtOnce is how many agents of a partition are given a message at once.
	givenAtOnce = 64
	// settleIn is how long what agents have been given may take to be settled when the
	// partition is given up.
	settleIn = 50 * time.Millisecond
)

// lane is where messages wait for their turn. What agents send to one another has
// lanes of its own: what is held until the agent's kind is known here must not be in
// the way of what ends the agent.
type lane struct {
	agent messages.AgentID
	of    string // one of lanesOf
}

// peerTypes are the types of what agents alone send. Each has a lane, and so have other
// commands of agents (peer) and all that comes from elsewhere (the empty one).
var (
	peerTypes = messages.CommandTypes(messages.FromAgent)
	lanesOf   = append([]string{"", "peer"}, peerTypes...)
)

// queue holds the messages of a lane; the first one is being given, or is to be
// given again.
type queue struct {
	lane
	items []item
	again *time.Timer // until the first may be given again; else nil
	trial trial
	// over is the sequence of the newest delete of the agent: what was published before it
	// is settled.
	over uint64
}

// item is a message in a queue: where it is in the stream, and what it says if
// there was room for that.
type item struct {
	place
	body *message
}

// laneOf returns where a message waits, by the form in which messages.Body writes it.
func laneOf(a messages.AgentID, family string, data []byte) lane {
	if family != "peer" {
		return lane{agent: a}
	}
	for _, of := range peerTypes {
		if bytes.HasPrefix(data, []byte(`{"type":"`+of+`"`)) {
			return lane{a, of}
		}
	}
	return lane{a, family}
}

func (b *Inbox) queues(ctx context.Context, p *part, from source) *queues {
	ctx, cancel := context.WithCancel(ctx)
	return &queues{
		inbox: b, part: p, from: from, ctx: ctx, cancel: cancel,
		all: make(map[lane]*queue), unsettled: make(map[uint64]struct{}), warned: make(map[string]bool),
	}
}

// take puts a message into its agent's queue. One that is there already, sent
// again because its agent takes longer than ackWait, is left out.
func (l *queues) take(msg *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.unsettled[msg.seq]; again || l.ended {
		return
	}
	l.unsettled[msg.seq] = struct{}{}
	family, a, _ := l.inbox.cfg.Subjects.ParseInbox(msg.subject) // refused in its turn
	in := laneOf(a, family, msg.data)
	q := l.all[in]
	if q == nil {
		q = &queue{lane: in}
		l.all[in] = q
		l.begin(q)
	}
	it := item{place: msg.place}
	if l.kept+msg.size() <= keptBytes {
		it.body = msg
		l.kept += msg.size()
	}
	q.items = append(q.items, it)
}

// begin gives a queue its turn, and a goroutine if all are at work. l.mu is held.
func (l *queues) begin(q *queue) {
	l.ready = append(l.ready, q)
	if l.giving < givenAtOnce && !l.ended {
		l.giving++
		l.working.Go(l.work)
	}
}

// work delivers the first messages of ready queues to their agents, until none is ready.
func (l *queues) work() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ready) > 0 && !l.ended {
		q := l.ready[0]
		l.ready = l.ready[1:]
		what, it := outcome{did: gone}, q.items[0]
		if it.seq >= q.over {
			l.mu.Unlock()
			what = l.give(q, it)
			l.part.count(what)
			l.mu.Lock()
		}
		l.after(q, it, what)
	}
	l.giving--
}

// give delivers a message to its agent.
func (l *queues) give(q *queue, it item) outcome {
	if it.body == nil {
		body, err := l.from.again(l.ctx, it.place)
		if err != nil {
			return outcome{did: again, why: messages.AsError(err)}
		}
		if body == nil {
			return outcome{did: gone}
		}
		it.body = body
	}
	return l.inbox.apply(l.ctx, q.agent, it.body, &q.trial)
}

// after notes what has become of a queue's first message. l.mu is held.
func (l *queues) after(q *queue, it item, what outcome) {
	switch what.did {
	case left:
		return
	case again:
		l.later(q, what)
		return
	case gone:
		l.inbox.settle(it.place, acknowledged) // the consumer may still wait for it
	}
	if what.did == deleted || !l.inbox.serves(q.agent.Kind) {
		l.stir(q.agent, it.seq, what.did == deleted)
	}
	if it.body != nil {
		l.kept -= it.body.size()
	}
	delete(l.unsettled, it.seq)
	q.items[0] = item{}
	q.items, q.trial = q.items[1:], trial{}
	if len(q.items) == 0 {
		delete(l.all, q.lane)
		return
	}
	l.ready = append(l.ready, q)
}

// stir retries what waits for an agent: what it was given may have changed what becomes
// of that. What was published before its delete is settled. l.mu is held.
func (l *queues) stir(a messages.AgentID, seq uint64, deleted bool) {
	for _, of := range lanesOf {
		if q := l.all[lane{a, of}]; q != nil {
			if deleted {
				q.over = seq
			}
			l.resume(q)
		}
	}
}

// later has a queue's first message given again. l.mu is held.
func (l *queues) later(q *queue, what outcome) {
	if l.ended {
		return
	}
	held := !l.inbox.serves(q.agent.Kind)
	if held && !l.warned[q.agent.Kind] {
		l.warned[q.agent.Kind] = true
		l.inbox.cfg.Logger.Warn("inputs for a kind of agent that is not defined here are held: have every node define every kind", "kind", q.agent.Kind, "reason", what.why.Message)
	}
	q.again = time.AfterFunc(q.trial.pause(held || q.trial.failures > 0 && what.why.Code == messages.Internal), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.resume(q)
	})
}

// resume retries a queue's first message, if it waits for that. l.mu is held.
func (l *queues) resume(q *queue) {
	if q.again == nil || l.ended {
		return
	}
	q.again.Stop()
	q.again = nil
	l.begin(q)
}

// end begins nothing more, gives what agents have been given a moment to be settled, and
// returns when nothing is under way. What is not settled is left in the stream.
func (l *queues) end() {
	l.mu.Lock()
	l.ended = true
	for _, q := range l.all {
		if q.again != nil {
			q.again.Stop()
		}
	}
	l.mu.Unlock()
	late := time.AfterFunc(settleIn, l.cancel)
	l.working.Wait()
	late.Stop()
	l.cancel()
}

// inHand returns how many messages the server waits for.
func (l *queues) inHand() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.unsettled)
}

func (l *queues) stats(s *Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.InHand = len(l.unsettled)
	s.Waiting = max(0, s.InHand-l.giving)
	for _, q := range l.all {
		if q.again != nil && !l.inbox.serves(q.agent.Kind) {
			s.Held += len(q.items)
		}
		if first := q.items[0].stored; s.Oldest.IsZero() || first.Before(s.Oldest) {
			s.Oldest = first.UTC()
		}
	}
}
