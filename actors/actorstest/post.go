package actorstest

import (
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// delivery sends commands from agent to agent, as the stored inputs of a cluster do: at least
// once, one by one for each agent, by way of the newest node. A command that a node did not
// answer before it ended is sent to the next one. The zero value is empty.
type delivery struct {
	mu     sync.Mutex
	node   *Node // the newest
	queues map[queueKey]*queue
	// sent holds every command so far, in order.
	sent []Message
}

// Message is a command that one agent has sent to another.
type Message struct {
	To      messages.AgentID
	Command messages.Command
}

// queueKey names a queue. Commands about a task have one for each type, which waits for no
// other.
type queueKey struct {
	to messages.AgentID
	of string
}

func keyOf(to messages.AgentID, c messages.Command) queueKey {
	switch c.(type) {
	case messages.Task, messages.CancelChild, messages.Report:
		return queueKey{to, c.CommandType()}
	}
	return queueKey{to: to}
}

// queue holds what waits for one agent.
type queue struct {
	waiting []messages.Command
	busy    bool
}

// Messages returns the commands that agents have sent to one another, in order.
func (s *Stage) Messages() []Message {
	s.delivery.mu.Lock()
	defer s.delivery.mu.Unlock()
	return append([]Message(nil), s.delivery.sent...)
}

// start makes a node deliver commands from now on.
func (p *delivery) start(n *Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node = n
	for key := range p.queues {
		p.begin(key)
	}
}

// send stores a command of a node that has not crashed.
func (p *delivery) send(from *Node, to messages.AgentID, c messages.Command) error {
	from.log.mu.RLock() // a crash comes before or after
	defer from.log.mu.RUnlock()
	if from.log.crashed {
		return errCrashed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(to, c)
	return nil
}

// put stores a command; p.mu is held.
func (p *delivery) put(to messages.AgentID, c messages.Command) {
	if p.queues == nil {
		p.queues = make(map[queueKey]*queue)
	}
	key := keyOf(to, c)
	if p.queues[key] == nil {
		p.queues[key] = new(queue)
	}
	p.sent = append(p.sent, Message{to, c})
	p.queues[key].waiting = append(p.queues[key].waiting, c)
	p.begin(key)
}

// begin starts to deliver a queue, if no goroutine does; p.mu is held.
func (p *delivery) begin(key queueKey) {
	if l := p.queues[key]; !l.busy && len(l.waiting) > 0 {
		l.busy = true
		go p.run(key.to, l)
	}
}

// run delivers a queue. It returns when the newest node has stopped: the next one continues.
func (p *delivery) run(to messages.AgentID, l *queue) {
	for {
		p.mu.Lock()
		node := p.node
		if len(l.waiting) == 0 || node.hasStopped() {
			l.busy = false
			p.mu.Unlock()
			return
		}
		c := l.waiting[0]
		p.mu.Unlock()
		answer := node.ask(to, &actors.Deliver{Agent: to, Command: c, Cause: messages.Cause{Endpoint: messages.EndpointPeer, Reason: messages.ReasonOf(c)}.From(messages.DecidedBy(c))})()
		if answer.Err != nil && answer.Err.Code == messages.Unavailable {
			<-time.After(time.Millisecond) // it is retried
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

// hasStopped reports whether the node has stopped.
func (n *Node) hasStopped() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopped
}
