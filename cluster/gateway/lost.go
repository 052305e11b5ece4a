package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// streams are the answers of this node's agents that endpoints stream to callers which cannot notice by
// themselves that the endpoint is gone. The zero value has none.
type streams struct {
	open map[messages.AgentID]map[string]*streamed
	// ended are those that have ended lately: their endpoint may have gone before it sent that.
	ended []*streamed
	// absent is since when endpoints of these are no members.
	absent map[string]time.Time
}

// streamed is one of them.
type streamed struct {
	messages.Stream
	agent messages.AgentID
	input string
	at    time.Time // when it ended
	lost  bool      // its caller was notified, or is
}

const (
	// lostAfter is how long a node must be no member before its streams are ended: one that lost its
	// connection for a moment comes back.
	lostAfter = 3 * time.Second
	// endedFor is how long streams are kept that have ended: a member that has died is taken for a
	// living one for about lostAfter.
	endedFor = 3 * lostAfter
	// lostFor is how long the error is sent again while no caller is subscribed: one whose server went
	// with the node connects again after some seconds.
	lostFor = time.Minute
)

// Streaming notes which answers of an agent endpoints stream.
func (h *Broker) Streaming(a messages.AgentID, open map[string]messages.Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.lost
	now := make(map[string]*streamed, len(open))
	for input, s := range open {
		if now[input] = l.open[a][input]; now[input] == nil || now[input].Stream != s {
			now[input] = &streamed{Stream: s, agent: a, input: input}
		}
	}
	for input, s := range l.open[a] {
		if now[input] == nil && !s.lost {
			s.at = time.Now()
			l.ended = append(l.ended, s)
		}
	}
	switch {
	case len(now) == 0:
		delete(l.open, a)
	case l.open == nil:
		l.open = map[messages.AgentID]map[string]*streamed{a: now}
	default:
		l.open[a] = now
	}
}

// moved forgets the streams of a partition that this node does not host any more: its next owner
// knows of them by the log.
func (l *streams) moved(p messages.Partition, hosted bool) {
	if hosted {
		return
	}
	for a := range l.open {
		if a.Partition() == p {
			delete(l.open, a)
		}
	}
	l.ended = slices.DeleteFunc(l.ended, func(s *streamed) bool { return s.agent.Partition() == p })
}

// endLost ends the streams of endpoints that are gone. Their callers would wait without an end: a stream of the
// agent protocol shows that only by silence. A node that is cut off knows of no other, and ends none.
func (h *Broker) endLost(now time.Time) {
	for _, s := range h.lostStreams(now) {
		go h.endStream(s)
	}
}

func (h *Broker) lostStreams(now time.Time) (lost []*streamed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.lost
	absent := make(map[string]time.Time)
	check := func(s *streamed) {
		if s.lost || h.nodes.ownerOf(s.agent.Partition()) != h.nodes.Self || h.nodes.isAlive(s.Node) {
			return
		}
		since, known := l.absent[s.Node]
		if !known {
			since = now
		}
		absent[s.Node] = since
		if now.Sub(since) >= lostAfter {
			s.lost = true
			lost = append(lost, s)
		}
	}
	for _, open := range l.open {
		for _, s := range open {
			check(s)
		}
	}
	for _, s := range l.ended {
		check(s)
	}
	l.absent = absent
	l.ended = slices.DeleteFunc(l.ended, func(s *streamed) bool { return s.lost || now.Sub(s.at) > endedFor })
	return lost
}

// endStream ends a stream in the place of its endpoint.
func (h *Broker) endStream(s *streamed) {
	if err := h.subjects.AllowReply(s.agent.Tenant, s.Reply); err != nil { // once more: it may be older than the rule
		h.logger.Warn("the stream of a lost endpoint could not be ended", "subject", s.Reply, "error", err)
		return
	}
	why := messages.Refuse(messages.Unavailable, "the node that streamed this answer is gone; the turn continues: ask again with id %q, or read the agent's history", s.input)
	_, err := backoff.Retry(context.Background(), func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(context.Background(), goneWithin)
		defer cancel()
		_, err := h.conn.RequestMsgWithContext(ctx, failure(s.Reply, why))
		if errors.Is(err, context.DeadlineExceeded) { // a caller is there, and does not answer
			return struct{}{}, h.conn.Publish(s.Reply, nil)
		}
		if err == nil || errors.Is(err, nats.ErrConnectionClosed) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(lostFor))
	if err != nil {
		h.logger.Debug("the caller of a lost endpoint is gone, too", "subject", s.Reply, "error", err)
	}
}
