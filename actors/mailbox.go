package actors

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/messages"
)

// mailbox is an unbounded mailbox that answers those whose messages are still
// in it, or come to it, when its actor has stopped; protoactor drops them
// without a word, and their senders would wait in vain.
type mailbox struct {
	actor.Mailbox
	after *afterlife
}

// afterlife is what an actor leaves to its mailbox.
type afterlife struct {
	root    atomic.Pointer[actor.RootContext]
	refusal *messages.Error
}

// stopped says that the actor handles nothing any more.
func (l *afterlife) stopped(root *actor.RootContext) { l.root.Store(root) }

func (l *afterlife) mailbox() actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox { return &mailbox{actor.Unbounded()(), l} })
}

// RegisterHandlers puts invoker behind the mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.Mailbox.RegisterHandlers(invokerOf{invoker, m.after}, dispatcher)
}

type invokerOf struct {
	actor.MessageInvoker
	after *afterlife
}

// InvokeUserMessage gives the message to the actor, or answers it.
func (i invokerOf) InvokeUserMessage(m any) {
	root := i.after.root.Load()
	if root == nil {
		i.MessageInvoker.InvokeUserMessage(m)
		return
	}
	if sender := actor.UnwrapEnvelopeSender(m); sender != nil {
		root.Send(sender, &messages.Answer{Err: i.after.refusal})
	}
}
