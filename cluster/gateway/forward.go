package gateway

import (
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/messages"
)

// Any node answers a view. Only the next page of one is passed on to the node that
// has begun it, for that keeps what the page is made of: every other would fold the
// agent's log from its first event on.
type (
	// passed is a request for a view that another node has begun. That node says by
	// taken that it is there, is told by goOn to answer the caller itself, and not told
	// so if it was too slow: two would answer.
	passed struct {
		Subject string `json:"s"`
		Reply   string `json:"r"`
		Data    []byte `json:"d"`
		// Alive is messages.HeaderAlive.
		Alive string `json:"l,omitempty"`
	}
	taken struct{}
	goOn  struct{}
)

const (
	doorName = "door"
	// takenWithin is how long a node may take to say that it has a request. After
	// that it is answered here, and the caller, who has heard nothing yet, must not
	// have given up.
	takenWithin = 700 * time.Millisecond
	// heldFor is how long a node keeps a request that it was not told to answer.
	heldFor = 5 * time.Second
	// passRoom is what a command that goes on to another node may have there beside
	// what the caller has sent.
	passRoom = 1 << 10
)

// begunAt is the node that has begun a view; empty for a cursor of another form.
func begunAt(cursor string) string {
	node, _, ok := strings.Cut(cursor, ".")
	if !ok || messages.ValidateToken("node", node) != nil {
		return ""
	}
	return node
}

// pass hands a request to the node that has begun its view, if that is another one;
// then is called if that node does not take it.
func (g *Gateway) pass(r *nats.Msg, cursor string, then func()) bool {
	node := begunAt(cursor)
	if node == "" || node == g.Self || g.Nodes.Transport == nil {
		return false
	}
	var once sync.Once
	var stop func()
	var self *actor.PID
	end := func(from *actor.PID, takes bool) {
		once.Do(func() {
			stop()
			if takes {
				g.Nodes.Transport.Send(from, nil, &goOn{})
				return
			}
			then()
		})
	}
	t := g.Nodes.Transport
	self, stop = t.Serve(t.Name(doorName), func(from *actor.PID, m any) {
		_, is := m.(*taken)
		go end(from, is && from != nil)
	})
	time.AfterFunc(takenWithin, func() { end(nil, false) })
	t.Send(transport.PID(node, doorName), self, &passed{r.Subject, r.Reply, r.Data, r.Header.Get(messages.HeaderAlive)})
	return true
}

// taken takes a request that another node passes on, and answers it if it is told to.
func (g *Gateway) taken(from *actor.PID, m any) {
	p, ok := m.(*passed)
	if !ok || from == nil {
		return
	}
	msg := &nats.Msg{Subject: p.Subject, Reply: p.Reply, Data: p.Data, Header: nats.Header{}}
	if p.Alive != "" {
		msg.Header.Set(messages.HeaderAlive, p.Alive)
	}
	t := g.Nodes.Transport
	var once sync.Once
	var stop func()
	var self *actor.PID
	end := func(answer bool) {
		once.Do(func() {
			stop()
			if answer && g.answerable(msg) {
				g.viewHere(msg)
			}
		})
	}
	self, stop = t.Serve(t.Name(doorName), func(_ *actor.PID, m any) {
		_, is := m.(*goOn)
		go end(is) // else nobody waits for it there any more
	})
	time.AfterFunc(heldFor, func() { end(false) })
	t.Send(from, self, &taken{})
}

// ownerOf is the node that owns a partition; empty if nobody does.
func (g *Gateway) ownerOf(p messages.Partition) string {
	if g.OwnerOf == nil {
		return g.Self
	}
	return g.OwnerOf(p)
}
