package gateway

import (
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// personOf is who sent a request, as its headers say. Nil: they name nobody.
func personOf(r *nats.Msg) *messages.Person {
	return messages.ClaimedBy(r.Header.Get(messages.HeaderPerson))
}
