package cluster

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// purger removes what is kept of a deleted agent beside its log: its dead
// letters and the key that its events were sealed with.
type purger struct {
	js       jetstream.JetStream
	subjects messages.Subjects
	letters  string // the stream of dead letters
	keys     shredder
}

// shredder forgets the key of an agent, if it has one.
type shredder interface {
	Shred(ctx context.Context, a messages.AgentID, mine func(context.Context) (bool, error)) (had bool, err error)
}

// Purge removes them; see actors.Purger. Letters that come later stay.
func (p *purger) Purge(ctx context.Context, a messages.AgentID, mine func(context.Context) (bool, error)) (letters int, sealed bool, err error) {
	if letters, err = p.purgeLetters(ctx, a, mine); err != nil {
		return letters, false, err
	}
	sealed, err = p.keys.Shred(ctx, a, mine)
	return letters, sealed, err
}

func (p *purger) purgeLetters(ctx context.Context, a messages.AgentID, mine func(context.Context) (bool, error)) (int, error) {
	stream, err := p.js.Stream(ctx, p.letters)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	subject := p.subjects.DeadLetter(a)
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil || info.State.Subjects[subject] == 0 {
		return 0, err
	}
	if ok, err := mine(ctx); err != nil || !ok {
		return 0, err
	}
	err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(info.State.LastSeq+1))
	return int(info.State.Subjects[subject]), err
}
