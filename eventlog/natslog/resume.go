package natslog

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A walk goes back from an agent's newest message by the fence that each frame
// was appended with: it is the sequence of the message before, which the server
// has checked. A walk costs a request for each frame, a scan looks at every
// block of the stream on the way.
const (
	walkFrames = 256     // at most
	walkEvents = 1024    // how far back a read behind a position may have to go; most frames have several
	walkTail   = 128     // how far back a read from an event may have to go
	walkWhole  = 24      // the events of a log that is walked back to its first frame
	walkBytes  = 8 << 20 // that it holds in memory, at most
)

// readBehind yields the frames behind r.After, up to a message that is or was the newest. If
// they are too many to walk back, or another process has published among them, or they came
// from another stream and have no fence, it scans the stream from there on.
func (l *Log) readBehind(ctx context.Context, a messages.AgentID, newest *stored, r eventlog.Range, yield func(eventlog.Recorded, error) bool) {
	there, messages, err := l.behind(ctx, a, newest, r)
	if err == nil && !there {
		err = fmt.Errorf("read %s on from event %d at sequence %d: %w", a, r.After.Last, r.After.Seq, eventlog.ErrElsewhere)
	}
	if err != nil {
		yield(eventlog.Recorded{}, err)
		return
	}
	l.records(ctx, a, r.After, messages, yield)
}

// behind returns the messages behind r.After up to newest, if that is there.
func (l *Log) behind(ctx context.Context, a messages.AgentID, newest *stored, r eventlog.Range) (there bool, rest iter.Seq2[*stored, error], err error) {
	after := r.After
	if after.Seq == 0 || seqOf(newest) < after.Seq {
		return false, nil, nil
	}
	w := l.walk(a, newest)
	if h, err := parseHeading(newest.header); err == nil && h.last <= after.Last+walkEvents {
		if err := w.back(ctx, func(m *stored) bool { return m.seq <= after.Seq || r.Seen && m.continues(a, after) }); err != nil {
			return false, nil, err
		}
	}
	if w.arrived {
		all := w.all()
		if all[0].seq > after.Seq {
			return true, each(ctx, all), nil
		}
		return all[0].is(after), each(ctx, all[1:]), nil
	}
	m, err := l.conn(a.Partition()).at(ctx, l.stream[a.Partition()], after.Seq)
	if err != nil || m == nil {
		return false, nil, err
	}
	return m.subject == newest.subject && m.is(after), l.scan(ctx, a, after.Seq, newest.seq), nil
}

// each yields messages that are there already, until ctx ends.
func each(ctx context.Context, all []*stored) iter.Seq2[*stored, error] {
	return func(yield func(*stored, error) bool) {
		for _, m := range all {
			err := ctx.Err()
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// is reports whether the message is the frame that t is the tail behind.
func (m *stored) is(t eventlog.Position) bool {
	h, err := parseHeading(m.header)
	return err == nil && m.seq == t.Seq && h.id == t.Frame && h.last == t.Last && h.epoch == t.Epoch && messages.DigestOf(m.data) == t.Digest
}

// continues reports whether the message is the frame that was appended behind t: its fence and what it
// says of the frame before prove that without a look at that one.
func (m *stored) continues(a messages.AgentID, t eventlog.Position) bool {
	if m.header.Get(headerFence) != strconv.FormatUint(t.Seq, 10) {
		return false
	}
	d := m.decoded(a)
	if d.err != nil {
		return false
	}
	is := followed(d.frame)
	return is.Frame == t.Frame && is.Digest == t.Digest && is.Last == t.Last
}

// near returns the agent's frames, if they are near its newest message, from the one before the
// frame that holds the event, or from that frame where the one before cannot be read or need not be.
// tail is the position that they must continue.
func (l *Log) near(ctx context.Context, a messages.AgentID, newest *stored, r eventlog.Range) (tail eventlog.Position, all []*stored, err error) {
	from := r.Event()
	h, err := parseHeading(newest.header)
	switch {
	case err == nil && from <= 1 && h.last <= walkWhole:
		return l.whole(ctx, a, newest)
	case err != nil || from <= 1 || h.last > from+walkTail:
		return eventlog.Position{}, nil, nil
	}
	w := l.walk(a, newest)
	err = w.back(ctx, func(m *stored) bool {
		h, err := parseHeading(m.header)
		return len(w.found) > 1 && (err != nil || h.last < from) || h.first == from && (r.Seen || IsTombstone(m.header))
	})
	if err != nil || !w.arrived {
		return eventlog.Position{}, nil, err
	}
	all = w.all()
	for i, m := range all[:min(2, len(all))] {
		if f, err := decode(a, m); err == nil && (i == 0 || f.First <= from) {
			return followed(f), all[i:], nil
		}
	}
	return eventlog.Position{}, nil, nil // reading all of it finds out where it is damaged
}

// whole returns all of the agent's frames, if they can be walked back to the first
// and are all that is there.
func (l *Log) whole(ctx context.Context, a messages.AgentID, newest *stored) (tail eventlog.Position, all []*stored, err error) {
	w := l.walk(a, newest)
	err = w.back(ctx, func(m *stored) bool {
		h, err := parseHeading(m.header)
		return err == nil && h.first == 1
	})
	if err != nil || !w.arrived {
		return eventlog.Position{}, nil, err
	}
	if w.found[len(w.found)-1].isFirst() {
		return eventlog.Position{}, w.all(), nil
	}
	p := a.Partition()
	n, err := l.conn(p).count(ctx, l.stream[p], newest.subject)
	if err != nil || n != len(w.found) { // more has come, or what no frame follows
		return eventlog.Position{}, nil, err
	}
	return eventlog.Position{}, w.all(), nil
}

// isFirst reports whether the server had nothing before the message on its subject when it
// stored it.
func (m *stored) isFirst() bool {
	return m.header.Get(headerFence) == "0" && len(m.header[headerFenceSubject]) == 0
}

// walk is a way back from an agent's newest message.
type walk struct {
	l       *Log
	agent   messages.AgentID
	found   []*stored // newest first
	bytes   int
	arrived bool
}

func (l *Log) walk(a messages.AgentID, newest *stored) *walk {
	return &walk{l: l, agent: a, found: []*stored{newest}, bytes: len(newest.data)}
}

// all returns what was found, oldest first.
func (w *walk) all() []*stored {
	slices.Reverse(w.found)
	return w.found
}

// back walks until what was found last is where the walk shall end, and has
// arrived then. It gives up, which is no error, where there is no way on.
func (w *walk) back(ctx context.Context, end func(*stored) bool) error {
	p := w.agent.Partition()
	for range walkFrames {
		m := w.found[len(w.found)-1]
		if !m.isFrame() {
			return nil
		}
		if w.arrived = end(m); w.arrived {
			return nil
		}
		fence, err := strconv.ParseUint(m.header.Get(headerFence), 10, 64)
		if err != nil || fence == 0 || fence >= m.seq || w.bytes > walkBytes {
			return nil
		}
		before, err := w.l.conn(p).at(ctx, w.l.stream[p], fence)
		if err != nil {
			return err
		}
		if before == nil || before.subject != m.subject {
			return nil
		}
		w.found, w.bytes = append(w.found, before), w.bytes+len(before.data)
	}
	return nil
}
