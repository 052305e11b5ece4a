package gateway

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Hub spreads what agents do to whoever follows them, here or through other nodes,
// and to NATS. It is the actors' observer: nothing it does blocks, so that a follower that stalls
// or dies harms nobody.
type Hub struct {
	conn     *nats.Conn
	subjects messages.Subjects
	agents   *projections.Agents
	logger   *slog.Logger
	fenced   func(messages.AgentID, messages.Epoch)
	nodes    Nodes
	self     *actor.PID // as which other hubs reach this one

	mu    sync.RWMutex
	feeds map[messages.AgentID]map[*feed]struct{}
	// aimed are agents of other nodes that have feeds here, hearers the hubs of
	// other nodes that follow an agent here, by node.
	aimed   map[messages.AgentID]*aimed
	hearers map[messages.AgentID]map[string]*hearer

	late late
}

// NewHub makes a hub that publishes on conn and keeps the list of agents up to
// date with what is committed here; fenced is called when an agent
// meets a newer owner. Agents of other nodes are followed there.
func NewHub(conn *nats.Conn, subjects messages.Subjects, agents *projections.Agents, logger *slog.Logger, fenced func(messages.AgentID, messages.Epoch), nodes Nodes) *Hub {
	return &Hub{
		conn: conn, subjects: subjects, agents: agents, logger: logger, fenced: fenced, nodes: nodes,
		feeds: make(map[messages.AgentID]map[*feed]struct{}), aimed: make(map[messages.AgentID]*aimed), hearers: make(map[messages.AgentID]map[string]*hearer),
	}
}

var _ actors.Observer = (*Hub)(nil)

// Committed hands a frame to the agent's followers.
func (h *Hub) Committed(c actors.Commit) {
	h.agents.Apply(projections.Agent{
		Agent: c.Agent, Phase: c.Phase, Turn: c.Turn, Events: c.Frame.Last(), Epoch: c.Frame.Epoch, Updated: c.Frame.Time, Waiting: c.Waiting, LastFailed: c.Failed,
	})
	h.mu.RLock()
	defer h.mu.RUnlock()
	for f := range h.feeds[c.Agent] {
		f.push(item{commit: &c})
	}
	if to := h.hearers[c.Agent]; to != nil {
		h.spread(to, &told{c})
	}
}

// Delta hands a piece of an answer to the agent's followers, and to those of the
// agents above it, and publishes it for each.
func (h *Hub) Delta(d actors.Delta) {
	h.delta(d)
	for _, caller := range d.Above {
		a, err := messages.ParseAgentID(caller.Agent)
		if err != nil {
			continue
		}
		above := actors.Delta{Agent: a, Turn: caller.Turn, Call: caller.Call, Kind: "child." + d.Kind, Text: d.Text, Child: d.Agent.String()}
		switch owner := h.owner(a); owner {
		case h.nodes.Self:
			h.delta(above)
		case "": // not kept: nobody is owed a delta
		default:
			h.nodes.Transport.Send(transport.PID(owner, hubName), nil, &spoken{above})
		}
	}
}

func (h *Hub) delta(d actors.Delta) {
	h.mu.RLock()
	for f := range h.feeds[d.Agent] {
		f.push(item{delta: &d})
	}
	if to := h.hearers[d.Agent]; to != nil {
		h.spread(to, &spoken{d})
	}
	h.mu.RUnlock()
	if b, err := json.Marshal(d); err == nil {
		_ = h.conn.Publish(h.subjects.Live(d.Agent), b) // not kept: nobody is owed a delta
	}
}

// Fenced passes on that an agent met a newer owner, and has its followers look into
// the log.
func (h *Hub) Fenced(a messages.AgentID, newer messages.Epoch) {
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

// Owed publishes facts that inputs' senders asked to be told.
func (h *Hub) Owed(replies []actors.Reply) {
	for _, r := range replies {
		h.publish(r.Agent, r.Subject, replyJSON{
			ID: r.Agent.String() + "." + number(r.N), Agent: r.Agent.String(), Input: r.Input,
			EventJSON: projections.NewEventJSON(r.N, 0, "", r.At, r.Event),
		})
	}
}

// Told publishes the answer to a command, or a refusal.
func (h *Hub) Told(subject string, a messages.AgentID, answer messages.Answer) {
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

func (h *Hub) publish(a messages.AgentID, subject string, v any) {
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
func (h *Hub) keep(msg *nats.Msg) {
	h.late.mu.Lock()
	defer h.late.mu.Unlock()
	h.later(msg)
}

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
		h.aim(a, h.owner(a))
	}
	h.feeds[a][f] = struct{}{}
	return f, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.feeds[a], f)
		if len(h.feeds[a]) == 0 {
			delete(h.feeds, a)
			h.aim(a, h.nodes.Self)
		}
	}
}

// item is a commit, a delta, or the word that the agent has come to an event
// which may not have been told.
type item struct {
	commit  *actors.Commit
	delta   *actors.Delta
	reached messages.EventNumber
}

// feed is what a follower has yet to take. It is bounded: of one that stalls,
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

// take gives what has gathered since the last call; lost says that commits
// behind it were dropped.
func (f *feed) take() (items []item, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items, lost = f.items, f.lost
	f.items, f.lost = nil, false
	return items, lost
}
