package gateway

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// Nodes is what a node's endpoints know of the other nodes.
type Nodes struct {
	// Self is this node's id, OwnerOf returns that of a partition's owner, empty if no node
	// owns it. It is called from many goroutines. Nil: this node owns all.
	Self    string
	OwnerOf func(messages.Partition) string
	// Hosts reports whether this node has the agents of a partition. Nil: as OwnerOf says.
	Hosts func(messages.Partition) bool
	// Epoch returns the epoch under which this node owns a partition. Nil: it never loses one.
	Epoch func(messages.Partition) messages.Epoch
	// Router reaches the owners on other nodes. It may be nil where this node owns all.
	Router Router
	// Alive reports whether a node is a member. Nil: only this one is.
	Alive func(node string) bool
	// Published returns the frame with an id of a message that was published on its agent's log subject, or nil
	// if the message is another or cannot be read. Where the field is nil, frames are read from the log.
	Published func(a messages.AgentID, m *nats.Msg, id messages.FrameID) *messages.Frame
}

// hosts reports whether this node has the agents of a partition, also while it is not sure whether it
// still owns it.
func (n Nodes) hosts(p messages.Partition) bool {
	if n.Hosts == nil {
		return n.ownerOf(p) == n.Self
	}
	return n.Hosts(p)
}

// ownerOf returns the node that owns a partition; empty if none does.
func (n Nodes) ownerOf(p messages.Partition) string {
	if n.OwnerOf == nil {
		return n.Self
	}
	return n.OwnerOf(p)
}

func (n Nodes) isAlive(node string) bool {
	return node == n.Self || n.Alive != nil && n.Alive(node)
}

// Router asks the owners of partitions on other nodes. Safe for concurrent use.
type Router interface {
	// Last returns the numbers of the newest events of some agents of a partition, as its
	// owner has them.
	Last(ctx context.Context, p messages.Partition, agents []messages.AgentID) ([]messages.EventNumber, error)
	// Below sends a piece of a child's answer to the owner of its parent, which is the
	// delta's agent. It does not block; the piece may be lost.
	Below(actors.Delta)
}

// notice is what the owner of an agent publishes on the agent's live subject when it has
// committed a frame. The frame itself was published on the agent's log subject before: an endpoint that
// has received it there need not read it from the log.
type notice struct {
	Type  string               `json:"type"` // commit: a delta has another one
	Epoch messages.Epoch       `json:"epoch"`
	First messages.EventNumber `json:"first"`
	Last  messages.EventNumber `json:"last"`
	// Ends reports whether an input was answered, or failed.
	Ends bool `json:"ends,omitempty"`
	// Frame and Seq are the frame's id and its sequence in the log.
	Frame messages.FrameID `json:"frame"`
	Seq   uint64           `json:"seq"`
}

const commitNotice = "commit"

func newNotice(c actors.Commit) notice {
	n := notice{Type: commitNotice, Epoch: c.Frame.Epoch, First: c.Frame.First, Last: c.Frame.Last(), Frame: c.Frame.ID, Seq: c.Seq}
	for _, ev := range c.Frame.Events {
		inputs, _ := messages.Ended(ev)
		n.Ends = n.Ends || len(inputs) > 0
	}
	return n
}

const (
	// maxLive is how many messages of other owners may wait to be handed to their streams. What
	// is beyond is dropped, as if the network had lost it.
	maxLive = 16 << 10
	// maxOffered is how many frames of an agent are kept until their owner announces them, of so many bytes
	// each: what is beyond is read from the log.
	maxOffered, maxOfferedSize = 4, 64 << 10
	// silentAfter is how long a stream of an agent on another node receives nothing before its
	// owner is asked for the newest event: a lost notice costs no more.
	silentAfter = 2 * time.Second
)

// everything is behind every event: the log may hold more than was published.
const everything = messages.EventNumber(math.MaxUint64)

// followed is an agent that is streamed through this node.
type followed struct {
	feeds map[*feed]struct{}
	// subs are the subscriptions to what its owner publishes: frames, and what it says of them. None:
	// this node owns it.
	subs []*nats.Subscription
	// offered are the newest frames that were published and not yet announced, oldest first.
	offered []*nats.Msg
	// heard is when something came from its owner, or that was asked.
	heard time.Time
}

func (h *Broker) isLocal(a messages.AgentID) bool { return h.nodes.hosts(a.Partition()) }

// Last returns the numbers of the newest events of agents that this node owns.
func (h *Broker) Last(agents []messages.AgentID) []messages.EventNumber {
	last := make([]messages.EventNumber, len(agents))
	for i, a := range agents {
		row, _ := h.agents.Agent(a)
		last[i] = row.Events
	}
	return last
}

// follow begins to gather what an agent does, wherever it is; leave ends it. What is asked of the agent
// after follow has returned is gathered whole.
func (h *Broker) follow(a messages.AgentID) (f *feed, leave func()) {
	f = &feed{wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.followed[a]
	if is == nil {
		is = &followed{feeds: make(map[*feed]struct{}), heard: time.Now()}
		h.followed[a] = is
	}
	is.feeds[f] = struct{}{}
	h.subscribe(a, is)
	return f, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(is.feeds, f)
		if len(is.feeds) == 0 {
			is.unsubscribe()
			delete(h.followed, a)
		}
	}
}

