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

// brief is a log whose heads are read until fail is closed, and the next time not to their end.
type brief struct {
	long
	fail chan struct{}
}

func (b brief) Follow(ctx context.Context, _ messages.Partition) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		if b.read.Add(1) > 1 {
			<-ctx.Done()
			return
		}
		yield(eventlog.Stored{}, nil)
		<-b.fail
		yield(eventlog.Stored{}, errors.New("the connection was closed"))
	}
}

// While the heads of a partition are read again the index does not answer for it.
func TestHeadsThatAreReadAgain(t *testing.T) { // A108
	synctest.Test(t, func(t *testing.T) {
		log, agents := brief{long{read: new(atomic.Int32)}, make(chan struct{})}, new(projections.Agents)
		o := (&owner{log: log, index: newAgentsIndex(unread{TB: t}, "", quiet), agents: agents, logger: quiet}).begin()
		defer o.close()
		o.index.begin()
		defer o.index.close()
		for _, want := range []int{1, 0} {
			if _, err := o.heads(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			_, ready, _, err := o.index.Index(t.Context(), []messages.Partition{0}, true)
			if err != nil || len(ready) != want {
				t.Errorf("read %d times: it answers for %v, %v", log.read.Load(), ready, err)
			}
			if want == 1 {
				close(log.fail)
				<-time.After(time.Second) // longer than the first pause
			}
		}
	})
}
