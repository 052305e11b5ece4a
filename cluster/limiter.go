package cluster

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
)

// limiter passes on what a node logs, rate-limited. While NATS is away, which
// is said by itself, warnings are passed on at debug. Of those with one text a few are
// passed on, and while they continue one every ten seconds, which says how many were not;
// those come at debug, too. Errors are all passed on. Safe for concurrent use.
type limiter struct {
	to slog.Handler
	*flood
}

// flood is what is known of warnings so far.
type flood struct {
	away atomic.Bool

	mu    sync.Mutex
	texts map[string]*alike
}

// alike is what is known of warnings with one text.
type alike struct {
	// spent is when all that were passed on would have been due, one every alikeEvery.
	spent time.Time
	left  int // since one was passed on last
}

const (
	// alikeAtOnce is how many warnings of one text are passed on before they are few,
	// alikeEvery how often one is from then on.
	alikeAtOnce, alikeEvery = 5, 10 * time.Second
	// mostTexts bounds how many texts are counted.
	mostTexts = 1000
)

func newLimiter(to slog.Handler) *limiter {
	return &limiter{to, &flood{texts: make(map[string]*alike)}}
}

// always returns a logger that passes everything on.
func (c *limiter) always() *slog.Logger { return slog.New(c.to) }

// Enabled is what the handler behind says.
func (c *limiter) Enabled(ctx context.Context, l slog.Level) bool { return c.to.Enabled(ctx, l) }

// WithAttrs adds attributes; what is counted stays common.
func (c *limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limiter{c.to.WithAttrs(attrs), c.flood}
}

// WithGroup opens a group; what is counted stays common.
func (c *limiter) WithGroup(name string) slog.Handler { return &limiter{c.to.WithGroup(name), c.flood} }

// Handle passes a record on.
func (c *limiter) Handle(ctx context.Context, r slog.Record) error {
	if r.Level != slog.LevelWarn {
		return c.to.Handle(ctx, r)
	}
	pass, left := !c.away.Load(), 0
	if pass {
		pass, left = c.admit(r.Message, time.Now())
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

// admit reports whether a warning is passed on, and how many alike were not before.
func (f *flood) admit(text string, now time.Time) (pass bool, left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.texts[text]
	if is == nil {
		if len(f.texts) >= mostTexts {
			maps.DeleteFunc(f.texts, func(_ string, old *alike) bool { return old.spent.Before(now) })
		}
		if len(f.texts) >= mostTexts {
			return true, 0
		}
		is = &alike{}
		f.texts[text] = is
	}
	if is.spent.Before(now) {
		is.spent = now
	}
	if is.spent.Sub(now) > (alikeAtOnce-1)*alikeEvery {
		is.left++
		return false, 0
	}
	is.spent = is.spent.Add(alikeEvery)
	left, is.left = is.left, 0
	return true, left
}

// refusal is why the newest attempt to connect was refused; nil: it was not, or the
// connection is there.
func refusal(nc *nats.Conn) error {
	if err := nc.LastError(); !nc.IsConnected() && client.Advice(err) != "" {
		return err
	}
	return nil
}

// watch says once that a connection is broken, once for each reason that its login is
// refused, and once that it is back, until it is closed.
func (c *limiter) watch(nc *nats.Conn) {
	changed := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED, nats.CLOSED)
	tell := c.always()
	go func() {
		defer nc.RemoveStatusListener(changed)
		var since time.Time
		var refused map[string]bool // what was said of this time
		for status := range changed {
			switch {
			case status == nats.CLOSED:
				return
			case status == nats.RECONNECTING && !c.away.Load():
				c.away.Store(true)
				since, refused = time.Now(), make(map[string]bool)
				tell.Warn("NATS cannot be reached; what needs it is tried again until it is back, and warnings are logged at debug until then")
			case status == nats.RECONNECTING: // an attempt has failed
				if why := refusal(nc); why != nil && !refused[why.Error()] {
					refused[why.Error()] = true
					tell.Warn("the NATS server refuses this node's login; the login is tried again until it is accepted", "error", why, "do", client.Advice(why))
				}
			case status == nats.CONNECTED && c.away.Load():
				tell.Warn("NATS is back", "away", time.Since(since).Round(time.Millisecond))
				c.away.Store(false)
			}
		}
	}()
}
