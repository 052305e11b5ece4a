package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// --timeout bounds how long a view is silent, not how long it is.
func TestIdleLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newIdleLimit(t.Context(), time.Second)
		for range 5 {
			<-time.After(900 * time.Millisecond) // on the clock of synctest
			p.hold()
			<-time.After(time.Minute) // the reader is slow
			p.wait()
		}
		if p.Err() != nil {
			t.Fatalf("it has ended after %v: %v", time.Since(began), p.Err())
		}
		if until, bound := p.Deadline(); !bound || until.Sub(began) != 5*(900*time.Millisecond+time.Minute)+time.Second {
			t.Errorf("it ends after %v", until.Sub(began))
		}
		below, stopBelow := context.WithCancel(p)
		defer stopBelow()
		<-below.Done()
		if took := time.Since(began); took != 5*(900*time.Millisecond+time.Minute)+time.Second || !errors.Is(below.Err(), context.DeadlineExceeded) {
			t.Errorf("it has ended after %v: %v", took, p.Err())
		}
		ctx, stop := context.WithCancel(t.Context())
		p = newIdleLimit(ctx, time.Minute)
		stop()
		if <-p.Done(); !errors.Is(p.Err(), context.Canceled) {
			t.Errorf("it was ended: %v", p.Err())
		}
		p.hold()
	})
}
