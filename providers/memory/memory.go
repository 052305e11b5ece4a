// Package memory bounds how much of a node's memory the requests to models, their answers
// and the outputs of tools may take together.
//
// Each call has a [Claim] in its context. Code that holds the call's payloads enlarges it
// with [Claim.Add] as the bytes come. What does not fit waits, and with it the sender of the
// bytes.
//
// # Guarantees
//
//   - What all claims of a [Bound] hold never exceeds it.
//   - Claims do not wait for one another in a circle. Half of the bound is shared; a claim
//     that does not fit there any more gets the other half to itself, one claim after the
//     other, and does not wait while it has it. A claim therefore covers at most half of
//     the bound.
//   - While a claim waits, those that fit into the shared half do not wait behind it.
//   - A claim waits for at most [MaxWait] in all. After that, or at once if it could never
//     fit, its error is a *providers.Error of the kind providers.NoMemory, which is temporary
//     in the first case.
//
// Code that holds a claim should not wait for another call: that may wait for the claim.
package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/providers"
)

const (
	// Free is how many bytes of payload a claim covers without being counted: an agent
	// in memory takes as much.
	Free = 256 << 10
	// Weight is how many bytes of memory a byte of payload is counted as: it is read,
	// gathered, made into items, checked and stored, and some of these are copies.
	Weight = 4
	// MaxWait is how long a claim waits for room, in all.
	MaxWait = 5 * time.Minute

	step = 256 << 10 // claims grow by multiples of it, in bytes of memory
)

// Bound is how much memory payloads in flight may take together. Make one with [New]; the claims
// of a nil Bound have no limit. Safe for concurrent use.
type Bound struct {
	total   int64
	mu      sync.Mutex
	shared  int64     // what is left of the shared half
	alone   *Claim    // has the other half; nil: no claim does
	waiting []*growth // in the order in which they came
}

// growth is how much more memory a claim needs.
type growth struct {
	claim  *Claim
	need   int64
	served chan struct{} // closed when the claim has it
}

// New makes a bound of total bytes of memory. A claim covers at most an eighth as many bytes
// of payload.
func New(total int64) *Bound { return &Bound{total: total, shared: total / 2} }

// Total returns the bound, in bytes of memory.
func (b *Bound) Total() int64 { return b.total }

// Held returns how much of the bound claims hold now, in bytes of memory.
func (b *Bound) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.total/2 - b.shared
	if b.alone != nil {
		held += b.alone.own
	}
	return held
}

// Waiting returns how many claims wait for room now.
func (b *Bound) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Claim is what one call holds of a bound. A nil Claim holds nothing and always has room.
// Safe for concurrent use.
type Claim struct {
	bound *Bound
	mu    sync.Mutex // held while the claim waits
	bytes int
	held  int64         // bytes of memory
	wait  time.Duration // how long it has waited
	ended bool
	own   int64 // of held, what is of the half that one claim has to itself; guarded by bound.mu
}

type key struct{}

// With returns a context with a new claim on b, and a function that releases it.
// That may be called more than once; the claim holds nothing from then on.
func (b *Bound) With(ctx context.Context) (_ context.Context, release func()) {
	if b == nil {
		return ctx, func() {}
	}
	c := &Claim{bound: b}
	return context.WithValue(ctx, key{}, c), c.release
}

// Of returns the claim of the call that ctx belongs to, or nil if there is no bound.
func Of(ctx context.Context) *Claim {
	c, _ := ctx.Value(key{}).(*Claim)
	return c
}

// Add enlarges the claim by n bytes of payload. It waits while there is no room. If ctx
// ends first it returns the error of ctx. A claim that could not grow stays as it was.
func (c *Claim) Add(ctx context.Context, n int) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cover(ctx, c.bytes+n)
}

// AtLeast enlarges the claim to n bytes of payload, unless it covers as many already. It
// waits and fails as Add does.
func (c *Claim) AtLeast(ctx context.Context, n int) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cover(ctx, max(c.bytes, n))
}

// Bytes returns how many bytes of payload the claim covers.
func (c *Claim) Bytes() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func (c *Claim) cover(ctx context.Context, bytes int) error {
	if c.ended || bytes <= Free {
		c.bytes = bytes
		return nil
	}
	if largest := c.bound.total / 2 / Weight; int64(bytes) > largest {
		return noMemory(false, "the payloads of one call are %d bytes or more, and this node allows %d, an eighth of its memory for payloads in flight: give it more (--payload-memory), or have them made smaller", bytes, largest)
	}
	memory := (Weight*int64(bytes) + step - 1) / step * step
	if need := min(memory, c.bound.total/2) - c.held; need > 0 {
		if err := c.bound.take(ctx, c, need); err != nil {
			return err
		}
		c.held += need
	}
	c.bytes = bytes
	return nil
}

// take waits until c has so many bytes of memory more.
func (b *Bound) take(ctx context.Context, c *Claim, need int64) error {
	g := &growth{c, need, make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, g)
	b.serve()
	b.mu.Unlock()
	select {
	case <-g.served:
		return nil
	default:
	}
	began := time.Now()
	defer func() { c.wait += time.Since(began) }()
	late := time.NewTimer(MaxWait - c.wait)
	defer late.Stop()
	var err error
	select {
	case <-g.served:
		return nil
	case <-late.C:
		err = noMemory(true, "this node's memory for payloads in flight, %d bytes, had no room for a call within %v: give it more (--payload-memory), or run fewer large calls at once", b.total, MaxWait)
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, g)
	if i < 0 {
		return nil // it was served just then
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return err
}

// serve hands out what there is to those that wait. The claim that has the other half goes back
// to the shared one if it fits there. The caller holds b.mu.
func (b *Bound) serve() {
	if c := b.alone; c != nil && c.own <= b.shared {
		b.shared -= c.own
		b.alone, c.own = nil, 0
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(g *growth) bool {
		switch {
		case g.claim == b.alone:
			g.claim.own += g.need
		case g.need <= b.shared:
			b.shared -= g.need
		case b.alone == nil:
			b.alone = g.claim
			g.claim.own = g.need
		default:
			return false
		}
		close(g.served)
		return true
	})
}

func (c *Claim) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	b := c.bound
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shared += c.held - c.own
	if b.alone == c {
		b.alone = nil
	}
	c.held, c.own = 0, 0
	b.serve()
}

func noMemory(temporary bool, format string, args ...any) error {
	return &providers.Error{Kind: providers.NoMemory, Temporary: temporary, Message: fmt.Sprintf(format, args...)}
}
