package gateway

import (
	"cmp"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The bounds of what is read for one chain of causes.
const (
	maxParents  = 32
	maxSiblings = 200
)

// explain answers with the chain of causes of event q.At. It follows the chain into the logs of parents, and
// searches the other children of the direct parent for an equal call, on whatever nodes they are. What
// cannot be read of other agents is named in the chain.
func (g *Gateway) explain(p *page, a messages.AgentID, q messages.Query) error {
	if q.At == 0 {
		return messages.Refuse(messages.BadInput, "the view why wants an event: set \"at\" to its number, as the view events lists it")
	}
	c := &projections.Causes{N: q.At}
	err := g.causes(a, c)
	w := c.Of(a)
	if len(w.Chain) == 0 {
		return cmp.Or(err, error(deletedSince(a, q.At)))
	}
	if family := g.parents(w); family {
		g.siblings(w)
	}
	w.End()
	if p.line(0, w); err != nil { // the log cannot be read behind the event
		p.flush()
	}
	return err
}

// deletedSince refuses an event of an agent that was deleted while its log was read.
func deletedSince(a messages.AgentID, n messages.EventNumber) *messages.Error {
	return messages.Refuse(messages.NotFound, "agent %s was deleted: there is no event %d any more", a, n)
}

// causes folds the log of an agent, up to where later events add nothing.
func (g *Gateway) causes(a messages.AgentID, c *projections.Causes) error {
	var last messages.EventNumber
	for rec, err := range g.Log.Read(g.ctx, a, eventlog.Range{}) {
		if err == nil && last == 0 {
			err = kept(a, c.N, rec.Frame)
		}
		if err != nil {
			return err
		}
		last = rec.Frame.Last()
		if projections.Fold(rec.Frame, 0, c); c.Settled() {
			return nil
		}
	}
	return exists(a, c.N, last)
}

// parents follows a chain up through parents, and reports whether the direct one could be read. Logs may be
// imported, and name any parent: the chain stays within the tenant, and visits each call once.
func (g *Gateway) parents(w *projections.Why) (direct bool) {
	visited := make(map[messages.Caller]bool)
	for w.Parent() != nil && len(visited) < maxParents {
		caller := *w.Parent()
		parent, err := messages.ParseAgentID(caller.Agent)
		switch {
		case err != nil || visited[caller]:
			return direct
		case parent.Tenant != w.Agent.Tenant:
			w.AddMissing(parent, "the chain ends here: it is an agent of another tenant")
			return direct
		}
		c := w.Above()
		if err := g.causes(parent, c); err != nil {
			w.AddMissing(parent, "the chain ends here: "+messages.AsError(g.damaged(parent, err)).Message)
			return direct
		}
		w.AddParent(parent, c)
		direct, visited[caller] = true, true
	}
	return direct
}

// siblings compares the call of the event with those of the other children of the direct parent. What
// cannot be read of them is not counted as examined.
func (g *Gateway) siblings(w *projections.Why) {
	for _, sibling := range w.Family(maxSiblings) {
		c := new(projections.Causes)
		if g.causes(sibling, c) == nil {
			w.AddSibling(sibling, c)
		}
	}
}
