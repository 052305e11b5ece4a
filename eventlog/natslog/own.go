package natslog

import (
	"context"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// ownKept is how many of the newest frames that this Log appended to a stream are
	// remembered, by their heads: those of more than a second at a thousand a second.
	ownKept = 2048
	// endFor is for how long the end of a stream is believed.
	endFor = fetchEvery / 2
)

// own is the heads of frames that this Log itself has appended to one stream, and the
// stream's end. A follower takes the heads of its node's commits from here: it reads the
// stream only from a sequence on that another node has written. The zero value is empty.
// Safe for concurrent use.
type own struct {
	mu    sync.Mutex
	heads []ownHead // the one with sequence n is at n modulo ownKept

	endMu sync.Mutex
	end   uint64
	asked time.Time
}

type ownHead struct {
	eventlog.Head
	of messages.Partition
}

// add remembers a frame that was stored at seq.
func (o *own) add(e eventlog.Entry, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heads == nil {
		o.heads = make([]ownHead, ownKept)
	}
	f := e.Frame
	if h := &o.heads[seq%ownKept]; h.Seq < seq {
		h.of = e.Agent.Partition()
		h.Head = eventlog.Head{Agent: e.Agent, Seq: seq, ID: f.ID, Time: time.Now().UTC(), Epoch: f.Epoch, First: f.First, Last: f.Last(), Summary: e.Summary}
	}
}

// behind returns the heads of a partition among those that follow sequence at without a gap,
// and the sequence of the last of all.
func (o *own) behind(at uint64, p messages.Partition) (list []eventlog.Head, last uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for last = at; o.heads != nil && o.heads[(last+1)%ownKept].Seq == last+1; {
		last++
		if h := &o.heads[last%ownKept]; h.of == p {
			list = append(list, h.Head)
		}
	}
	return list, last
}

// has reports whether the frame at seq was appended by this Log, as far as it is remembered.
func (o *own) has(seq uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.heads != nil && o.heads[seq%ownKept].Seq == seq
}

// newest returns the sequence of the newest message of the stream, as of now or of a moment
// ago: the followers of a stream's partitions share the answer.
func (o *own) newest(ctx context.Context, c *conn, stream string) (uint64, error) {
	o.endMu.Lock()
	defer o.endMu.Unlock()
	if time.Since(o.asked) < endFor {
		return o.end, nil
	}
	info, err := c.info(ctx, stream)
	if err != nil {
		return 0, err
	}
	o.end, o.asked = info.State.LastSeq, time.Now()
	return o.end, nil
}
