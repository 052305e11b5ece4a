package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/messages"
)

// DamagedPartition returns the props of an actor that stands in for a partition whose
// log has lost messages: it answers every command with why. It reads and writes
// nothing.
func DamagedPartition(why *messages.Error) *actor.Props {
	letters := &deadLetters{refusal: func() *messages.Error { return why }}
	return actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Stopped:
			letters.stopped(ctx.ActorSystem().Root)
		case *Deliver, *Wake:
			if ctx.Sender() != nil {
				ctx.Respond(&messages.Answer{Err: why})
			}
		case Drain:
			ctx.Respond(Drained{})
		}
	}, letters.mailbox())
}
