package natslog

import (
	"context"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// patience is how many consumers in a row a reader tries that bring nothing.
const patience = 3

// Read yields the agent's frames; see eventlog.Reader. A reader that gets nothing for about a
// quarter of a minute, though the leader has more, ends with an error.
func (l *Log) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		newest, err := l.readTo(ctx, a, r.Upto)
		switch {
		case err != nil:
			yield(eventlog.Recorded{}, err)
		case r.After.Frame != "":
			l.readBehind(ctx, a, newest, r, yield)
		case newest != nil:
			l.read(ctx, a, newest, r, yield)
		}
	}
}

// readTo returns the message to read up to; nil if there is none.
func (l *Log) readTo(ctx context.Context, a messages.AgentID, upto *eventlog.Newest) (*stored, error) {
	if upto == nil {
		return l.newest(ctx, a)
	}
	m, is := upto.Source.(*stored)
	if !is {
		return nil, fmt.Errorf("read %s up to sequence %d: that was not read ahead from this log", a, upto.Seq)
	}
	return m, nil
}

// read is Read up to a message that is or was the newest.
func (l *Log) read(ctx context.Context, a messages.AgentID, newest *stored, r eventlog.Range, yield func(eventlog.Recorded, error) bool) {
	from := r.Event()
	tail, all, err := l.near(ctx, a, newest, r)
	if err != nil {
		yield(eventlog.Recorded{}, err)
		return
	}
	source := each(ctx, all)
	if len(all) == 0 {
		var after uint64
		if after, tail, err = l.before(ctx, a, newest, from); err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		source = ahead(ctx, a, l.scan(ctx, a, after, newest.seq))
	}
	l.records(ctx, a, tail, source, func(r eventlog.Recorded, err error) bool {
		return err == nil && r.Frame.Last() < from || yield(r, err)
	})
}

// before returns the sequence behind which to read from event from on, and the position that
// what follows must continue: the next frame is the one that holds the event before, so that
// the chain between them is verified, or the one that holds from, where that one cannot be
// read. It searches by bisection, because event numbers grow with sequences. Where that finds
// no such frame it returns the beginning of the log.
func (l *Log) before(ctx context.Context, a messages.AgentID, newest *stored, from messages.EventNumber) (uint64, eventlog.Position, error) {
	if from <= 1 {
		return 0, eventlog.Position{}, nil
	}
	p, n := a.Partition(), from-1
	next := func(seq uint64) (*stored, error) {
		return l.conn(p).get(ctx, l.stream[p], place{Seq: seq, Next: newest.subject})
	}
	low := uint64(1)
	for high := newest.seq; low <= high; {
		middle := low + (high-low)/2
		m, err := next(middle)
		if err != nil {
			return 0, eventlog.Position{}, err
		}
		var h heading
		if m != nil && m.isFrame() {
			h, err = parseHeading(m.header)
		}
		switch {
		case m == nil || !m.isFrame() || err != nil:
			return 0, eventlog.Position{}, nil
		case h.first > n:
			high = middle - 1
		case h.last < n:
			low = m.seq + 1
		default:
			if at, ok := m.follows(a, n); ok {
				return m.seq - 1, at, nil
			}
			low, high = m.seq+1, 0
		}
	}
	m, err := next(low)
	if err == nil && m != nil && m.isFrame() {
		if at, ok := m.follows(a, from); ok {
			return m.seq - 1, at, nil
		}
	}
	return 0, eventlog.Position{}, err // reading all of it finds out where it is damaged
}

// follows returns the position that a frame continues, if it can be read and holds event n.
func (m *stored) follows(a messages.AgentID, n messages.EventNumber) (at eventlog.Position, ok bool) {
	f, err := decode(a, m)
	if err != nil || n < f.First || n > f.Last() {
		return eventlog.Position{}, false
	}
	return followed(f), true
}

// followed returns the position that a frame continues.
func followed(f *messages.Frame) eventlog.Position {
	return eventlog.Position{Frame: f.Prev, Digest: f.PrevDigest, Last: f.First - 1, Epoch: f.Epoch}
}

// newest returns the newest message on the agent's subject, nil if there is none.
func (l *Log) newest(ctx context.Context, a messages.AgentID) (*stored, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	p := a.Partition()
	c, stream, subject := l.conn(p), l.stream[p], l.subject(a, p)
	m, err := c.newest(ctx, stream, subject)
	if err != nil || m != nil {
		return m, err
	}
	// The server answers the same if it cannot read the message.
	n, err := c.count(ctx, stream, subject)
	if err != nil || n == 0 {
		return nil, err
	}
	m, err = c.newest(ctx, stream, subject)
	if err == nil && m == nil {
		err = &eventlog.DamageError{Agent: a, Err: fmt.Errorf("stream %s has %d messages of it and cannot read the newest: one is damaged on disk", stream, n)}
	}
	return m, err
}

