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

// Broker broadcasts what agents do: to the streams of this node, and on NATS to those of other
// nodes and to any subscriber. It is the actors' observer: nothing it does blocks, so that a stream
// that stalls or dies harms neither the agent nor other streams. It implements what
// an owner is asked by other nodes' brokers; see [Router].
type Broker struct {
	conn     *nats.Conn
	subjects messages.Subjects
	agents   *projections.Agents
	logger   *slog.Logger
	fenced   func(messages.AgentID, messages.Epoch)
	nodes    Nodes
	live     chan *nats.Msg // what owners on other nodes broadcast

	mu       sync.RWMutex
	followed map[messages.AgentID]*followed
	lost     streams

	late late
}

// NewBroker returns a broker that publishes on conn and keeps the list of agents up to
// date with what is committed here; fenced is called when an agent
// meets a newer owner.
func NewBroker(conn *nats.Conn, subjects messages.Subjects, agents *projections.Agents, logger *slog.Logger, fenced func(messages.AgentID, messages.Epoch), nodes Nodes) *Broker {
	return &Broker{
		conn: conn, subjects: subjects, agents: agents, logger: logger, fenced: fenced, nodes: nodes,
		live: make(chan *nats.Msg, maxLive), followed: make(map[messages.AgentID]*followed),
	}
}

var _ actors.Observer = (*Broker)(nil)

// Committed hands a frame to the agent's streams on this node, and publishes a notice of it.
func (h *Broker) Committed(c actors.Commit) {
	h.agents.Apply(projections.Agent{
		Agent: c.Agent, Phase: c.Phase, Turn: c.Turn, Events: c.Frame.Last(), Epoch: c.Frame.Epoch, Updated: c.Frame.Time, Waiting: c.Waiting, LastFailed: c.Failed,
	})
	h.each(c.Agent, func(f *feed) { f.push(item{commit: &c}) })
	h.broadcast(c.Agent, newNotice(c))
}

// Delta hands a piece of an answer to the agent's streams, and to those of the
// agents above it, and publishes it for each.
func (h *Broker) Delta(d actors.Delta) {
	h.each(d.Agent, func(f *feed) { f.push(item{delta: &d}) })
	h.broadcast(d.Agent, d)
	for _, caller := range d.Above {
		a, err := messages.ParseAgentID(caller.Agent)
		if err != nil {
			continue
		}
		above := actors.Delta{Agent: a, Turn: caller.Turn, Call: caller.Call, Kind: "child." + d.Kind, Text: d.Text, Child: d.Agent.String()}
		if h.isLocal(a) {
			h.Delta(above)
		} else {
			h.nodes.Router.Below(above)
		}
	}
}

// broadcast publishes on the agent's live subject. Nothing of it is kept: what must not be lost is
// in the log.
func (h *Broker) broadcast(a messages.AgentID, v any) {
	if b, err := json.Marshal(v); err == nil {
		_ = h.conn.Publish(h.subjects.Live(a), b)
	}
}

// Fenced reports that an agent met a newer owner, and has its streams read the log.
func (h *Broker) Fenced(a messages.AgentID, newer messages.Epoch) {
	h.each(a, func(f *feed) { f.push(item{reached: everything}) })
	h.fenced(a, newer)
}

// replyJSON is what a reply subject receives.
type replyJSON struct {
	ID    string `json:"id,omitempty"` // <agent>.<event number>
	Agent string `json:"agent"`
	Input string `json:"input,omitempty"`
	projections.EventJSON
	Error *messages.Error `json:"error,omitempty"`
}

// Owed publishes facts that inputs' senders asked for.
func (h *Broker) Owed(replies []actors.Reply) {
	for _, r := range replies {
		h.publish(r.Agent, r.Subject, replyJSON{
			ID: r.Agent.String() + "." + number(r.N), Agent: r.Agent.String(), Input: r.Input,
			EventJSON: projections.NewEventJSON(r.N, 0, "", r.At, r.Event),
		})
	}
}

// Told publishes the answer to a command, or a refusal.
func (h *Broker) Told(subject string, a messages.AgentID, answer messages.Answer) {
	h.publish(a, subject, struct {
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

func (h *Broker) publish(a messages.AgentID, subject string, v any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = h.subjects.AllowNamedReply(a.Tenant, subject) // once more: the fact may be older than the rule
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

// keep sends a message when the connection is back, if no more than maxLate wait.
func (h *Broker) keep(msg *nats.Msg) {
	h.late.mu.Lock()
	defer h.late.mu.Unlock()
	h.later(msg)
}

// later keeps a reply; h.late.mu is held.
func (h *Broker) later(msg *nats.Msg) {
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

func (h *Broker) sendLate() {
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

// item is a commit, a delta, or a notice that the agent's log has come to an event.
type item struct {
	commit  *actors.Commit
	delta   *actors.Delta
	reached messages.EventNumber
}

// feed is what a stream has yet to take. It is bounded: of one that stalls,
// deltas are dropped, and commits too, which it then reads from the log.
type feed struct {
	wake chan struct{}

	mu    sync.Mutex
	items []item
	lost  bool // a commit was dropped
}

// The bounds of a feed.
const (
	maxDeltas  = 4096
	maxCommits = 8192
)

func (f *feed) push(it item) {
	f.mu.Lock()
	switch {
	case len(f.items) < maxDeltas || it.delta == nil && len(f.items) < maxCommits:
		f.items = append(f.items, it)
	case it.delta == nil:
		f.lost = true
	}
	f.mu.Unlock()
	f.signal()
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns what has gathered since the last call; lost reports whether commits behind it were
// dropped.
func (f *feed) take() (items []item, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items, lost = f.items, f.lost
	f.items, f.lost = nil, false
	return items, lost
}
