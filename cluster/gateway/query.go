package gateway

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
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
		g.replyTo(msg).fail(messages.AsError(err))
		return
	}
	g.page(msg, q, func(p *page) error {
		err := g.view(p, a, q)
		switch {
		case err != nil:
			err = g.damaged(a, err)
		case p.next == 0:
			if err = g.incomplete(a); err != nil {
				p.flush()
			}
		}
		if p.next != 0 && p.rest != nil {
			p.more, p.cursor = true, g.cursors.keep(viewOf(a, q), p.rest)
		}
		return err
	})
}

// damaged is why a view of an agent failed: that its log is damaged, if that is so.
func (g *Gateway) damaged(a messages.AgentID, err error) error {
	if damage := new(eventlog.DamageError); errors.As(err, &damage) {
		return messages.Refuse(messages.Damaged, "%v", err)
	}
	if messages.AsError(err).Code != messages.NotFound {
		return err
	}
	if why := g.incomplete(a); why != nil {
		return why
	}
	return err
}

// incomplete is an error behind all that there is of an agent whose stream has lost
// messages, because some may be missing.
func (g *Gateway) incomplete(a messages.AgentID) error {
	if g.Whole == nil {
		return nil
	}
	if why := g.Whole(g.ctx, a); why != nil && messages.AsError(why).Code != messages.Unavailable {
		return messages.Refuse(messages.Damaged, "this may not be all: %v", why)
	}
	return nil
}

// page answers with what view writes.
func (g *Gateway) page(r *nats.Msg, q messages.Query, view func(*page) error) {
	to := g.replyTo(r)
	if !g.begin(func() {
		defer to.keepAlive("", nil)()
		p := &page{g: g, to: to, limit: q.Limit}
		err := view(p)
		if err == nil {
			err = p.finish()
		}
		if err != nil {
			to.fail(g.why(err))
		}
	}) {
		to.fail(g.full())
	}
}

func (g *Gateway) view(p *page, a messages.AgentID, q messages.Query) error {
	if err := fits(q, filterableOfAgent); err != nil {
		return err
	}
	switch q.View {
	case "events":
		return g.events(p, a, q)
	case "history":
		return g.history(p, a, q)
	case "blob":
		return g.blob(p, a, q)
	case "state":
		var s projections.State
		if err := g.fold(a, q.At, &s); err != nil {
			return err
		}
		p.line(0, s.JSON())
		return nil
	case "turns":
		return g.turns(p, a, q)
	case "turn":
		return g.turn(p, a, q)
	case "effects":
		return g.effects(p, a, q)
	case "usage":
		var u projections.Usage
		return lines(p, a, q, u.Lines, &u)
	case "approvals":
		return g.approvals(p, a, q)
	case "children":
		var c projections.Children
		return lines(p, a, q, c.List, &c)
	case "timers":
		var w projections.Work
		return lines(p, a, q, func() []messages.Timer { return w.Timers.Lines(a) }, &w)
	case "forks":
		var f projections.Forks
		return lines(p, a, q, f.Lines, &f)
	case "replay":
		return g.replay(p, a, q)
	case "timeline":
		return g.timeline(p, a, q)
	case "frames":
		return g.frames(p, a, q)
	case "traces":
		return g.traces(p, a, q)
	case "show":
		return g.show(p, a, q)
	case "why":
		return g.explain(p, a, q)
	case "inventory":
		return g.inventory(p, a)
	case "verify":
		return g.verify(p, a)
	case "doctor":
		return g.examineAgent(p, a, q)
	case "request":
		return g.request(p, a, q)
	}
	return messages.Refuse(messages.BadInput, "view %q: an agent has the views show, events, history, state, turns, turn, usage, approvals, effects, children, forks, timers, timeline, why, request, replay, traces, frames, blob, inventory, verify and doctor", q.View)
}

// lines pages the list that the views have once the agent's events are folded; lines are numbered
// from 1.
func lines[T any](p *page, a messages.AgentID, q messages.Query, list func() []T, views ...projections.View) error {
	all, err := folded(p, a, q, list, views...)
	from := firstOf(q, len(all))
	for i, line := range all {
		if n := messages.EventNumber(i + 1); n >= from && !p.line(n, line) {
			break
		}
	}
	return err
}

