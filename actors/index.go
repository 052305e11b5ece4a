package actors

import (
	"crypto/sha256"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// index remembers every command id that an agent ever spent, but for the
// newest, which the state keeps as they are. It holds 16 bytes of SHA-256
// instead of the id, is rebuilt from the log, and is asked only when the state
// does not know an id. The zero value is empty.
type index map[[16]byte]messages.EventNumber

func (x *index) add(id turn.SpentID) {
	if id.ID == "" {
		return
	}
	if *x == nil {
		*x = make(index)
	}
	(*x)[hashID(id.ID)] = id.N
}

func (x index) find(id string) (messages.EventNumber, bool) {
	if len(x) == 0 {
		return 0, false
	}
	n, ok := x[hashID(id)]
	return n, ok
}

func hashID(id string) [16]byte {
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:])
}
