package natslog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Head returns the position of the agent's newest frame as the stream's leader has it; see
// eventlog.Reader.
func (l *Log) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	m, fence, err := l.newestFrame(ctx, a)
	if err != nil || m == nil {
		return eventlog.Position{Seq: fence}, err
	}
	h, _ := parseHeading(m.header) // unreadable: a position that no append expects
	return h.position(m, fence), nil
}

func (h heading) position(m *stored, fence uint64) eventlog.Position {
	return eventlog.Position{Seq: fence, Frame: h.id, Digest: messages.DigestOf(m.data), Last: h.last, Epoch: h.epoch, Time: h.time}
}

// stored is a message as a stream has it.
type stored struct {
	seq     uint64
	subject string
	header  nats.Header
	data    []byte
	early   *decoded  // nil: it was not decoded ahead
	when    time.Time // it was stored; zero in what a consumer or direct get brought
}

func (m *stored) isFrame() bool { return len(m.header[headerFrame]) > 0 }

// newestFrame returns the newest frame on the agent's subject, nil if there is
// none, and the sequence of the newest message, frame or not.
func (l *Log) newestFrame(ctx context.Context, a messages.AgentID) (frame *stored, fence uint64, err error) {
	newest, err := l.newest(ctx, a)
	if err != nil || newest == nil || newest.isFrame() {
		return newest, seqOf(newest), err
	}
	// Rare: a foreign message was published here. The frame before is found by reading.
	for m, err := range l.scan(ctx, a, 0, newest.seq) {
		if err != nil {
			return nil, 0, err
		}
		if m.isFrame() {
			frame = m
		}
	}
	return frame, newest.seq, nil
}

func seqOf(m *stored) uint64 {
	if m == nil {
		return 0
	}
	return m.seq
}

// newest returns the newest message that the filter matches, from the stream's
// leader; nil if there is none.
func (c *conn) newest(ctx context.Context, stream, filter string) (*stored, error) {
	return c.get(ctx, stream, place{Last: filter})
}

// at returns the message with this sequence, from the stream's leader; nil if
// there is none.
func (c *conn) at(ctx context.Context, stream string, seq uint64) (*stored, error) {
	return c.get(ctx, stream, place{Seq: seq})
}

// place says which message of a stream is asked for.
type place struct {
	Last string `json:"last_by_subj,omitempty"`
	Seq  uint64 `json:"seq,omitempty"`
	// Next is a subject: the first message on it from Seq on that can be read.
	Next string `json:"next_by_subj,omitempty"`
}

func (p place) String() string {
	if p.Next != "" {
		return fmt.Sprintf("the next message on %s from sequence %d on", p.Next, p.Seq)
	}
	if p.Last != "" {
		return "the newest message on " + p.Last
	}
	return fmt.Sprintf("the message with sequence %d", p.Seq)
}

func (c *conn) get(ctx context.Context, stream string, p place) (*stored, error) {
	ask, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	answer, err := c.api(ctx, "$JS.API.STREAM.MSG.GET.", stream, ask)
	if err != nil {
		return nil, fmt.Errorf("read %v in %s: %w", p, stream, err)
	}
	return p.read(answer, stream)
}

// read takes a leader's answer.
func (p place) read(answer *nats.Msg, stream string) (*stored, error) {
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err := json.Unmarshal(answer.Data, &got)
	if err != nil {
		return nil, fmt.Errorf("read %v in %s: %w", p, stream, err)
	}
	switch {
	case got.Error != nil && got.Error.ErrorCode == codeNoMessage:
		return nil, nil
	case got.Error != nil:
		return nil, fmt.Errorf("read %v in %s: %w", p, stream, forNow(got.Error))
	case got.Message == nil:
		return nil, fmt.Errorf("read %v in %s: an answer without a message", p, stream)
	}
	m := &stored{seq: got.Message.Seq, subject: got.Message.Subject, data: got.Message.Data, when: got.Message.Time}
	if len(got.Message.Header) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(got.Message.Header); err != nil {
			return nil, fmt.Errorf("headers of sequence %d in %s: %w", m.seq, stream, err)
		}
	}
	return m, nil
}

// count is how many messages there are on a subject, as the stream's leader has it.
func (c *conn) count(ctx context.Context, stream, subject string) (int, error) {
	ask, err := json.Marshal(map[string]string{"subjects_filter": subject})
	if err != nil {
		return 0, err
	}
	answer, err := c.api(ctx, "$JS.API.STREAM.INFO.", stream, ask)
	if err != nil {
		return 0, fmt.Errorf("count the messages on %s: %w", subject, err)
	}
	var got struct {
		Error *jetstream.APIError `json:"error"`
		State struct {
			Subjects map[string]int `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return 0, fmt.Errorf("count the messages on %s: %w", subject, err)
	}
	if got.Error != nil {
		return 0, fmt.Errorf("count the messages on %s: %w", subject, forNow(got.Error))
	}
	return got.State.Subjects[subject], nil
}
