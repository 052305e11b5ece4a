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
	log     *nodeLog

	mu         sync.Mutex
	stopped    bool
	partitions map[messages.Partition]*actor.PID

	ctx    context.Context // of all partitions
	cancel func()
}

// partition returns the actor that hosts the agent; nil once the node has stopped.
func (n *Node) partition(a messages.AgentID) *actor.PID {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := a.Partition()
	if n.partitions[p] == nil && !n.stopped {
		n.partitions[p] = n.system.Root.Spawn(n.runtime.Partition(n.ctx, p, n.epoch))
	}
	return n.partitions[p]
}

// Ask sends the command to the agent and returns a function that waits for the answer. A node
// that has stopped refuses it with messages.Unavailable.
func (n *Node) Ask(a messages.AgentID, c messages.Command) (wait func() messages.Answer) {
	return n.ask(a, &actors.Deliver{Agent: a, Command: c, Cause: messages.Cause{Endpoint: messages.EndpointClient}, Received: time.Now()})
}

// Deliver is Do for a command with all that an owner receives with it.
func (n *Node) Deliver(d *actors.Deliver) messages.Answer { return n.ask(d.Agent, d)() }

func (n *Node) ask(a messages.AgentID, m any) func() messages.Answer {
	pid := n.partition(a)
	if pid == nil {
		return func() messages.Answer {
			return messages.Answer{Err: messages.Refuse(messages.Unavailable, "the node has stopped")}
		}
	}
	future := n.system.Root.RequestFuture(pid, m, timeout)
	return func() messages.Answer {
		result, err := future.Result()
		if answer, ok := result.(*messages.Answer); ok {
			return *answer
		}
		if errors.Is(err, actor.ErrDeadLetter) { // its actor stopped while the command was in flight: nodes retry
			return messages.Answer{Err: messages.Refuse(messages.Unavailable, "agent %s has stopped here", a)}
		}
		return messages.Answer{Err: messages.Refuse(messages.Unavailable, "agent %s did not answer: %v, %v", a, result, err)}
	}
}

// Do sends the command to the agent and waits for the answer.
func (n *Node) Do(a messages.AgentID, c messages.Command) messages.Answer { return n.Ask(a, c)() }

// Must is Do for a command that must not be refused. Like a client, it retries while the
// agent is unavailable: another node may still be appending to it.
func (n *Node) Must(a messages.AgentID, c messages.Command) messages.Answer {
	n.t.Helper()
	for end := time.Now().Add(timeout); ; <-time.After(time.Millisecond) {
		answer := n.Do(a, c)
		switch {
		case answer.Err == nil:
			return answer
		case answer.Err.Code != messages.Unavailable || n.hasStopped() || time.Now().After(end):
			n.t.Fatalf("%s for %s was refused: %v", c.CommandType(), a, answer.Err)
		}
	}
}

// Activate activates the agent from its newest frame, read ahead, as the owner of a partition does with agents
// that owe work, and waits for the answer.
func (n *Node) Activate(a messages.AgentID) messages.Answer {
	command := &actors.Activate{Agent: a}
	for newest, err := range n.log.ReadAhead(context.Background(), a.Partition(), []messages.AgentID{a}) {
		if err == nil {
			command.Ahead = &newest
		}
	}
	return n.ask(a, command)()
}

// Drain asks the agent's partition to begin nothing that must not be cut off. It returns a
// function that waits until nothing of the kind runs there.
func (n *Node) Drain(a messages.AgentID) (wait func()) {
	f := n.system.Root.RequestFuture(n.partition(a), actors.Drain{}, timeout)
	return func() {
		if m, err := f.Result(); err != nil || m != (actors.Drained{}) {
			n.t.Errorf("drain of a partition: got %v, %v, want %v", m, err, actors.Drained{})
		}
	}
}

// CancelDrain cancels the drain of the agent's partition.
func (n *Node) CancelDrain(a messages.AgentID) {
	n.system.Root.Send(n.partition(a), actors.CancelDrain{})
}

// Runtime returns the runtime that the node's agents share.
func (n *Node) Runtime() *actors.Runtime { return n.runtime }

// Epoch returns the epoch that the node appends under.
func (n *Node) Epoch() messages.Epoch { return n.epoch }

// Crash ends the node as SIGKILL does: nothing more from it reaches the log or the observer,
// and it receives nothing more from the log. The work that ran in it is cancelled, since the
// process itself continues.
func (n *Node) Crash() {
	n.log.crash()
	n.Stop()
	<-n.log.idle
}

// Stop stops the node and returns when its agents have stopped.
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

// end stops an actor and waits until it has ended. StopFuture waits less, so that it would
// fail for a slow actor.
func (n *Node) end(pid *actor.PID) error {
	ended := actor.NewFuture(n.system, timeout)
	process, _ := n.system.ProcessRegistry.Get(pid) // for an actor that has ended: the dead letters, which answer
	process.SendSystemMessage(pid, &actor.Watch{Watcher: ended.PID()})
	n.system.Root.Stop(pid)
	return ended.Wait()
}
