package cluster

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// long is a log whose heads take half a minute to read.
type long struct {
	heads
	read *atomic.Int32
}

func (l long) Follow(ctx context.Context, _ messages.Partition) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		l.read.Add(1)
		select {
		case <-time.After(30 * time.Second):
			yield(eventlog.Stored{}, nil)
			<-ctx.Done()
		case <-ctx.Done():
		}
	}
}

// Heads that take longer to read than one attempt to take their partition lasts are read once.
func TestPrepareGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := long{read: new(atomic.Int32)}
		agents := new(projections.Agents)
		whole := func(context.Context, messages.Partition) error { return nil }
		o := (&owner{check: whole, log: log, index: newAgentsIndex(nil, "", quiet), agents: agents, logger: quiet}).begin()
		defer o.close()
		refused := errors.New("not here")
		o.may = func(context.Context) error { return refused }
		for attempt, want := range []error{context.DeadlineExceeded, context.DeadlineExceeded, refused} {
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
			if _, err := o.Prepare(ctx, 0); !errors.Is(err, want) {
				t.Errorf("attempt %d: %v, want %v", attempt, err, want)
			}
			cancel()
		}
		if n := log.read.Load(); n != 1 {
			t.Errorf("the heads were read %d times", n)
		}
		if o.partitions[0].read != nil {
			t.Error("they are still read for a node that must not take the partition")
		}
	})
}
