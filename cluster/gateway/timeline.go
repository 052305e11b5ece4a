package gateway

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// timeline lists the rows of an agent's timeline that begin at q.From or later, or in the newest
// events that q.Tail counts, of which alone it is made then: the first ones of a long log are not
// read.
func (g *Gateway) timeline(p *page, a messages.AgentID, q messages.Query) error {
	if q.Follow {
		return g.followTimeline(p, a, q)
	}
	rows, is := restOf[[]projections.Row](g, a, q)
	if !is {
		first, err := g.tailOf(a, q)
		if err == nil {
			err = g.begins(a, q.From)
		}
		if err != nil {
			return err
		}
		var t projections.Timeline
		if err := g.foldFrom(first, a, q.At, &t); err != nil {
			return err
		}
		rows = slices.DeleteFunc(t.Rows(), func(r projections.Row) bool { return r.N < first })
	}
	p.rest = rows
	for _, r := range rows {
		if r.N >= q.From && ofTurn(q, r.Turn) && !p.line(r.N, r) {
			break
		}
	}
	return nil
}

// tailOf returns the first of the newest events that q.Tail counts, back from q.At if that is set;
// 1 without a tail. Where q.From is set, the page before has found it.
func (g *Gateway) tailOf(a messages.AgentID, q messages.Query) (messages.EventNumber, error) {
	switch {
	case q.Tail == 0:
		return 1, nil
	case q.From != 0:
		return q.From, nil
	}
	head, err := g.Log.Head(g.ctx, a)
	if err != nil {
		return 0, err
	}
	last := head.Last
	if q.At != 0 {
		last = min(last, q.At)
	}
	if last <= messages.EventNumber(q.Tail) {
		return 1, nil
	}
	return last - messages.EventNumber(q.Tail) + 1, nil
}

// begins refuses a first event that agent a does not have. 0 stands for any.
func (g *Gateway) begins(a messages.AgentID, from messages.EventNumber) error {
	if from == 0 {
		return nil
	}
	head, err := g.Log.Head(g.ctx, a)
	if err != nil {
		return err
	}
	return exists(a, from, head.Last)
}

// timelining is a timeline that is followed, as of the event before next.
type timelining struct {
	projections.Timeline
	next  messages.EventNumber
	after eventlog.Position
	rows  []projections.Row // that have changed and are not sent
}

// followTimeline sends the rows that have changed at q.From or later, then each row that changes,
// whole, as often as it does.
func (g *Gateway) followTimeline(p *page, a messages.AgentID, q messages.Query) error {
	if q.At != 0 {
		return messages.Refuse(messages.BadInput, "view timeline cannot be followed as of an earlier event: leave at out")
	}
	feed, leave := g.Broker.follow(a)
	defer leave()
	f, is := restOf[*timelining](g, a, q)
	if !is {
		f = &timelining{next: 1}
	}
	w := &watcher{
		log: g.Log, agent: a, feed: feed, next: f.next, after: f.after, fact: f.fold,
		delta:     func(actors.Delta) bool { return true },
		idleAfter: time.Second, idle: p.flush, until: time.Now().Add(followFor),
	}
	defer func() { f.after, p.rest = w.after, f }()
	if more, err := w.past(g.ctx); err != nil || !more {
		return err
	}
	if f.next == 1 {
		return exists(a, 0, 0)
	}
	if !f.send(p, q) {
		return nil
	}
	p.eager = true
	w.fact = func(x fact) bool { return f.fold(x) && f.send(p, q) }
	if err := w.run(g.ctx); err != nil {
		return err
	}
	if p.next == 0 {
		p.next = f.next
	}
	return nil
}

// fold folds an event.
func (f *timelining) fold(x fact) bool {
	f.At(x.at, x.by)
	f.Apply(x.n, x.ev)
	f.next = x.n + 1
	return true
}

// send sends what has changed, and reports whether the page has room for more.
func (f *timelining) send(p *page, q messages.Query) bool {
	f.rows = append(f.rows, f.Changed()...)
	for i, r := range f.rows {
		if r.Last() >= q.From && ofTurn(q, r.Turn) && !p.line(r.N, r) {
			f.rows = f.rows[i:]
			return false
		}
	}
	f.rows = nil
	return p.flush()
}
