package inbox

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// lanes gives each agent its messages one by one while others go on. How many
// it holds is bounded by ackPending, what their bodies take by keptBytes: of
// those beyond it only the place in the stream is kept, and they are read again
// when their turn comes. One that waits takes no goroutine.
type lanes struct {
	inbox   *Inbox
	ctx     context.Context
	cancel  context.CancelFunc
	pulling *pulling
	// read gives a message that is in the stream; nil: it is there no more.
	read func(context.Context, item) (*message, error)
	// giving bounds how many messages agents look at.
	giving chan struct{}

	running sync.WaitGroup
	mu      sync.Mutex
	ended   bool // nothing more is begun
	all     map[lane]*queue
	inHand  map[uint64]int64 // when those that are not settled were stored, by sequence
	// told are the newest that were settled, some more than once heard of: an
	// acknowledgement on the way to a leader that has died is lost.
	told   []string
	oldest int             // in told, once it is full
	kept   int             // bytes of bodies that wait
	held   int             // queues that wait for their kind
	warned map[string]bool // kinds
	// deleted are the sequences of the newest deletes: what was published before
	// one of them is over, however late it comes again. deletes are they in their order:
	// those of agents for whom nothing waits are forgotten after ackWait.
	deleted map[messages.AgentID]uint64
	deletes []deletion
}

const (
	// keptBytes is what the bodies of a partition's waiting messages may take.
	keptBytes = 8 << 20
	// bodyRest is what a body takes beside its bytes.
	bodyRest = 512
	// givenAtOnce is how many agents of a partition look at a message at once.
	givenAtOnce = 64
	// toldAtMost is how many acknowledgements can be sent again.
	toldAtMost = 4096
	// settleIn is how long what agents look at may take to be settled when the
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

// queue are the messages of a lane; the first one is being given, or is to be
// given again.
type queue struct {
	lane
	items []item
	again *time.Timer // nil: the first is being given
	held  bool        // until somebody knows the kind
	trial trial
}

// item is a message in a queue: where it is in the stream, and what it says if
// there was room for that.
type item struct {
	place
	body *message
}

// trial is what has become of a queue's first message so far.
type trial struct {
	tries    int
	failures int // of the agent itself
	pause    *backoff.ExponentialBackOff
}

// laneOf is where a message waits, by the form in which messages.Body writes it.
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

func (b *Inbox) lanes(ctx context.Context, p *pulling, read func(context.Context, item) (*message, error)) *lanes {
	ctx, cancel := context.WithCancel(ctx)
	return &lanes{
		inbox: b, ctx: ctx, cancel: cancel, pulling: p, read: read, giving: make(chan struct{}, givenAtOnce), all: make(map[lane]*queue),
		inHand: make(map[uint64]int64), warned: make(map[string]bool), deleted: make(map[messages.AgentID]uint64),
	}
}

// take puts a message into its agent's lane. One that is there already, sent
// again because its agent takes longer than ackWait, is left out: it would only
// make the lane longer.
func (l *lanes) take(msg *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.inHand[msg.seq]; again || l.ended {
		return
	}
	l.inHand[msg.seq] = msg.stored.UnixNano()
	family, a, err := l.inbox.cfg.Subjects.ParseInbox(msg.subject)
	if err != nil {
		l.running.Go(func() {
			defer l.settled(msg.place)
			if l.inbox.refuse(l.ctx, a, msg, "", messages.AsError(err)).did == refused {
				l.pulling.letters.Add(1)
			}
		})
		return
	}
	in := laneOf(a, family, msg.data)
	q, waits := l.all[in]
	if !waits {
		q = &queue{lane: in}
		l.all[in] = q
	}
	it := item{place: msg.place}
	if !waits || l.kept+msg.size() <= keptBytes {
		it.body = msg
		l.kept += msg.size()
	}
	q.items = append(q.items, it)
	if !waits {
		l.running.Go(func() { l.run(q) })
	}
}

func (l *lanes) settled(at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inHand, at.seq)
}

// run works off the messages of a lane until none is left, or the first one must
// be given again later.
func (l *lanes) run(q *queue) {
	for {
		it, over, ok := l.first(q)
		if !ok {
			return
		}
		what := outcome{did: gone}
		if !over {
			what = l.give(q, it)
		}
		if !l.after(q, it, what) {
			return
		}
	}
}

// first is the message whose turn it is. over says that its agent was deleted
// behind it.
func (l *lanes) first(q *queue) (it item, over, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(q.items) == 0 || l.ended {
		if len(q.items) == 0 {
			delete(l.all, q.lane)
		}
		return item{}, false, false
	}
	it = q.items[0]
	return it, it.seq < l.deleted[q.agent], true
}

