package gateway

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// query answers a view of one agent.
func (g *Gateway) query(msg *nats.Msg) {
	if !g.answerable(msg) {
		return
	}
	_, a, err := g.Subjects.ParseAgent(msg.Subject)
	var q messages.Query
	if err == nil {
		q, err = messages.ParseQuery(msg.Data)
	}
	if err != nil {
		g.fail(msg.Reply, messages.AsError(err))
		return
	}
	if g.elsewhere(a.Partition(), msg) {
		return
	}
	g.running.Go(func() {
		p := &page{g: g, to: msg.Reply, limit: q.Limit}
		if err := g.view(p, a, q); err != nil {
			g.fail(msg.Reply, messages.AsError(err))
			return
		}
		p.finish()
	})
}

func (g *Gateway) view(p *page, a messages.AgentID, q messages.Query) error {
	switch q.View {
	case "events":
		return g.events(p, a, q)
	case "history":
		var h projections.History
		if err := g.fold(a, q.At, &h); err != nil {
			return err
		}
		for _, item := range h.View() {
			if !p.line(item.N, item) {
				return nil
			}
		}
	case "state":
		var s projections.State
		if err := g.fold(a, q.At, &s); err != nil {
			return err
		}
		p.line(0, s.JSON())
	case "replay":
		return g.replay(p, a, q)
	case "show":
		return g.show(p, a, q)
	default:
		return messages.Refuse(messages.BadInput, "view %q: an agent has the views show, events, history, state and replay", q.View)
	}
	return nil
}

// fold folds the agent's events up to n, all of them if n is 0. An agent
// without events and an n past the end are refused.
func (g *Gateway) fold(a messages.AgentID, n messages.EventNumber, views ...projections.View) error {
	var last messages.EventNumber
	for rec, err := range g.Log.Read(g.ctx, a, 0) {
		if err != nil {
			return err
		}
		last = rec.Frame.Last()
		if !projections.Fold(rec.Frame, n, views...) {
			break
		}
	}
	return exists(a, n, last)
}

func exists(a messages.AgentID, n, last messages.EventNumber) error {
	switch {
	case last == 0:
		return messages.Refuse(messages.NotFound, "agent %s does not exist: nothing was ever sent to it", a)
	case n > last:
		return messages.Refuse(messages.NotFound, "agent %s has %d events: there is no event %d", a, last, n)
	}
	return nil
}

// followFor is how long one request follows an agent; the reader asks again
// for what comes next, so that nothing is kept for readers that have gone.
const followFor = time.Minute

func (g *Gateway) events(p *page, a messages.AgentID, q messages.Query) error {
	from := max(q.From, 1)
	feed, leave := g.Hub.follow(a)
	defer leave()
	give := func(f fact) bool { return p.line(f.n, f.json()) }
	deadline := time.Now().Add(followFor)
	w := &watcher{
		log: g.Log, agent: a, feed: feed, next: from, fact: give,
		delta:      func(actors.Delta) bool { return true },
		quietAfter: time.Second,
		quiet:      func() bool { return p.flush() && time.Now().Before(deadline) },
	}
	more, err := w.past(g.ctx)
	if err != nil || !more {
		return err
	}
	if !q.Follow {
		if w.next == from && from > 1 || w.next == 1 {
			tail, err := g.Log.Tail(g.ctx, a)
			if err != nil {
				return err
			}
			return exists(a, q.From, tail.Last)
		}
		return nil
	}
	p.flush()
	p.eager = true
	if err := w.run(g.ctx); err != nil {
		return err
	}
	p.next = w.next
	return nil
}

func (g *Gateway) replay(p *page, a messages.AgentID, q messages.Query) error {
	var r projections.Replay
	var last messages.EventNumber
	for rec, err := range g.Log.Read(g.ctx, a, 0) {
		if err != nil {
			return err
		}
		for i, ev := range rec.Frame.Events {
			n := rec.Frame.First + messages.EventNumber(i)
			if q.At != 0 && n > q.At {
				return exists(a, q.At, n)
			}
			last = n
			change := r.Step(n, rec.Frame.Time, rec.Seq, ev)
			if n < q.From {
				continue
			}
			var text bytes.Buffer
			if err := change.WriteText(&text); err != nil {
				return err
			}
			if !p.line(n, struct {
				projections.Change
				Text string `json:"text"`
			}{change, text.String()}) {
				return nil
			}
		}
	}
	return exists(a, max(q.At, q.From), last)
}

func (g *Gateway) show(p *page, a messages.AgentID, q messages.Query) error {
	var queue projections.Queue
	var turns projections.Turns
	row := projections.Agent{Agent: a, Phase: "idle", Owner: g.Self}
	for rec, err := range g.Log.Read(g.ctx, a, 0) {
		if err != nil {
			return err
		}
		more := projections.Fold(rec.Frame, q.At, &queue, &turns)
		row.Events, row.Epoch, row.Updated = rec.Frame.Last(), rec.Frame.Epoch, rec.Frame.Time
		if !more {
			row.Events = q.At
			break
		}
	}
	if err := exists(a, q.At, row.Events); err != nil {
		return err
	}
	if t, ok := turns.Newest(); ok && (t.Phase == projections.Running || t.Phase == projections.Paused) {
		row.Phase, row.Turn = string(t.Phase), t.Turn
	}
	p.line(0, projections.NewAgentStatus(row, &queue))
	return nil
}

// page is a streamed reply of JSON lines, several to a message.
type page struct {
	g     *Gateway
	to    string
	limit int
	// eager sends each line at once.
	eager bool

	buf   bytes.Buffer
	lines int
	next  messages.EventNumber // where the next page begins; 0: there is none
	last  messages.EventNumber
}

// The bounds of a page.
const (
	defaultLimit = 1000
	maxLimit     = 10_000
	messageSize  = 64 << 10
)

// line adds a line that tells of event n and says whether the page has room
// for more. A page ends between two events.
func (p *page) line(n messages.EventNumber, v any) (more bool) {
	limit := p.limit
	if limit <= 0 || limit > maxLimit {
		limit = defaultLimit
	}
	if p.lines >= limit && n != p.last {
		p.next = n
		return false
	}
	b, err := json.Marshal(v)
	if err != nil {
		p.g.Logger.Error("a view could not be written as JSON", "error", err)
		return false
	}
	p.buf.Write(b)
	p.buf.WriteByte('\n')
	p.lines, p.last = p.lines+1, n
	if p.eager || p.buf.Len() >= messageSize {
		return p.flush()
	}
	return true
}

func (p *page) flush() bool {
	if p.buf.Len() == 0 {
		return true
	}
	err := p.g.Conn.Publish(p.to, bytes.Clone(p.buf.Bytes()))
	p.buf.Reset()
	return err == nil
}

// finish sends the end, with the place where the next page begins.
func (p *page) finish() {
	p.flush()
	msg := nats.NewMsg(p.to)
	if p.next != 0 {
		msg.Header.Set(messages.HeaderNext, number(p.next))
	}
	_ = p.g.Conn.PublishMsg(msg)
}
