//go:build unix

package clustertest

import (
	"bytes"
	"regexp"
	"strconv"
)

// StopAt has everything stop between the node and NATS at the n-th append of a frame from
// now on, until it is cut off: before the server gets that frame or, stored, when the server
// has stored it and the node does not know. The channel is closed when it has come to that.
// It is for a world of one server.
func (n *Node) StopAt(appends int, stored bool) (met <-chan struct{}) {
	w := n.wires[0]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = &boundary{appends: appends, stored: stored, met: make(chan struct{})}
	return w.end.met
}

// Stored is how many frames are in the log.
func (w *World) Stored() (frames int) {
	w.t.Helper()
	for _, name := range logStreams() {
		stream, err := w.js.Stream(w.ctx, name)
		w.ok(err)
		frames += int(stream.CachedInfo().State.Msgs)
	}
	return frames
}

// stop notes what a line has taken, and stops the wire where it ends. w.mu is held.
func (w *wire) stop(l *line, some []byte) {
	taken := l.given + len(l.waiting) - len(some)
	if l.direction == down {
		if b := w.end; b != nil {
			b.acks -= l.ops.acks(some)
			b.check()
		}
		return
	}
	for _, at := range l.ops.appends(some) {
		b := w.end
		if b == nil || b.appends == 0 {
			continue
		}
		b.acks++
		if b.appends--; b.appends > 0 {
			continue
		}
		w.held[up], w.held[down] = true, true
		for other := range w.lines {
			if other.direction == up { // what it has begun to say was counted
				other.until = other.given + len(other.waiting) - len(other.ops.line) + other.ops.skip
			}
		}
		l.until = taken + at.from
		if b.stored {
			l.until = taken + at.to
		} else {
			b.acks--
		}
		b.check()
	}
}

// check notes that the boundary is met: all that was passed on is stored.
func (b *boundary) check() {
	if b.appends > 0 || b.acks > 0 {
		return
	}
	select {
	case <-b.met:
	default:
		close(b.met)
	}
}

// ops reads what clients and servers say to each other.
type ops struct {
	line []byte // that has no end yet
	skip int    // bytes of a payload to come
	tail []byte // of what came down
}

// span is where an operation begins and ends, counted from the bytes at hand.
type span struct{ from, to int }

// appends are the appends of frames that begin, or are known to, with some more bytes.
func (o *ops) appends(some []byte) (found []span) {
	for at := 0; at < len(some); {
		if o.skip > 0 {
			n := min(o.skip, len(some)-at)
			o.skip, at = o.skip-n, at+n
			continue
		}
		end := bytes.IndexByte(some[at:], '\n')
		if end < 0 {
			o.line = append(o.line, some[at:]...)
			break
		}
		from := at - len(o.line)
		line := append(o.line, some[at:at+end]...)
		o.line, at = nil, at+end+1
		fields := bytes.Fields(line)
		if len(fields) < 3 || !bytes.HasSuffix(fields[0], []byte("PUB")) {
			continue
		}
		size, err := strconv.Atoi(string(fields[len(fields)-1]))
		if err != nil {
			continue
		}
		o.skip = size + len("\r\n")
		if string(fields[0]) == "HPUB" && bytes.HasPrefix(fields[1], []byte("reprise.log.")) {
			found = append(found, span{from, at + o.skip})
		}
	}
	return found
}

var pubAck = regexp.MustCompile(`"stream":"REPRISE_LOG_[0-9]+", ?"seq":`)

// acks counts the appends that a server acknowledges with some more bytes.
func (o *ops) acks(some []byte) int {
	all := append(o.tail, some...)
	found := pubAck.FindAllIndex(all, -1)
	from := max(0, len(all)-64)
	if len(found) > 0 {
		from = max(from, found[len(found)-1][1])
	}
	o.tail = bytes.Clone(all[from:])
	return len(found)
}