// firstOf returns the first of n lines, numbered from 1, that q asks for.
func firstOf(q messages.Query, n int) messages.EventNumber {
	if q.From == 0 && 0 < q.Tail && q.Tail < n {
		return messages.EventNumber(n - q.Tail + 1)
	}
	return q.From
}

// ofTurn reports whether q asks for what a turn is named in.
func ofTurn(q messages.Query, turn messages.TurnID) bool { return q.Turn == "" || q.Turn == turn }

// turns lists an agent's turns, with their texts if q asks for them.
func (g *Gateway) turns(p *page, a messages.AgentID, q messages.Query) error {
	var t projections.TurnTexts
	return lines(p, a, q, func() []projections.TurnLine {
		list := slices.DeleteFunc(t.Lines(), func(l projections.TurnLine) bool {
			return q.Last != "" && string(l.Phase) != q.Last
		})
		for i := range list {
			if !q.Whole {
				list[i].Question, list[i].Answer = "", ""
			}
		}
		return list
	}, &t)
}

// turn answers with all that is known of one turn.
func (g *Gateway) turn(p *page, a messages.AgentID, q messages.Query) error {
	if q.Turn == "" {
		return messages.Refuse(messages.BadInput, "the view turn wants one: set \"turn\" to its id, as the view turns lists it")
	}
	t := projections.TurnDetails{ID: q.Turn}
	if err := g.fold(a, q.At, &t); err != nil {
		return err
	}
	detail, found := t.Of(a)
	if !found {
		return messages.Refuse(messages.NotFound, "agent %s has no turn %s: the view turns lists those that it has", a, q.Turn)
	}
	p.line(0, detail)
	return nil
}

// folded is what the page before has left, or list once the views have folded
// the agent's events. The next page finds it.
func folded[T any](p *page, a messages.AgentID, q messages.Query, list func() []T, views ...projections.View) ([]T, error) {
	all, is := restOf[[]T](p.g, a, q)
	if !is {
		if err := p.g.fold(a, q.At, views...); err != nil {
			return nil, err
		}
		all = list()
	}
	p.rest = all
	return all, nil
}

// approvals lists the agent's calls that wait for approval, or the decisions
// that it remembers.
func (g *Gateway) approvals(p *page, a messages.AgentID, q messages.Query) error {
	if q.Remembered {
		var d projections.Decisions
		return lines(p, a, q, func() []messages.Remembered { return d.Remembered(a) }, &d)
	}
	var work projections.Work
	return lines(p, a, q, func() []messages.Approval { return work.Approvals(a) }, &work)
}

// fold folds the agent's events up to n, all of them if n is 0. An agent
// without events and an n past the end are refused.
func (g *Gateway) fold(a messages.AgentID, n messages.EventNumber, views ...projections.View) error {
	return g.foldFrom(1, a, n, views...)
}

