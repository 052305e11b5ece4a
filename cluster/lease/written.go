package lease

import (
	"encoding/json"

	"github.com/nats-io/nats.go/jetstream"
)

// written is a lease that this node has written and that the watch has not told yet:
// of an entry, what is asked of it here.
type written struct {
	jetstream.KeyValueEntry
	v   value
	rev uint64
}

// Operation is that of a lease that is there.
func (written) Operation() jetstream.KeyValueOp { return jetstream.KeyValuePut }

// Revision is the one that it was written at.
func (w written) Revision() uint64 { return w.rev }

// Value is what was written.
func (w written) Value() []byte {
	b, _ := json.Marshal(w.v) // it was once
	return b
}
