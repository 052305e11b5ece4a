package doctor

import (
	"context"
	"time"
)

// pace bounds how many messages are read in a second, over each hundred of them.
type pace struct {
	rate  int // 0: not bounded
	n     int
	since time.Time
}

const paceEvery = 100

// next counts a message, and waits if it came too soon.
func (p *pace) next(ctx context.Context) error {
	if p.n++; p.rate <= 0 || p.n%paceEvery != 0 {
		return ctx.Err()
	}
	now := time.Now()
	wait := time.Second*paceEvery/time.Duration(p.rate) - now.Sub(p.since)
	if p.since = now; wait <= 0 || p.n == paceEvery {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	p.since = time.Now()
	return ctx.Err()
}
