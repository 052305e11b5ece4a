package natslog

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

const (
	batchFrames = 32        // that are decoded together
	batchBytes  = 256 << 10 // that end a batch
	// batchesAhead is how many may have come before they are asked for: all that a request brings, so
	// that the server sends what the next one asks for while they are decoded.
	batchesAhead = manyAtOnce / batchFrames
)

// decoded is what a message holds.
type decoded struct {
	frame  *messages.Frame
	digest messages.Digest
	err    error
}

// from decodes. A panic would be a mistake of ours, which must not end the process.
func (d *decoded) from(a messages.AgentID, m *stored) {
	defer func() {
		if p := recover(); p != nil {
			d.err = fmt.Errorf("cannot be decoded: %v", p)
		}
	}()
	d.frame, d.err = decode(a, m)
	d.digest = messages.DigestOf(m.data)
}

// decoded returns what was decoded ahead, or decodes, once.
func (m *stored) decoded(a messages.AgentID) *decoded {
	if m.early == nil {
		m.early = &decoded{}
		m.early.from(a, m)
	}
	return m.early
}

// batch is messages that are decoded together: to hand over each by itself costs as much as to decode it.
type batch struct {
	all  []*stored
	size int
	err  error         // behind them
	done chan struct{} // closed when they are decoded
}

func (b *batch) add(m *stored) {
	b.all, b.size = append(b.all, m), b.size+len(m.data)
}

func (b *batch) isFull() bool { return len(b.all) >= batchFrames || b.size >= batchBytes }

func (b *batch) decode(a messages.AgentID) {
	defer close(b.done)
	for _, m := range b.all {
		if m.isFrame() {
			m.decoded(a)
		}
	}
}

// ahead yields the same messages, which other goroutines fetch and decode
// meanwhile: decoding takes longer than fetching does. None of them outlives the
// loop.
func ahead(ctx context.Context, a messages.AgentID, all iter.Seq2[*stored, error]) iter.Seq2[*stored, error] {
	return func(yield func(*stored, error) bool) {
		ready, stop := make(chan *batch, batchesAhead), make(chan struct{})
		var crew sync.WaitGroup
		defer crew.Wait()
		defer close(stop)
		crew.Go(func() {
			defer close(ready)
			batches(all, func(b *batch) bool {
				b.done = make(chan struct{})
				crew.Go(func() { b.decode(a) })
				select {
				case ready <- b:
				case <-stop:
				}
				return !isClosed(stop)
			})
		})
		for b := range ready {
			if <-b.done; !b.yield(ctx, yield) {
				return
			}
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// batches calls give with the messages in batches, the last of which has the error.
func batches(all iter.Seq2[*stored, error], give func(*batch) (more bool)) {
	b := &batch{}
	for m, err := range all {
		if err != nil {
			b.err = err
			break
		}
		if b.add(m); b.isFull() {
			if !give(b) {
				return
			}
			b = &batch{}
		}
	}
	if len(b.all) > 0 || b.err != nil {
		give(b)
	}
}

// yield yields the messages until ctx ends: what has come by then is of no use any more.
func (b *batch) yield(ctx context.Context, yield func(*stored, error) bool) (more bool) {
	for _, m := range b.all {
		err := ctx.Err()
		if !yield(m, err) || err != nil {
			return false
		}
	}
	return b.err == nil || yield(nil, b.err) && false
}
