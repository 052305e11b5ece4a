package natslog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// ShardName is the name of a shard's stream.
func (l *Log) ShardName(shard int) string { return l.names.log(shard) }

// BlobStored is when the newest chunk of a blob was stored, as the stream's leader has
// it; now, if it is not there.
func (l *Log) BlobStored(ctx context.Context, a messages.AgentID, b messages.Blob) (time.Time, error) {
	p := l.blob(a, b)
	m, err := l.conn(a.Partition()).newest(ctx, p.stream, p.subject+".>")
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("look up blob %s of %s: %w", b.SHA256, a, err)
	case m == nil:
		return time.Now(), nil
	}
	return m.when, nil
}

// Unsound says of every stream whose settings could lose or change what is
// stored, or that is gone, what is wrong with it.
func (l *Log) Unsound(ctx context.Context) (found []error) {
	for _, want := range streams(l.subjects, 1) {
		have, err := l.conns[0].js.Stream(ctx, want.Name)
		if err != nil {
			found = append(found, fmt.Errorf("stream %s: %w", want.Name, err))
			continue
		}
		for _, danger := range dangers(want, have.CachedInfo().Config) {
			found = append(found, fmt.Errorf("stream %s cannot be trusted: %s", want.Name, danger))
		}
	}
	return found
}

// probeWait bounds the question whether a stream can be written to.
const probeWait = 5 * time.Second

// Unwritable says of every stream that takes nothing more, as after its disk was
// full, why. It has each remove what can be in none of them; a stream that does not
// answer, or from which nothing may be removed, is left out.
func (l *Log) Unwritable(ctx context.Context) (found []error) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	all := streams(l.subjects, 1)
	answers := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { answers[i] = l.writable(ctx, s.Name) })
	}
	wg.Wait()
	for _, err := range answers {
		if err != nil {
			found = append(found, err)
		}
	}
	return found
}

func (l *Log) writable(ctx context.Context, stream string) error {
	s, err := l.conns[0].js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Config.DenyPurge {
		return nil // Unsound reports it
	}
	err = l.conns[0].purge(ctx, stream, root(l.subjects)+".nothing", 0)
	var refused *jetstream.APIError
	if !errors.As(err, &refused) || refused.ErrorCode != codePurgeFailed {
		return nil
	}
	return fmt.Errorf("stream %s stores nothing any more: %s", stream, refused.Description)
}

// Oldest is when the input that has waited longest was stored, and how many
// wait. Zero: none does.
func (l *Log) Oldest(ctx context.Context) (since time.Time, waiting uint64, err error) {
	stream, err := l.conns[0].js.Stream(ctx, l.names.Inbox())
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("look up stream %s: %w", l.names.Inbox(), err)
	}
	if state := stream.CachedInfo().State; state.Msgs > 0 {
		return state.FirstTime, state.Msgs, nil
	}
	return time.Time{}, 0, nil
}