// foldFrom is fold for the frames from the one that holds event first on.
func (g *Gateway) foldFrom(first messages.EventNumber, a messages.AgentID, n messages.EventNumber, views ...projections.View) error {
	var last messages.EventNumber
	for rec, err := range g.Log.Read(g.ctx, a, eventlog.From(first)) {
		if err == nil && last == 0 {
			err = kept(a, n, rec.Frame)
		}
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

// kept refuses an event from before the first frame that is stored: it was
// deleted.
func kept(a messages.AgentID, n messages.EventNumber, first *messages.Frame) error {
	if n != 0 && n < first.First {
		return messages.Refuse(messages.NotFound, "what happened to agent %s before event %d was deleted: there is no event %d any more", a, first.First, n)
	}
	return nil
}

// followFor is how long one request follows an agent; the reader asks again
// for what comes next, so that nothing is kept for readers that have gone.
const followFor = 30 * time.Second

// firstEvent returns the first event of an agent that q asks for.
func (g *Gateway) firstEvent(a messages.AgentID, q messages.Query) (messages.EventNumber, error) {
	switch {
	case q.From != 0 || q.Tail == 0:
		return max(q.From, 1), nil
	case q.Turn != "":
		return 0, messages.Refuse(messages.BadInput, "the view events takes tail or turn, not both")
	}
	tail, err := g.Log.Head(g.ctx, a)
	return max(firstOf(q, int(tail.Last)), 1), err
}

func (g *Gateway) events(p *page, a messages.AgentID, q messages.Query) error {
	from, err := g.firstEvent(a, q)
	if err != nil {
		return err
	}
	feed, leave := g.Broker.follow(a)
	defer leave()
	m := g.marks(a)
	after, _ := restOf[eventlog.Position](g, a, q)
	give := func(f fact) bool {
		if !ofTurn(q, f.turn()) {
			return true
		}
		if q.Whole {
			return m.event(p, f)
		}
		return p.line(f.n, f.json())
	}
	w := &watcher{
		log: g.Log, agent: a, feed: feed, next: from, after: after, fact: give,
		delta:     func(actors.Delta) bool { return true },
		idleAfter: time.Second,
		idle:      p.flush,
		until:     time.Now().Add(followFor),
	}
	defer func() { p.rest = w.after }()
	if tail, err := g.Log.Head(g.ctx, a); err != nil || tail.Last >= from { // else there is no past to read
		if more, err := w.past(g.ctx); err != nil || !more {
			return err
		}
	}
	if !q.Follow {
		if w.next == from && from > 1 || w.next == 1 {
			tail, err := g.Log.Head(g.ctx, a)
			if err != nil {
				return err
			}
			if from == tail.Last+1 && tail.Last > 0 {
				return nil // nothing new
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

// replaying is a replay as of event last, which is among those of the frame
// behind after.
type replaying struct {
	projections.Replay
	last  messages.EventNumber
	after eventlog.Position
	marks *marks // some stand in its history
}

func (g *Gateway) replay(p *page, a messages.AgentID, q messages.Query) error {
	r, is := restOf[*replaying](g, a, q)
	if !is {
		r = &replaying{marks: g.marks(a)}
	}
	for rec, err := range g.Log.Read(g.ctx, a, eventlog.Behind(r.after)) {
		if err == nil && r.last == 0 {
			err = kept(a, q.At, rec.Frame)
		}
		if errors.Is(err, eventlog.ErrElsewhere) { // it was deleted since the page before
			q.Cursor = ""
			return g.replay(p, a, q)
		}
		if err != nil {
			return err
		}
		for i, ev := range rec.Frame.Events {
			n := rec.Frame.First + messages.EventNumber(i)
			if q.At != 0 && n > q.At {
				return exists(a, q.At, n)
			}
			if n <= r.last {
				continue
			}
			wanted := n >= q.From && ofTurn(q, messages.TurnOf(ev))
			if wanted && p.full(n) {
				p.rest = r
				return nil
			}
			r.last = n
			if q.Whole {
				ev, _ = messages.Whole(ev, r.marks.fill) // fill never fails
				ev = messages.WithoutBlobs(ev)
			}
			change := r.Step(n, rec.Frame.Time, rec.Seq, ev)
			if !wanted {
				continue
			}
			var text bytes.Buffer
			if err := r.marks.change(change).WriteText(&text); err != nil {
				return err
			}
			if !r.marks.line(p, n, struct {
				projections.Change
				Text string `json:"text"`
			}{change, text.String()}) {
				return nil
			}
		}
		r.after = rec.Position()
	}
	return exists(a, max(q.At, q.From), r.last)
}

func (g *Gateway) show(p *page, a messages.AgentID, q messages.Query) error {
	var work projections.Work
	var children projections.Children
	var life projections.Life
	var forks projections.Forks
	row := projections.Agent{Agent: a, Phase: messages.PhaseIdle, Owner: g.ownerOf(a.Partition())}
	for rec, err := range g.Log.Read(g.ctx, a, eventlog.Range{}) {
		if err == nil && row.Events == 0 {
			err = kept(a, q.At, rec.Frame)
		}
		if err != nil {
			return err
		}
		more := projections.Fold(rec.Frame, q.At, &work, &children, &life, &forks)
		row.Events, row.Epoch, row.Updated = rec.Frame.Last(), rec.Frame.Epoch, rec.Frame.Time
		if !more {
			row.Events = q.At
			break
		}
	}
	if err := exists(a, q.At, row.Events); err != nil {
		return err
	}
	if t := work.Turn; t != nil {
		row.Phase, row.Turn = messages.AgentPhase(t.Phase), t.ID
	}
	status := projections.NewAgentStatus(row, &work, &children)
	status.Fork, status.Forks = forks.Origin, len(forks.List)
	if status.Deleted = life.Deletion(); status.Deleted != nil {
		status.Phase = messages.PhaseDeleted
	}
	p.line(0, status)
	return nil
}
