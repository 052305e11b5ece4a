//go:build unix

package clustertest

import (
	"bytes"
	"net"
	"regexp"
	"sync"
)

// wire carries the connections of one node to one server. Safe for concurrent use.
type wire struct {
	to       string
	listener net.Listener
	serving  sync.WaitGroup

	mu    sync.Mutex
	moved sync.Cond // something below has changed
	cut   bool
	held  map[direction]bool
	lines map[*line]bool
	// refused counts the appends to the log that the server would not take because another node
	// had written.
	refused int
	// end is where the wire stops; nil: nowhere.
	end *boundary
}

// boundary is where a wire stops: at an append of a frame.
type boundary struct {
	appends int // to come, the last of them is the one
	stored  bool
	acks    int           // still to come, of what was passed on
	met     chan struct{} // closed when nothing moves any more
}

// direction is that of bytes on a wire.
type direction int

const (
	up   direction = iota + 1 // from the node
	down                      // to the node
)

// line is one direction of a connection.
type line struct {
	direction
	from, into *net.TCPConn
	// waiting was taken from the one end and not yet passed to the other.
	waiting []byte
	// rest is the end of what was taken before, in which something may begin.
	rest []byte
	done bool
	// given is how much of what was taken was passed on, until how much of it is although the
	// direction is held.
	given, until int
	ops          ops
}

// mostHeld is how much a line takes in that it does not pass on; the rest stays with the sender.
const mostHeld = 4 << 20

func newWire(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{to: to, listener: l, held: make(map[direction]bool), lines: make(map[*line]bool)}
	w.moved.L = &w.mu
	w.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.serving.Go(func() { w.carry(c.(*net.TCPConn)) }) // as was listened for
		}
	})
	return w, nil
}

func (w *wire) url() string { return "nats://" + w.listener.Addr().String() }

// carry connects one that came with the server, until either end is gone.
func (w *wire) carry(node *net.TCPConn) {
	defer func() { _ = node.Close() }()
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if cut {
		return
	}
	c, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	server := c.(*net.TCPConn) // as was dialled
	defer func() { _ = server.Close() }()
	both := []*line{{direction: up, from: node, into: server}, {direction: down, from: server, into: node}}
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		return
	}
	for _, l := range both {
		w.lines[l] = true
	}
	w.mu.Unlock()
	var ends sync.WaitGroup
	for _, l := range both {
		ends.Go(func() { w.take(l) })
		ends.Go(func() { w.give(l) })
	}
	ends.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range both {
		delete(w.lines, l)
	}
}

// take reads a line's one end.
func (w *wire) take(l *line) {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.from.Read(buf)
		w.mu.Lock()
		l.waiting = append(l.waiting, buf[:n]...)
		w.listen(l, buf[:n])
		w.stop(l, buf[:n])
		l.done = l.done || err != nil
		w.moved.Broadcast()
		for !l.done && len(l.waiting) > mostHeld {
			w.moved.Wait()
		}
		done := l.done
		w.mu.Unlock()
		if done {
			return
		}
	}
}

// refusal is how a server refuses an append to the log because of its fence.
var refusal = regexp.MustCompile(`"err_code":(?:10071|10164),"description":"[^"]*"},"stream":"REPRISE_LOG_`)

// listen counts refusals. w.mu is held.
func (w *wire) listen(l *line, some []byte) {
	if l.direction != down {
		return
	}
	all := append(l.rest, some...)
	found := refusal.FindAllIndex(all, -1)
	w.refused += len(found)
	from := max(0, len(all)-256)
	if len(found) > 0 {
		from = max(from, found[len(found)-1][1])
	}
	l.rest = append([]byte(nil), all[from:]...)
}

// give writes a line's other end; when the one end is gone, and all it sent was passed on, so is
// this one. What is held is passed on before that.
func (w *wire) give(l *line) {
	for {
		w.mu.Lock()
		may := w.may(l)
		for may == 0 && (w.held[l.direction] && !w.cut || !l.done) {
			w.moved.Wait()
			may = w.may(l)
		}
		some := l.waiting[:may:may]
		l.waiting = l.waiting[may:]
		l.given += may
		w.moved.Broadcast()
		w.mu.Unlock()
		if len(some) == 0 {
			break
		}
		if _, err := l.into.Write(some); err != nil {
			break
		}
	}
	w.mu.Lock()
	l.done, l.waiting = true, nil
	w.moved.Broadcast()
	w.mu.Unlock()
	// The other direction continues until its own end: it may hold something.
	_, _ = l.from.CloseRead(), l.into.CloseWrite()
}

// may is how many bytes of a line may be passed on now. w.mu is held.
func (w *wire) may(l *line) int {
	if w.held[l.direction] && !w.cut {
		return max(0, min(len(l.waiting), l.until-l.given))
	}
	return len(l.waiting)
}

// hold keeps what travels in a direction, in order, until heal.
func (w *wire) hold(d direction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[d] = true
}

// sever breaks every connection, loses what was on the way, and refuses new ones
// until heal.
func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for l := range w.lines {
		l.done, l.waiting = true, nil
		_, _ = l.from.Close(), l.into.Close()
	}
	w.moved.Broadcast()
}

// heal undoes hold and sever; what was held arrives now.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.held, w.end = false, make(map[direction]bool), nil
	for l := range w.lines {
		l.until = 0
	}
	w.moved.Broadcast()
}

// holds reports whether what is held in a direction contains text.
func (w *wire) holds(d direction, text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.lines {
		if l.direction == d && bytes.Contains(l.waiting, []byte(text)) {
			return true
		}
	}
	return false
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.sever()
	w.serving.Wait()
}
