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
		b.cfg.Logger.Warn("what was sent to a deleted agent before its end cannot be removed; it is tried again", "agent", a.String(), "error", err)
	}))
	return err
}
