package inbox

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// forget removes what was published to an agent before the delete with sequence
// seq, which comes next. All of that is settled; but one whose acknowledgement was
// lost would come again, and a deleted agent does not know its id any more: it
// would come to life by it. So it is gone before the agent hears of the delete:
// whoever comes after a crash finds none. The error is ctx's.
func (b *Inbox) forget(ctx context.Context, a messages.AgentID, seq uint64) error {
	subject := b.cfg.Subjects.InboxOfAgent(a)
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 2 * time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		stream, err := b.js.Stream(ctx, b.name)
		if err == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(seq))
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		b.cfg.Logger.Warn("what was sent to a deleted agent before its end cannot be removed; it is tried again", b.about(a), "error", err)
	}))
	return err
}

// deletion is a delete that an agent has taken.
type deletion struct {
	agent messages.AgentID
	seq   uint64
	at    time.Time
}

// forget forgets the deletes that are older than anything on its way can be: what came
// before them is out of the stream. Those of agents in whose lanes something still waits
// are kept for as long again. l.mu is held.
func (l *lanes) forget(now time.Time) {
	for range l.deletes {
		first := l.deletes[0]
		if now.Sub(first.at) < ackWait {
			return
		}
		l.deletes = l.deletes[1:]
		switch {
		case l.deleted[first.agent] != first.seq: // a later one has its place
		case l.waits(first.agent):
			l.deletes = append(l.deletes, deletion{first.agent, first.seq, now})
		default:
			delete(l.deleted, first.agent)
		}
	}
}

// waits says that something waits in a lane of the agent. l.mu is held.
func (l *lanes) waits(a messages.AgentID) bool {
	for _, of := range lanesOf {
		if l.all[lane{a, of}] != nil {
			return true
		}
	}
	return false
}
