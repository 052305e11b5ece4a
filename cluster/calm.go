package cluster

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// calm passes on what a node logs, without the floods. While NATS is away, which
// is said by itself, warnings are passed on at debug. Of those with one text only
// some are passed on each second; the next one says how many were not. Errors are
// all passed on. Safe for concurrent use.
type calm struct {
	to slog.Handler
	*flood
}

// flood is what is known of warnings so far.
type flood struct {
	away atomic.Bool

	mu      sync.Mutex
	second  int64
	written map[string]int // in this second, by text
	left    map[string]int // since that text was written last
}

const (
	// alikePerSecond is how many warnings of one text are passed on each second.
	alikePerSecond = 5
	// mostTexts bounds how many texts are counted.
	mostTexts = 1000
)

func newCalm(to slog.Handler) *calm { return &calm{to, &flood{left: make(map[string]int)}} }

// always gives a logger that passes everything on.
func (c *calm) always() *slog.Logger { return slog.New(c.to) }

// Enabled is what the handler behind says.
func (c *calm) Enabled(ctx context.Context, l slog.Level) bool { return c.to.Enabled(ctx, l) }

// WithAttrs adds attributes; what is counted stays common.
func (c *calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &calm{c.to.WithAttrs(attrs), c.flood}
}

// WithGroup opens a group; what is counted stays common.
func (c *calm) WithGroup(name string) slog.Handler { return &calm{c.to.WithGroup(name), c.flood} }

// Handle passes a record on.
func (c *calm) Handle(ctx context.Context, r slog.Record) error {
	if r.Level != slog.LevelWarn {
		return c.to.Handle(ctx, r)
	}
	pass, left := !c.away.Load(), 0
	if pass {
		pass, left = c.admit(r.Message, time.Now().Unix())
	}
	if !pass {
		if r.Level = slog.LevelDebug; !c.to.Enabled(ctx, r.Level) {
			return nil
		}
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("more_alike_left_out", left))
	}
	return c.to.Handle(ctx, r)
}

// admit says whether a warning is passed on, and how many alike were not before.
func (f *flood) admit(text string, second int64) (pass bool, left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if second != f.second {
		f.second, f.written = second, make(map[string]int)
	}
	if _, known := f.written[text]; !known && len(f.written) >= mostTexts {
		return true, 0
	}
	if f.written[text]++; f.written[text] > alikePerSecond {
		if _, known := f.left[text]; known || len(f.left) < mostTexts {
			f.left[text]++
		}
		return false, 0
	}
	left = f.left[text]
	delete(f.left, text)
	return true, left
}

// watch says once that a connection is broken, and once that it is back, until it is
// closed.
func (c *calm) watch(nc *nats.Conn) {
	changed := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED, nats.CLOSED)
	tell := c.always()
	go func() {
		defer nc.RemoveStatusListener(changed)
		var since time.Time
		for status := range changed {
			switch {
			case status == nats.CLOSED:
				return
			case status == nats.RECONNECTING && !c.away.Load():
				c.away.Store(true)
				since = time.Now()
				tell.Warn("NATS cannot be reached; what needs it is tried again until it is back, and warnings are logged at debug until then")
			case status == nats.CONNECTED && c.away.Load():
				tell.Warn("NATS is back", "away", time.Since(since).Round(time.Millisecond))
				c.away.Store(false)
			}
		}
	}()
}