// subscribe subscribes to an agent's live subject if its owner is another node, and ends the subscription if it
// is this one; h.mu is held.
func (h *Broker) subscribe(a messages.AgentID, is *followed) {
	if h.isLocal(a) {
		is.unsubscribe()
		return
	}
	if len(is.subs) > 0 {
		return
	}
	subjects := []string{h.subjects.Live(a)}
	if h.nodes.Published != nil {
		subjects = append(subjects, h.subjects.Log(a))
	}
	for _, subject := range subjects {
		if sub, err := h.conn.ChanSubscribe(subject, h.live); err == nil { // a closed connection takes none
			is.subs = append(is.subs, sub)
		}
	}
}

func (is *followed) unsubscribe() {
	for _, sub := range is.subs {
		_ = sub.Unsubscribe() // a closed connection has none
	}
	is.subs, is.offered = nil, nil
}

func (h *Broker) each(a messages.AgentID, do func(*feed)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if is := h.followed[a]; is != nil {
		for f := range is.feeds {
			do(f)
		}
	}
}

// Moved follows the agents of a partition that has, or may have, another owner now, and has their streams
// read the log: the owner before may have published nothing of its last frames.
func (h *Broker) Moved(p messages.Partition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, is := range h.followed {
		if a.Partition() == p {
			h.subscribe(a, is)
			is.push(item{reached: everything})
		}
	}
	h.lost.moved(p, h.nodes.hosts(p))
}

func (is *followed) push(it item) {
	for f := range is.feeds {
		f.push(it)
	}
}

// run hands to streams what the owners of other nodes publish, until done.
func (h *Broker) run(done <-chan struct{}) {
	ticker := time.NewTicker(silentAfter / 2)
	defer ticker.Stop()
	for {
		select {
		case m := <-h.live:
			h.published(m)
		case <-ticker.C:
			h.askSilent(time.Now())
			h.endLost(time.Now())
		case <-done:
			return
		}
	}
}

// offer keeps a frame that was published, until its owner announces that the log has stored it.
func (h *Broker) offer(a messages.AgentID, m *nats.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.followed[a]
	if is == nil || len(m.Data) > maxOfferedSize {
		return
	}
	if len(is.offered) == maxOffered {
		is.offered = is.offered[1:]
	}
	is.offered = append(is.offered, m)
}

// announced returns the frame that a notice of its owner names, which the log has stored, and the frames
// behind it. Nil: it did not come.
func (h *Broker) announced(a messages.AgentID, n notice) (f *messages.Frame, rest []*nats.Msg) {
	var offered []*nats.Msg
	h.mu.RLock()
	if is := h.followed[a]; is != nil {
		offered = is.offered
	}
	h.mu.RUnlock()
	for i, m := range offered {
		if f = h.nodes.Published(a, m, n.Frame); f != nil {
			return f, offered[i+1:]
		}
	}
	return nil, nil
}

// published hands over what the owner of an agent has published.
func (h *Broker) published(m *nats.Msg) {
	if a, err := h.subjects.ParseLog(m.Subject); err == nil {
		h.offer(a, m)
		return
	}
	_, a, err := h.subjects.ParseAgent(m.Subject)
	if err != nil {
		return
	}
	var body struct {
		notice
		Turn  messages.TurnID `json:"turn"`
		Call  messages.CallID `json:"call"`
		Text  string          `json:"text"`
		Child string          `json:"child"`
	}
	if json.Unmarshal(m.Data, &body) != nil || h.isLocal(a) {
		return // of this node, which is its owner by now
	}
	it := item{reached: body.Last}
	if body.Type != commitNotice {
		it = item{delta: &actors.Delta{Agent: a, Turn: body.Turn, Call: body.Call, Kind: body.Type, Text: body.Text, Child: body.Child}}
	}
	f, rest := h.announced(a, body.notice)
	if f != nil {
		it = item{commit: &actors.Commit{Agent: a, Seq: body.Seq, Frame: f}}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if is := h.followed[a]; is != nil {
		is.heard = time.Now()
		if f != nil {
			is.offered = rest
		}
		is.push(it)
	}
}

// askSilent asks the owners of streamed agents of which nothing has come for a while for their newest
// events, in one request for each partition.
func (h *Broker) askSilent(now time.Time) {
	silent := make(map[messages.Partition][]messages.AgentID)
	h.mu.Lock()
	for a, is := range h.followed {
		h.subscribe(a, is)
		if len(is.subs) > 0 && now.Sub(is.heard) >= silentAfter {
			is.heard = now
			silent[a.Partition()] = append(silent[a.Partition()], a)
		}
	}
	h.mu.Unlock()
	for p, agents := range silent {
		go h.askLast(p, agents)
	}
}

func (h *Broker) askLast(p messages.Partition, agents []messages.AgentID) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	last, err := h.nodes.Router.Last(ctx, p, agents)
	if err != nil {
		return // it is asked again
	}
	for i, a := range agents {
		h.each(a, func(f *feed) { f.push(item{reached: last[i]}) })
	}
}