// records yields the frames among the messages, which must follow tail. One that ends
// the agent may stand wherever it does once what it followed has been purged, also
// while this reads.
func (l *Log) records(ctx context.Context, a messages.AgentID, tail eventlog.Position, all iter.Seq2[*stored, error], yield func(eventlog.Recorded, error) bool) {
	for m, err := range all {
		var r eventlog.Recorded
		if err == nil && !m.isFrame() {
			l.reportForeign(a, m)
			continue
		}
		if err == nil {
			r, err = record(a, tail, m)
		}
		if err != nil && r.Frame != nil && eventlog.Ends(r.Frame) && l.isPurged(ctx, a, tail) {
			r, err = record(a, eventlog.Position{}, m)
		}
		if err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		if tail = r.Position(); !yield(r, nil) {
			return
		}
	}
}

// isPurged reports whether a frame which was there is gone.
func (l *Log) isPurged(ctx context.Context, a messages.AgentID, tail eventlog.Position) bool {
	p := a.Partition()
	m, err := l.conn(p).at(ctx, l.stream[p], tail.Seq)
	return err == nil && m == nil
}

// record makes a frame of a message and checks that it follows tail.
func record(a messages.AgentID, tail eventlog.Position, m *stored) (eventlog.Recorded, error) {
	d := m.decoded(a)
	if d.err != nil {
		return eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Seq: m.seq, Event: tail.Last + 1, Err: d.err}
	}
	r := eventlog.Recorded{Agent: a, Seq: m.seq, Frame: d.frame, Digest: d.digest, Size: len(m.data)}
	return r, eventlog.Check(tail, r)
}

// decode makes a frame of a message, whose headers must say the same.
func decode(a messages.AgentID, m *stored) (*messages.Frame, error) {
	f, err := messages.DecodeFrame(a, m.data)
	if err != nil {
		return nil, err
	}
	var space [128]byte
	if line := m.header[headerFrame]; len(line) > 0 && line[0] == string(appendFrameLine(space[:0], f)) {
		return f, nil // as we would write it
	}
	h, err := parseHeading(m.header)
	if err != nil {
		return nil, err
	}
	if h.id != f.ID || h.first != f.First || h.last != f.Last() || h.epoch != f.Epoch {
		return nil, fmt.Errorf("its header says frame %s with events %d to %d, it is frame %s with %d to %d", h.id, h.first, h.last, f.ID, f.First, f.Last())
	}
	return f, nil
}

// Published returns the frame with an id of a message that was published on its agent's log subject. Nil: the
// message is another one, or encrypted; the frame is read from the log.
func Published(a messages.AgentID, m *nats.Msg, id messages.FrameID) *messages.Frame {
	if h, err := parseHeading(m.Header); err != nil || h.id != id {
		return nil
	}
	f, err := decode(a, &stored{header: m.Header, data: m.Data})
	if err != nil || f.Encrypted() {
		return nil
	}
	return f
}

// reportForeign logs a message that is no frame, once each.
func (l *Log) reportForeign(a messages.AgentID, m *stored) {
	type place struct {
		agent messages.AgentID
		seq   uint64
	}
	if _, told := l.foreign.LoadOrStore(place{a, m.seq}, struct{}{}); !told {
		l.log.Warn("a foreign message on an agent's log subject is skipped: only the agent's owner may publish there",
			"agent", a.String(), "stream", l.stream[a.Partition()], "sequence", m.seq, "bytes", len(m.data))
	}
}

// scan yields every message on the agent's subject behind sequence after, up to
// the one with sequence last. It begins again where a consumer was lost.
func (l *Log) scan(ctx context.Context, a messages.AgentID, after, last uint64) iter.Seq2[*stored, error] {
	return func(yield func(*stored, error) bool) {
		s := &scanner{l: l, agent: a, at: after, last: last}
		for barren := 0; s.at < last; barren++ {
			before := s.at
			again, err := s.run(ctx, yield)
			if !again {
				return
			}
			if s.at > before {
				barren = 0
			}
			if ctx.Err() != nil || barren >= patience {
				yield(nil, fmt.Errorf("read the log of %s beyond sequence %d up to %d: %w", a, s.at, last, err))
				return
			}
		}
	}
}

// scanner remembers how far a scan has come.
type scanner struct {
	l     *Log
	agent messages.AgentID
	at    uint64 // sequence of the newest message
	last  uint64
}

// run reads with one consumer. again says that the scan is not over: there is
// more to read, or err to report.
func (s *scanner) run(ctx context.Context, yield func(*stored, error) bool) (again bool, err error) {
	p := s.agent.Partition()
	c := s.l.conn(p)
	cfg := jetstream.ConsumerConfig{FilterSubject: s.l.subject(s.agent, p), DeliverPolicy: jetstream.DeliverAllPolicy}
	if s.at > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, s.at+1
	}
	f, err := c.feed(ctx, s.l.stream[p], cfg)
	if err != nil {
		return true, err
	}
	defer f.close()
	again = true
	err = f.all(ctx, func(m *delivery) bool {
		s.at = m.seq
		again = yield(&m.stored, nil)
		return again && s.at < s.last
	}, nil)
	return again && s.at < s.last, err
}