// give gives a message to its agent.
func (l *lanes) give(q *queue, it item) outcome {
	select {
	case l.giving <- struct{}{}:
		defer func() { <-l.giving }()
	case <-l.ctx.Done():
		return outcome{did: left}
	}
	if it.body == nil {
		body, err := l.read(l.ctx, it)
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

// after notes what has become of a queue's first message, and says whether the
// next one's turn has come.
func (l *lanes) after(q *queue, it item, what outcome) bool {
	l.pulling.count(what)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch what.did {
	case left:
		return false
	case again:
		l.later(q, what)
		return false
	case deleted:
		l.forget(time.Now())
		l.deleted[q.agent] = it.seq
		l.deletes = append(l.deletes, deletion{q.agent, it.seq, time.Now()})
	case gone:
		l.inbox.ack(it.place) // the consumer may still wait for it
	}
	l.drop(q)
	delete(l.inHand, it.seq)
	l.tell(it.settle)
	q.items = q.items[1:]
	q.trial = trial{}
	if !l.inbox.serves(q.agent.Kind) {
		l.stir(q.agent)
	}
	return true
}

// tell keeps where a message was settled. l.mu is held.
func (l *lanes) tell(at string) {
	if len(l.told) < toldAtMost {
		l.told = append(l.told, at)
		return
	}
	l.told[l.oldest] = at
	l.oldest = (l.oldest + 1) % toldAtMost
}

// resumed sends acknowledgements again where a consumer waits for more than is in hand.
func (l *lanes) resumed(info *jetstream.ConsumerInfo) error {
	l.mu.Lock()
	lost, told := info.NumAckPending-len(l.inHand), slices.Clone(l.told)
	l.mu.Unlock()
	switch {
	case lost <= 0:
		return nil
	case lost > len(told):
		return fmt.Errorf("%d acknowledgements were lost, and %d can be sent again", lost, len(told))
	}
	for _, at := range told {
		l.inbox.ack(place{settle: at})
	}
	return nil
}

// drop forgets the body of a queue's first message. l.mu is held.
func (l *lanes) drop(q *queue) {
	if body := q.items[0].body; body != nil {
		l.kept -= body.size()
		q.items[0].body = nil
	}
}

// later has a queue's first message given again. l.mu is held.
func (l *lanes) later(q *queue, what outcome) {
	if l.ended {
		return
	}
	if l.kept > keptBytes/2 {
		l.drop(q)
	}
	pause := q.trial.next(what)
	if q.held = !l.inbox.serves(q.agent.Kind); q.held {
		l.held++
		pause = max(heldFor, time.Duration(l.held)*heldEach)
		if !l.warned[q.agent.Kind] {
			l.warned[q.agent.Kind] = true
			l.inbox.cfg.Logger.Warn("inputs for a kind of agent that is not defined here are held: have every node define every kind", "kind", q.agent.Kind, "reason", what.why.Message)
		}
	}
	q.again = time.AfterFunc(pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.resume(q)
	})
}

// resume gives a queue's first message again, if it waits for that. l.mu is held.
func (l *lanes) resume(q *queue) {
	if q.again == nil || l.ended {
		return
	}
	q.again.Stop()
	q.again = nil
	if q.held {
		q.held = false
		l.held--
	}
	l.running.Go(func() { l.run(q) })
}

// stir gives an agent again what was held for it: something that it was told may
// have changed what becomes of it. l.mu is held.
func (l *lanes) stir(a messages.AgentID) {
	for _, of := range lanesOf {
		if q := l.all[lane{a, of}]; q != nil && q.held {
			l.resume(q)
		}
	}
}

// end begins nothing more, gives what agents look at a moment to be settled, and
// returns when nothing is under way. What is not settled is left in the stream.
func (l *lanes) end() {
	l.mu.Lock()
	l.ended = true
	for _, q := range l.all {
		if q.again != nil {
			q.again.Stop()
		}
	}
	l.mu.Unlock()
	late := time.AfterFunc(settleIn, l.cancel)
	l.running.Wait()
	late.Stop()
	l.cancel()
}

func (l *lanes) stats(s *Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.InHand = len(l.inHand)
	for _, q := range l.all {
		n := len(q.items)
		if q.again == nil {
			n = max(0, n-1)
		}
		s.Waiting += n
		if q.held {
			s.Held += n
		}
	}
	oldest := int64(0)
	for _, stored := range l.inHand {
		if oldest == 0 || stored < oldest {
			oldest = stored
		}
	}
	if oldest != 0 {
		s.Oldest = time.Unix(0, oldest).UTC()
	}
}
