package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/ownership"
	"github.com/reprise-dev/reprise/messages"
)

// purger removes what is kept of a deleted agent beside its log: its dead
// letters and the key that its events were encrypted with.
type purger struct {
	js       jetstream.JetStream
	subjects messages.Subjects
	letters  string // the stream of dead letters
	keys     shredder
}

// lateAfter is how long after a deletion an owner that has lost its partition, but does not
// know it yet, may still store something.
const lateAfter = ownership.TTL + time.Second

// shredder forgets the key of an agent, if it has one.
type shredder interface {
	Shred(ctx context.Context, a messages.AgentID, mine func(context.Context) (bool, error)) (had bool, err error)
}

// Extent returns the last sequence of the stream of dead letters; see actors.Purger.
func (p *purger) Extent(ctx context.Context) (uint64, error) {
	stream, err := p.js.Stream(ctx, p.letters)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// Purge removes dead letters and the key; see actors.Purger.
func (p *purger) Purge(ctx context.Context, a messages.AgentID, letters uint64, mine func(context.Context) (bool, error)) error {
	if letters > 0 {
		stream, err := p.js.Stream(ctx, p.letters)
		if err == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(p.subjects.DeadLetter(a)), jetstream.WithPurgeSequence(letters+1))
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	_, err := p.keys.Shred(ctx, a, mine)
	return err
}
