package natslog

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

const (
	decodersAhead = 2  // goroutines of a scan that decode
	framesAhead   = 64 // that may have come before they are asked for
)

// decoded is what a message holds, once done is closed.
type decoded struct {
	done   chan struct{}
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

// ahead yields the same messages, which other goroutines fetch and decode
// meanwhile: decoding takes longer than fetching does. None of them outlives the
// loop.
func ahead(ctx context.Context, a messages.AgentID, all iter.Seq2[*stored, error]) iter.Seq2[*stored, error] {
	type next struct {
		m   *stored
		err error
	}
	return func(yield func(*stored, error) bool) {
		ready, work, stop := make(chan next, framesAhead), make(chan *stored, framesAhead), make(chan struct{})
		var crew sync.WaitGroup
		defer crew.Wait()
		defer close(stop)
		crew.Go(func() {
			defer close(ready)
			defer close(work)
			for m, err := range all {
				if err == nil && m.isFrame() {
					m.early = &decoded{done: make(chan struct{})}
					work <- m // not stopped: the decoders take all of it
				}
				select {
				case ready <- next{m, err}:
				case <-stop:
					return
				}
			}
		})
		for range decodersAhead {
			crew.Go(func() {
				for m := range work {
					m.early.from(a, m)
					close(m.early.done)
				}
			})
		}
		for n := range ready {
			if n.err == nil && ctx.Err() != nil { // what has come already is of no use any more
				n.err = ctx.Err()
			}
			if !yield(n.m, n.err) || n.err != nil {
				return
			}
		}
	}
}

// decoded waits for what was decoded ahead, or decodes, once.
func (m *stored) decoded(a messages.AgentID) *decoded {
	if m.early == nil {
		m.early = &decoded{done: make(chan struct{})}
		m.early.from(a, m)
		close(m.early.done)
	}
	<-m.early.done
	return m.early
}
