package actorstest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// Node hosts every partition under one epoch. Make it with [Stage.Start]. Safe
// for concurrent use.
type Node struct {
	t       testing.TB
	epoch   messages.Epoch
	runtime *actors.Runtime
	system  *actor.ActorSystem
	log     *mortal

	mu         sync.Mutex
	stopped    bool
	partitions map[messages.Partition]*actor.PID

	ctx    context.Context // of all partitions
	cancel func()
}

// partition is the actor that hosts the agent; nil once the node has stopped.
func (n *Node) partition(a messages.AgentID) *actor.PID {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := a.Partition()
	if n.partitions[p] == nil && !n.stopped {
		n.partitions[p] = n.system.Root.Spawn(n.runtime.Partition(n.ctx, p, n.epoch))
	}
	return n.partitions[p]
}

// Ask gives the command to the agent and a function that waits for the answer.
// The refusal of a node that has stopped is messages.Unavailable.
func (n *Node) Ask(a messages.AgentID, c messages.Command) (wait func() messages.Answer) {
	return n.ask(a, &actors.Deliver{Agent: a, Command: c, Cause: messages.Cause{Endpoint: "client"}, Received: time.Now()})
}

// Deliver is Do for a command with all that an owner knows of it.
func (n *Node) Deliver(d *actors.Deliver) messages.Answer { return n.ask(d.Agent, d)() }

func (n *Node) ask(a messages.AgentID, m any) func() messages.Answer {
	pid := n.partition(a)
	if pid == nil {
		return func() messages.Answer {
			return messages.Answer{Err: messages.Refuse(messages.Unavailable, "the node has stopped")}
		}
	}
	future := n.system.Root.RequestFuture(pid, m, patience)
	return func() messages.Answer {
		result, err := future.Result()
		if answer, ok := result.(*messages.Answer); ok {
			return *answer
		}
		if errors.Is(err, actor.ErrDeadLetter) { // its actor stopped while the command was on its way: nodes ask again
			return messages.Answer{Err: messages.Refuse(messages.Unavailable, "agent %s has stopped here", a)}
		}
		return messages.Answer{Err: messages.Refuse(messages.Unavailable, "agent %s did not answer: %v, %v", a, result, err)}
	}
}

// Do gives the command to the agent and waits for the answer.
func (n *Node) Do(a messages.AgentID, c messages.Command) messages.Answer { return n.Ask(a, c)() }

// Must is Do for a command that is not to be refused. As a client does, it asks
// again while the agent is unavailable: another node may still be writing to it.
func (n *Node) Must(a messages.AgentID, c messages.Command) messages.Answer {
	n.t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		answer := n.Do(a, c)
		switch {
		case answer.Err == nil:
			return answer
		case answer.Err.Code != messages.Unavailable || n.gone() || time.Now().After(end):
			n.t.Fatalf("%s for %s was refused: %v", c.CommandType(), a, answer.Err)
		}
	}
}

// Activate activates the agent, as the owner of a partition does with agents that
// owe work, which it reads ahead, and waits until it has gone on.
func (n *Node) Activate(a messages.AgentID) messages.Answer {
	command := &actors.Activate{Agent: a}
	for tip, err := range n.log.Tips(context.Background(), a.Partition(), []messages.AgentID{a}) {
		if err == nil {
			command.Tip = &tip
		}
	}
	return n.ask(a, command)()
}

// Drain asks the agent's partition to begin nothing that must not be cut off, and
// gives a function that waits until nothing of the kind runs there.
func (n *Node) Drain(a messages.AgentID) (wait func()) {
	f := n.system.Root.RequestFuture(n.partition(a), actors.Drain{}, patience)
	return func() {
		if m, err := f.Result(); err != nil || m != (actors.Drained{}) {
			n.t.Errorf("the drain of a partition is answered by %v, %v", m, err)
		}
	}
}

// CancelDrain tells the agent's partition that it stays where it is.
func (n *Node) CancelDrain(a messages.AgentID) {
	n.system.Root.Send(n.partition(a), actors.CancelDrain{})
}

// Runtime is what the node's agents share.
func (n *Node) Runtime() *actors.Runtime { return n.runtime }

// Epoch is the one that the node writes under.
func (n *Node) Epoch() messages.Epoch { return n.epoch }

// Crash ends the node as SIGKILL does: nothing more of it reaches the log or
// the observer, and it hears no more from the log. What ran in it is cancelled,
// for the process lives on.
func (n *Node) Crash() {
	n.log.kill()
	n.Stop()
	<-n.log.none
}

// Stop ends the node and returns when its agents have stopped.
func (n *Node) Stop() {
	n.mu.Lock()
	if n.stopped {
		n.mu.Unlock()
		return
	}
	n.stopped = true
	pids := n.partitions
	n.partitions = nil
	n.mu.Unlock()
	n.cancel()
	for _, pid := range pids {
		if err := n.end(pid); err != nil {
			n.t.Errorf("a partition did not stop: %v", err)
		}
	}
	n.system.Shutdown()
}

// end stops an actor and waits for it: longer than StopFuture does, which takes an
// actor that is slow for one that hangs.
func (n *Node) end(pid *actor.PID) error {
	ended := actor.NewFuture(n.system, patience)
	process, _ := n.system.ProcessRegistry.Get(pid) // of one that is not there: the dead letters, which answer
	process.SendSystemMessage(pid, &actor.Watch{Watcher: ended.PID()})
	n.system.Root.Stop(pid)
	return ended.Wait()
}
