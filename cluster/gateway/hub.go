package gateway

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Hub spreads what agents do to whoever follows them here, and to NATS. It is
// the actors' observer: nothing it does blocks, so that a follower that stalls
// or dies harms nobody.
type Hub struct {
	conn     *nats.Conn
	subjects messages.Subjects
	agents   *projections.Agents
	logger   *slog.Logger
	fenced   func(messages.AgentID, messages.Epoch)

	mu    sync.RWMutex
	feeds map[messages.AgentID]map[*feed]struct{}

	late late
}

// NewHub makes a hub that publishes on conn and keeps the list of agents up to
// date with what is committed here; fenced is called when an agent
// meets a newer owner.
func NewHub(conn *nats.Conn, subjects messages.Subjects, agents *projections.Agents, logger *slog.Logger, fenced func(messages.AgentID, messages.Epoch)) *Hub {
	return &Hub{conn: conn, subjects: subjects, agents: agents, logger: logger, fenced: fenced, feeds: make(map[messages.AgentID]map[*feed]struct{})}
}

var _ actors.Observer = (*Hub)(nil)

// Committed hands a frame to the agent's followers.
func (h *Hub) Committed(c actors.Commit) {
	h.agents.Apply(projections.Agent{
		Agent: c.Agent, Phase: c.Phase, Turn: c.Turn, Events: c.Frame.Last(), Epoch: c.Frame.Epoch, Updated: c.Frame.Time, Waiting: c.Waiting,
	})
	h.each(c.Agent, func(f *feed) { f.push(item{commit: &c}) })
}

// Delta hands a piece of an answer to the agent's followers, and to those of the
// agents above it, and publishes it for each.
func (h *Hub) Delta(d actors.Delta) {
	h.delta(d)
	for _, caller := range d.Above {
		if a, err := messages.ParseAgentID(caller.Agent); err == nil {
			h.delta(actors.Delta{Agent: a, Turn: caller.Turn, Call: caller.Call, Kind: "child." + d.Kind, Text: d.Text, Child: d.Agent.String()})
		}
	}
}

func (h *Hub) delta(d actors.Delta) {
	h.each(d.Agent, func(f *feed) { f.push(item{delta: &d}) })
	if b, err := json.Marshal(d); err == nil {
		_ = h.conn.Publish(h.subjects.Live(d.Agent), b) // not kept: nobody is owed a delta
	}
}

// Fenced passes on that an agent met a newer owner, and sends its followers there.
func (h *Hub) Fenced(a messages.AgentID, newer messages.Epoch) {
	h.each(a, (*feed).end)
	h.fenced(a, newer)
}

// Moved ends the streams of a partition's agents: another node tells of them
// from now on.
func (h *Hub) Moved(p messages.Partition) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for a, feeds := range h.feeds {
		if a.Partition() != p {
			continue
		}
		for f := range feeds {
			f.end()
		}
	}
}

// replyJSON is what a reply subject receives.
type replyJSON struct {
	ID    string `json:"id,omitempty"` // <agent>.<event number>
	Agent string `json:"agent"`
	Input string `json:"input,omitempty"`
	projections.EventJSON
	Error *messages.Error `json:"error,omitempty"`
}

// Owed publishes facts that inputs' senders asked to be told.
func (h *Hub) Owed(replies []actors.Reply) {
	for _, r := range replies {
		h.publish(r.Subject, replyJSON{
			ID: r.Agent.String() + "." + number(r.N), Agent: r.Agent.String(), Input: r.Input,
			EventJSON: projections.NewEventJSON(r.N, 0, "", r.At, r.Event),
		})
	}
}

// Told publishes the answer to a command, or a refusal.
func (h *Hub) Told(subject string, a messages.AgentID, answer messages.Answer) {
	h.publish(subject, struct {
		Agent string `json:"agent"`
		Type  string `json:"type"`
		messages.Answer
	}{a.String(), answerType(answer), answer})
}

func answerType(a messages.Answer) string {
	if a.Err != nil {
		return "refused"
	}
	return "applied"
}

func (h *Hub) publish(subject string, v any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = h.subjects.AllowReply(subject) // once more: the fact may be older than the rule
	}
	if err != nil {
		h.logger.Warn("a reply could not be published", "subject", subject, "error", err)
		return
	}
	h.late.mu.Lock()
	defer h.late.mu.Unlock()
	if len(h.late.msgs) == 0 && h.conn.Publish(subject, b) == nil {
		return
	}
	h.later(&nats.Msg{Subject: subject, Data: b})
}

// late holds the replies that could not be sent because the connection was
// broken, until it is back.
type late struct {
	mu   sync.Mutex
	msgs []*nats.Msg
}

// The bounds of late.
const (
	maxLate  = 16 << 10
	lateTry  = 500 * time.Millisecond
	lateText = "replies wait for the connection to NATS"
)

// later keeps a reply; h.late.mu is held.
func (h *Hub) later(msg *nats.Msg) {
	switch len(h.late.msgs) {
	case 0:
		h.logger.Warn(lateText)
		time.AfterFunc(lateTry, h.sendLate)
	case maxLate:
		h.logger.Warn("a reply was given up: too many wait", "subject", msg.Subject)
		return
	}
	h.late.msgs = append(h.late.msgs, msg)
}

func (h *Hub) sendLate() {
	h.late.mu.Lock()
	defer h.late.mu.Unlock()
	for len(h.late.msgs) > 0 {
		if err := h.conn.PublishMsg(h.late.msgs[0]); err != nil {
			if !h.conn.IsClosed() {
				time.AfterFunc(lateTry, h.sendLate)
			}
			return
		}
		h.late.msgs = h.late.msgs[1:]
	}
	h.late.msgs = nil
}

func (h *Hub) each(a messages.AgentID, do func(*feed)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for f := range h.feeds[a] {
		do(f)
	}
}

// follow begins to gather what a does; leave ends it.
func (h *Hub) follow(a messages.AgentID) (f *feed, leave func()) {
	f = &feed{wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feeds[a] == nil {
		h.feeds[a] = make(map[*feed]struct{})
	}
	h.feeds[a][f] = struct{}{}
	return f, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.feeds[a], f)
		if len(h.feeds[a]) == 0 {
			delete(h.feeds, a)
		}
	}
}

// item is a commit or a delta.
type item struct {
	commit *actors.Commit
	delta  *actors.Delta
}

// feed is what a follower has yet to take. It is bounded: of one that stalls,
// deltas are dropped, and commits too, which it then reads from the log.
type feed struct {
	wake chan struct{}

	mu    sync.Mutex
	items []item
	lost  bool // a commit was dropped
	moved bool // nothing more comes here
}

// The bounds of a feed.
const (
	maxDeltas  = 4096
	maxCommits = 8192
)

func (f *feed) push(it item) {
	f.mu.Lock()
	if len(f.items) < maxDeltas || it.commit != nil && len(f.items) < maxCommits {
		f.items = append(f.items, it)
	} else if it.commit != nil {
		f.lost = true
	}
	f.mu.Unlock()
	f.signal()
}

// end says that nothing more comes.
func (f *feed) end() {
	f.mu.Lock()
	f.moved = true
	f.mu.Unlock()
	f.signal()
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take gives what has gathered since the last call; lost says that commits
// behind it were dropped, moved that nothing more comes.
func (f *feed) take() (items []item, lost, moved bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items, lost = f.items, f.lost
	f.items, f.lost = nil, false
	return items, lost, f.moved
}
