package actorstest

import (
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// post brings commands from agent to agent, as the stored inputs of a cluster
// do: at least once, one by one for each agent, by way of the newest node. What
// a node that has ended did not answer is given to the next one. The zero value
// is empty.
type post struct {
	mu    sync.Mutex
	node  *Node // the newest
	lanes map[line]*lane
	// sent is every command so far, in order.
	sent []Letter
}

// Letter is a command that one agent has sent to another.
type Letter struct {
	To      messages.AgentID
	Command messages.Command
}

// line names a lane: what agents say of one another's tasks waits for nothing else.
type line struct {
	to messages.AgentID
	of string
}

func lineOf(to messages.AgentID, c messages.Command) line {
	switch c.(type) {
	case messages.Task, messages.CancelChild, messages.Report:
		return line{to, c.CommandType()}
	}
	return line{to: to}
}

// lane is what waits for one agent.
type lane struct {
	waiting []messages.Command
	busy    bool
}

// Letters are the commands that agents have sent to one another, in order.
func (s *Stage) Letters() []Letter {
	s.post.mu.Lock()
	defer s.post.mu.Unlock()
	return append([]Letter(nil), s.post.sent...)
}

// open has a node deliver from here on.
func (p *post) open(n *Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node = n
	for in := range p.lanes {
		p.begin(in)
	}
}

// send stores a command of a node that lives.
func (p *post) send(from *Node, to messages.AgentID, c messages.Command) error {
	from.log.mu.RLock() // a node that dies now dies before or after
	defer from.log.mu.RUnlock()
	if from.log.isDead {
		return errDead
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(to, c)
	return nil
}

// put stores a command; p.mu is held.
func (p *post) put(to messages.AgentID, c messages.Command) {
	if p.lanes == nil {
		p.lanes = make(map[line]*lane)
	}
	in := lineOf(to, c)
	if p.lanes[in] == nil {
		p.lanes[in] = new(lane)
	}
	p.sent = append(p.sent, Letter{to, c})
	p.lanes[in].waiting = append(p.lanes[in].waiting, c)
	p.begin(in)
}

// begin has a lane worked off, if nobody does; p.mu is held.
func (p *post) begin(in line) {
	if l := p.lanes[in]; !l.busy && len(l.waiting) > 0 {
		l.busy = true
		go p.run(in.to, l)
	}
}

// run works a lane off. It ends when the newest node has: the next one goes on.
func (p *post) run(to messages.AgentID, l *lane) {
	for {
		p.mu.Lock()
		node := p.node
		if len(l.waiting) == 0 || node.gone() {
			l.busy = false
			p.mu.Unlock()
			return
		}
		c := l.waiting[0]
		p.mu.Unlock()
		answer := node.ask(to, &actors.Deliver{Agent: to, Command: c, Cause: messages.Cause{Endpoint: "peer", Reason: messages.ReasonOf(c)}.From(messages.DecidedBy(c))})()
		if answer.Err != nil && answer.Err.Code == messages.Unavailable {
			<-time.After(time.Millisecond) // it is tried again
			continue
		}
		p.mu.Lock()
		l.waiting = l.waiting[1:]
		if m, ok := turn.Reply(to, c, answer); ok {
			p.put(m.To, m.Command)
		}
		p.mu.Unlock()
	}
}

// gone says that the node has stopped.
func (n *Node) gone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopped
}
