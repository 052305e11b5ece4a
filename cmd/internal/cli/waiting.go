package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
)

// interruptible returns ctx until SIGINT or SIGTERM.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// limited bounds ctx by --timeout, if it is given.
func (a *app) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.remote.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, a.remote.timeout)
}

// reader is client for reading what may be long: --timeout bounds how long nothing is
// received, of which p keeps account, or with follow how long to follow.
func (a *app) reader(ctx context.Context, follow bool) (c *client.Client, p *idleLimit, done func(), err error) {
	limit, open := a.remote.timeout, a.connected
	if follow {
		limit, open = 0, a.client
	}
	c, within, left, err := open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	p = newIdleLimit(within, limit)
	return c, p, func() { p.hold(); left() }, nil
}

// idleLimit is a context that ends when nothing was received for some time; zero is for
// ever.
type idleLimit struct {
	context.Context
	most  time.Duration
	timer *time.Timer
	done  chan struct{}
	until atomic.Int64 // in nanoseconds since 1970
}

func newIdleLimit(ctx context.Context, most time.Duration) *idleLimit {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &idleLimit{Context: ctx, most: most, done: make(chan struct{})}
	context.AfterFunc(ctx, func() { close(p.done) })
	p.timer = time.AfterFunc(time.Hour, func() { cancel(context.DeadlineExceeded) })
	p.wait()
	return p
}

// hold stops the time until wait: something was received.
func (p *idleLimit) hold() { p.timer.Stop() }

// wait starts the time again.
func (p *idleLimit) wait() {
	if p.timer.Stop(); p.most > 0 {
		p.until.Store(time.Now().Add(p.most).UnixNano())
		p.timer.Reset(p.most)
	}
}

// Done is closed when it has ended.
func (p *idleLimit) Done() <-chan struct{} { return p.done }

// Deadline is when it ends if nothing is received.
func (p *idleLimit) Deadline() (time.Time, bool) {
	if p.most <= 0 {
		return p.Context.Deadline()
	}
	return time.Unix(0, p.until.Load()), true
}

// Err returns context.DeadlineExceeded if nothing was received.
func (p *idleLimit) Err() error {
	if err := p.Context.Err(); err == nil || context.Cause(p.Context) != context.DeadlineExceeded {
		return err
	}
	return context.DeadlineExceeded
}

// poll looks until there is nothing to wait for, or ctx ends.
func poll(ctx context.Context, every time.Duration, look func() (done bool, err error)) error {
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
