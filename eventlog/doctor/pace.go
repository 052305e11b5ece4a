package doctor

import (
	"context"
	"time"
)

// pace bounds how many messages are read in a second, over each hundred of them, or
// each second where they are fewer.
type pace struct {
	rate  int // 0: not bounded
	n     int
	since time.Time
}

const paceEvery = 100

// next counts a message, and waits if it came too soon.
func (p *pace) next(ctx context.Context) error {
	if p.n++; p.n == 1 {
		p.since = time.Now()
	}
	every := min(paceEvery, p.rate)
	if every <= 0 || p.n%every != 0 {
		return ctx.Err()
	}
	wait := time.Second*time.Duration(every)/time.Duration(p.rate) - time.Since(p.since)
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	p.since = time.Now()
	return ctx.Err()
}
