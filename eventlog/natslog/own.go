package natslog

import (
	"context"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// ownHeads is how many of the newest frames that this Log appended to a stream are
	// remembered, by their heads: those of more than a second at a thousand a second.
	ownHeads = 2048
	// ownBytes is how much of these frames is kept until their followers have them, by their
	// size as stored.
	ownBytes = 512 << 10
	// endFor is for how long the end of a stream is believed.
	endFor = fetchEvery / 2
)

// own is what this Log itself has appended to one stream, and the stream's end. Followers
// take the heads of their node's commits from here, with the frames that are kept: they read
// the stream only from a sequence on that another node has written, or that is not
// remembered. The zero value is empty. Safe for concurrent use.
type own struct {
	mu    sync.Mutex
	heads []ownHead // the one with sequence n is at n modulo ownHeads
	kept  int       // bytes of frames

	endMu      sync.Mutex
	end        uint64
	asked      time.Time
	replicated bool
}

type ownHead struct {
	eventlog.Head
	of messages.Partition
	// frame is kept for the follower of the partition, with its digest and its size as stored.
	// Nil: it is not.
	frame  *messages.Frame
	digest messages.Digest
	size   int
}

// add remembers a frame that is the agent's tail now.
func (o *own) add(e eventlog.Entry, tail eventlog.Position) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heads == nil {
		o.heads = make([]ownHead, ownHeads)
	}
	seq := tail.Seq
	h := &o.heads[seq%ownHeads]
	if h.Seq > seq {
		return
	}
	o.drop(h)
	f := e.Frame
	h.of = e.Agent.Partition()
	h.Head = eventlog.Head{Agent: e.Agent, Seq: seq, ID: f.ID, Time: time.Now().UTC(), Epoch: f.Epoch, First: f.First, Last: f.Last(), Summary: e.Summary}
	if o.kept+len(e.Bytes) <= ownBytes {
		h.frame, h.digest, h.size = f, tail.Digest, len(e.Bytes)
		o.kept += h.size
	}
}

// drop keeps a frame no longer.
func (o *own) drop(h *ownHead) {
	o.kept -= h.size
	h.frame, h.size = nil, 0
}

// forget remembers nothing: a server that was away may have lost messages, and assigns their
// sequences again.
func (o *own) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.heads)
	o.kept = 0
}

// at returns the head with this sequence; nil if it is not remembered.
func (o *own) at(seq uint64) *ownHead {
	if o.heads == nil || o.heads[seq%ownHeads].Seq != seq {
		return nil
	}
	return &o.heads[seq%ownHeads]
}

// behind returns the heads of a partition among those that follow sequence at without a gap,
// with the frames that are kept, which they are no longer, and the sequence of the last of all.
func (o *own) behind(at uint64, p messages.Partition) (list []eventlog.Stored, last uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for h := o.at(at + 1); h != nil; h = o.at(at + 1) {
		if at = h.Seq; h.of == p {
			list = append(list, h.stored())
			o.drop(h)
		}
	}
	return list, at
}

// take returns the message with this sequence, with its frame if that is kept, which it is no
// longer. It reports whether it is remembered.
func (o *own) take(seq uint64) (m eventlog.Stored, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.at(seq)
	if h == nil {
		return m, false
	}
	m = h.stored()
	o.drop(h)
	return m, true
}

// stored returns the message that holds the frame, or its head alone if the frame is not kept.
func (h *ownHead) stored() eventlog.Stored {
	if h.frame == nil {
		return eventlog.Stored{Head: h.Head}
	}
	f, digest := *h.frame, h.digest
	f.Time = time.Unix(0, f.Time.UnixNano()).UTC() // as it is read
	s := eventlog.Stored{Head: h.Head, Types: make([]string, len(f.Events))}
	for i, ev := range f.Events {
		s.Types[i] = ev.EventType()
	}
	s.Frame, s.Digest = func() (*messages.Frame, error) { return &f, nil }, func() messages.Digest { return digest }
	return s
}

// has reports whether the frame at seq was appended by this Log, as far as it is remembered.
func (o *own) has(seq uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at(seq) != nil
}

// newest returns the sequence of the newest message of the stream, as of now or of a moment
// ago: the followers of a stream share the answer.
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
	o.replicated = info.Cluster != nil && len(info.Cluster.Replicas) > 0
	return o.end, nil
}

// isReplicated reports whether a consumer may read another replica than the one that has named
// the stream's end.
func (o *own) isReplicated() bool {
	o.endMu.Lock()
	defer o.endMu.Unlock()
	return o.replicated
}
