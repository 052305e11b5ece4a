//go:build unix

package clustertest

import (
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// sent is an input as its publisher knows it.
type sent struct {
	id, agent, publisher string
	// number counts what the publisher sent.
	number int
	plan   string
	// began is when it was first sent.
	began time.Time
	// acked is when it was acknowledged; zero: it was not.
	acked time.Time
}

// book is what is known outside of all nodes. Safe for concurrent use.
type book struct {
	Watched
	serials int
	process map[string]string // the node's processes, by their ids among the members
	sent    map[string]*sent  // by id
	acks    int
	lastAck time.Time
	pause   time.Duration // the longest between two acknowledgements of one load
	ended   map[string]bool
	open    int // acknowledged and not ended
	taken   map[taken]bool
	shown   map[string]map[uint64]client.Event
	faults  []string
}

func newBook() *book {
	return &book{
		process: make(map[string]string), sent: make(map[string]*sent), ended: make(map[string]bool), taken: make(map[taken]bool),
		shown: make(map[string]map[uint64]client.Event),
	}
}

// knows reports whether an input is the one that the book has under its id.
func (b *book) knows(s *sent) bool {
	b.Lock()
	defer b.Unlock()
	return b.sent[s.id] == s
}

func (b *book) serial() (n int) {
	b.Write(func() {
		b.serials++
		n = b.serials
	})
	return n
}

// ack writes down that an input was acknowledged.
func (b *book) ack(s *sent) {
	b.Write(func() {
		if !s.acked.IsZero() {
			return
		}
		s.acked = time.Now()
		if !b.lastAck.IsZero() {
			b.pause = max(b.pause, s.acked.Sub(b.lastAck))
		}
		b.lastAck = s.acked
		b.acks++
		if !b.ended[s.id] {
			b.open++
		}
	})
}

// taken is an input in the hands of an agent.
type taken struct {
	agent messages.AgentID
	input string
}

// tell writes down what a frame says of inputs. An agent's frames come in order.
func (b *book) tell(s stored) {
	b.Write(func() {
		for _, ev := range s.frame.Events {
			if in, is := ev.(messages.InputAccepted); is {
				b.taken[taken{s.agent, in.Input}] = true
			}
			for _, id := range endedBy(ev) {
				delete(b.taken, taken{s.agent, id})
				sent := b.sent[id]
				if sent != nil && agentID(sent.agent) != s.agent {
					continue // a fork ends the turn that it begins in, and its parent's has not ended by that
				}
				if sent != nil && !sent.acked.IsZero() && !b.ended[id] {
					b.open--
				}
				b.ended[id] = true
			}
		}
	})
}

// show keeps an event that a caller was shown.
func (b *book) show(agent string, e client.Event) {
	b.Write(func() {
		if b.shown[agent] == nil {
			b.shown[agent] = make(map[uint64]client.Event)
		}
		was, before := b.shown[agent][uint64(e.N)]
		if before && (was.Frame != e.Frame || was.Type != e.Type || string(was.Data) != string(e.Data)) {
			b.fault("event %d of %s was shown twice, and differently: %s %s, then %s %s", e.N, agent, was.Frame, was.Data, e.Frame, e.Data)
		}
		b.shown[agent][uint64(e.N)] = e
	})
}
