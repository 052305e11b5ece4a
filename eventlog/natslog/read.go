package natslog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// patience is how many consumers in a row a reader tries that bring nothing.
const patience = 3

// Read yields the agent's frames; see eventlog.Reader. All frames are verified
// from the first on, whatever from is. A reader that gets nothing for about a
// quarter of a minute, though the leader has more, ends with an error.
func (l *Log) Read(ctx context.Context, a messages.AgentID, from messages.EventNumber) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if err := a.Validate(); err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		p := a.Partition()
		newest, err := l.conn(p).newest(ctx, l.stream[p], l.subject(a, p))
		if err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		var tail eventlog.Tail
		for m, err := range l.scan(ctx, a, seqOf(newest)) {
			var r eventlog.Recorded
			if err == nil && !m.isFrame() {
				l.reportForeign(a, m)
				continue
			}
			if err == nil {
				r, err = record(a, tail, m)
			}
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			tail = r.Tail()
			if tail.Last >= from && !yield(r, nil) {
				return
			}
		}
	}
}

// record makes a frame of a message and checks that it follows tail.
func record(a messages.AgentID, tail eventlog.Tail, m *stored) (eventlog.Recorded, error) {
	damaged := func(err error) (eventlog.Recorded, error) {
		return eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Seq: m.seq, Event: tail.Last + 1, Err: err}
	}
	f, err := messages.DecodeFrame(a, m.data)
	if err != nil {
		return damaged(err)
	}
	r := eventlog.Recorded{Agent: a, Seq: m.seq, Frame: f, Digest: messages.DigestOf(m.data), Size: len(m.data)}
	if err := eventlog.Check(tail, r); err != nil {
		return eventlog.Recorded{}, err
	}
	h, err := parseHeading(m.header)
	if err != nil {
		return damaged(err)
	}
	if h.id != f.ID || h.first != f.First || h.last != f.Last() || h.epoch != f.Epoch {
		return damaged(fmt.Errorf("its header says frame %s with events %d to %d, it is frame %s with %d to %d", h.id, h.first, h.last, f.ID, f.First, f.Last()))
	}
	return r, nil
}

// reportForeign tells of a message that is no frame, once each.
func (l *Log) reportForeign(a messages.AgentID, m *stored) {
	type place struct {
		agent messages.AgentID
		seq   uint64
	}
	if _, told := l.foreign.LoadOrStore(place{a, m.seq}, struct{}{}); !told {
		l.log.Warn("a foreign message on an agent's log subject is skipped: nobody but the owner may publish there",
			"agent", a.String(), "stream", l.stream[a.Partition()], "sequence", m.seq, "bytes", len(m.data))
	}
}

// scan gives every message on the agent's subject from the first up to the
// one with sequence last. It begins anew where a consumer was lost.
func (l *Log) scan(ctx context.Context, a messages.AgentID, last uint64) iter.Seq2[*stored, error] {
	return func(yield func(*stored, error) bool) {
		s := &scanner{l: l, agent: a, last: last}
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
// more to read, or err to tell.
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
	heard := time.Now()
	for s.at < s.last {
		m, err := f.next(ctx)
		switch {
		case err != nil:
			return true, err
		case m != nil:
			heard = time.Now()
			s.at = m.seq
			if !yield(&m.stored, nil) {
				return false, nil
			}
		case time.Since(heard) > silence:
			return true, errors.New("the consumer is alive but brings no more: its server lags behind, or messages were removed")
		}
	}
	return false, nil
}
