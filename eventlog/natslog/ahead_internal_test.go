package natslog

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/reprise-dev/reprise/messages"
)

// numbered yields messages with the sequences from 1 on, up to last, and counts them in given.
func numbered(last int, given *int, err error) iter.Seq2[*stored, error] {
	return func(yield func(*stored, error) bool) {
		for *given < last {
			if *given++; !yield(&stored{seq: uint64(*given)}, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// What is fetched ahead comes in order, with the error behind it.
func TestAheadKeepsTheOrder(t *testing.T) {
	failed := errors.New("lost")
	for _, last := range []int{0, 1, batchFrames, 10*batchFrames + 1, 3 * manyAtOnce} {
		given, got := 0, 0
		for m, err := range ahead(t.Context(), messages.AgentID{}, numbered(last, &given, failed)) {
			if got++; err != nil && (got != last+1 || !errors.Is(err, failed)) || err == nil && m.seq != uint64(got) {
				t.Fatalf("of %d messages the %d-th: got %+v and %v", last, got, m, err)
			}
		}
		if got != last+1 {
			t.Errorf("got %d, want %d and the error", got, last)
		}
	}
}

// No more is fetched ahead than a bound, and no goroutine is left when the loop ends: synctest fails
// where a goroutine stays.
func TestAheadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := 0
		for range ahead(t.Context(), messages.AgentID{}, numbered(1<<30, &given, nil)) {
			synctest.Wait()
			break
		}
		if most := (batchesAhead + 2) * batchFrames; given > most {
			t.Errorf("%d messages were fetched for one, want at most %d", given, most)
		}
	})
}

// Nothing is yielded once the context has ended, but its error.
func TestAheadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	given, got := 0, 0
	for _, err := range ahead(ctx, messages.AgentID{}, numbered(1<<30, &given, nil)) {
		switch got++; {
		case got == 40:
			cancel()
		case got > 40 && !errors.Is(err, context.Canceled):
			t.Fatalf("the %d-th: got error %v, want that of the context", got, err)
		}
	}
	if got != 41 {
		t.Errorf("got %d, want 40 and the error", got)
	}
}
