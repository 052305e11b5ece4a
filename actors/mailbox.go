package actors

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/messages"
)

// mailbox is an unbounded mailbox that answers the senders of what is still in it, or comes
// to it, when its actor has stopped: protoactor drops that, and their senders would get no
// answer.
type mailbox struct {
	actor.Mailbox
	letters *deadLetters
}

// deadLetters answers what an actor that has stopped does not handle.
type deadLetters struct {
	root    atomic.Pointer[actor.RootContext]
	refusal func() *messages.Error
}

// stopped notes that the actor handles nothing from now on.
func (l *deadLetters) stopped(root *actor.RootContext) { l.root.Store(root) }

// props returns those of an actor with such a mailbox.
func (l *deadLetters) props(d dispatcher, producer actor.Producer) *actor.Props {
	return actor.PropsFromProducer(producer, actor.WithSupervisor(stopOnPanic), actor.WithDispatcher(d),
		actor.WithMailbox(func() actor.Mailbox { return &mailbox{actor.Unbounded()(), l} }))
}

// stopOnPanic stops an agent whose panic it could not handle itself: its next
// activation replays the log, which a restart in place would not.
var stopOnPanic = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// RegisterHandlers puts invoker behind the mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.Mailbox.RegisterHandlers(answering{invoker, m.letters}, dispatcher)
}

type answering struct {
	actor.MessageInvoker
	letters *deadLetters
}

// InvokeUserMessage passes the message to the actor, or answers it.
func (i answering) InvokeUserMessage(m any) {
	root := i.letters.root.Load()
	if root == nil {
		i.MessageInvoker.InvokeUserMessage(m)
		return
	}
	if sender := actor.UnwrapEnvelopeSender(m); sender != nil {
		root.Send(sender, &messages.Answer{Err: i.letters.refusal()})
	}
}
