package scripted

import (
	"context"
	"sync"
)

// Gate holds those who come to it until it is released, so that a test can act
// in the middle of a model call without sleeping. Safe for concurrent use;
// make one with NewGate.
type Gate struct {
	reached, released chan struct{}
	arrive, open      sync.Once
}

// NewGate makes a closed gate.
func NewGate() *Gate {
	return &Gate{reached: make(chan struct{}), released: make(chan struct{})}
}

// Reached is closed when the first call has come to the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Release lets through all who wait and all who come later. A second Release
// does nothing.
func (g *Gate) Release() { g.open.Do(func() { close(g.released) }) }

// Wait returns nil once the gate is released, or the cause of ctx's end. A nil
// gate holds none.
func (g *Gate) Wait(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.arrive.Do(func() { close(g.reached) })
	select {
	case <-g.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
