package memory_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

const mib = 1 << 20

// claim begins a call.
func claim(t *testing.T, b *memory.Bound) (*memory.Claim, func()) {
	t.Helper()
	ctx, release := b.With(t.Context())
	c := memory.Of(ctx)
	if c == nil {
		t.Fatal("the call has no claim")
	}
	return c, release
}

func TestSmallPayloadsAreFree(t *testing.T) {
	b := memory.New(mib)
	for range 1000 {
		c, release := claim(t, b)
		defer release()
		if err := c.Add(t.Context(), memory.Free); err != nil {
			t.Fatal(err)
		}
	}
	if b.Held() != 0 {
		t.Errorf("%d bytes are held", b.Held())
	}
}

// begun is a growth of a claim under way.
func begun(t *testing.T, c *memory.Claim, bytes int) (done chan error) {
	done = make(chan error, 1)
	go func() { done <- c.Add(t.Context(), bytes) }()
	synctest.Wait()
	return done
}

// TestWhatDoesNotFitWaits holds who waits for whom: two claims share a half, a third has the
// other to itself, a fourth waits for that, and small ones wait for none of them.
func TestWhatDoesNotFitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(1024 * mib)
		var ends [3]func()
		for i := range ends {
			var c *memory.Claim
			c, ends[i] = claim(t, b)
			if err := c.Add(t.Context(), 60*mib); err != nil {
				t.Fatal(err)
			}
			if i == 2 { // the one alone
				if err := c.Add(t.Context(), 60*mib); err != nil {
					t.Fatal(err)
				}
			}
		}
		fourth, end := claim(t, b)
		defer end()
		if err := fourth.Add(t.Context(), mib); err != nil {
			t.Fatal(err)
		}
		done := begun(t, fourth, 59*mib)
		if len(done) > 0 || b.Waiting() != 1 || b.Held() != (4*240+4)*mib {
			t.Fatalf("%d wait, %d bytes are held", b.Waiting(), b.Held())
		}
		small, end := claim(t, b)
		if err := small.Add(t.Context(), 7*mib); err != nil {
			t.Error(err)
		}
		end()
		ends[2]()
		ends[2]()
		if err := <-done; err != nil || b.Held() != 3*240*mib {
			t.Errorf("%v, %d bytes are held", err, b.Held())
		}
		ends[0]() // the one alone goes back among the others
		five, end := claim(t, b)
		defer end()
		if err := five.Add(t.Context(), 128*mib); err != nil || b.Waiting() != 0 || b.Held() != (2*240+512)*mib {
			t.Errorf("%v, %d bytes are held", err, b.Held())
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(1024 * mib)
		for range 2 { // in each half
			held, release := claim(t, b)
			defer release()
			if err := held.AtLeast(t.Context(), 128*mib); err != nil {
				t.Fatal(err)
			}
		}
		c, drop := claim(t, b)
		begin := time.Now()
		var refused *providers.Error
		if err := c.Add(t.Context(), mib); !errors.As(err, &refused) || refused.Kind != providers.NoMemory || !refused.Temporary || time.Since(begin) != memory.MaxWait {
			t.Errorf("no room: %v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		if err := c.Add(t.Context(), mib); err == nil || time.Since(begin) != 0 {
			t.Errorf("it has waited enough: %v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		if err := c.Add(t.Context(), 128*mib+1); !errors.As(err, &refused) || refused.Kind != providers.NoMemory || refused.Temporary || time.Since(begin) != 0 {
			t.Errorf("it never fits: %v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c, end := claim(t, b)
		defer end()
		if err := c.Add(ctx, mib); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		drop()
		if b.Held() != 1024*mib || b.Waiting() != 0 {
			t.Errorf("%d bytes are held, %d wait", b.Held(), b.Waiting())
		}
	})
}

// TestNoCircle holds that claims that grow beside one another all come to an end, and
// that the bound holds meanwhile.
func TestNoCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, total := range []int64{0, mib, 100 * mib, 1024 * mib} {
			b := memory.New(total)
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					c, release := claim(t, b)
					defer release()
					for bytes := 0; bytes < 128*mib; {
						n := rand.IntN(4 * mib)
						if err := c.Add(t.Context(), n); err != nil {
							if int64(bytes+n) <= total/2/memory.Weight {
								t.Error(err)
							}
							return
						}
						bytes += n
						if held := b.Held(); held > total {
							t.Errorf("%d bytes are held of %d", held, total)
						}
					}
				})
			}
			if all.Wait(); b.Held() != 0 {
				t.Errorf("%d bytes are held at the end", b.Held())
			}
		}
	})
}

func TestNoBound(t *testing.T) {
	var b *memory.Bound
	ctx, release := b.With(t.Context())
	defer release()
	if err := memory.Of(ctx).Add(ctx, 1<<40); err != nil {
		t.Error(err)
	}
}
