package gateway

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// request answers with what a model call was sent: the one that event q.At belongs to, or the newest.
func (g *Gateway) request(p *page, a messages.AgentID, q messages.Query) error {
	if g.Requested == nil {
		return messages.Refuse(messages.BadInput, "this node does not put requests together")
	}
	call, h, err := g.requestedCall(a, q.At)
	if err != nil {
		return err
	}
	select {
	case g.reading <- struct{}{}: // it may have as much of blobs as a model call
		defer func() { <-g.reading }()
	case <-g.ctx.Done():
		return g.ctx.Err()
	}
	request, err := g.Requested(g.ctx, a, call, func(n messages.EventNumber) (*projections.History, error) {
		if n == q.At {
			return h, nil
		}
		h := new(projections.History)
		return h, g.fold(a, n, h)
	})
	if err != nil {
		return err
	}
	p.line(0, request)
	return nil
}

// requestedCall returns the model call that event n belongs to, 0 for the newest, and the history as
// of event n.
func (g *Gateway) requestedCall(a messages.AgentID, n messages.EventNumber) (*projections.RequestedCall, *projections.History, error) {
	var last projections.LastRequest
	h := new(projections.History)
	if err := g.fold(a, n, &last, h); err != nil {
		return nil, nil, err
	}
	call, newest := last.Of(), last.Newest()
	if n == 0 {
		call = newest
	}
	switch _, kind := last.Event(); {
	case call != nil:
		return call, h, nil
	case newest == nil && n == 0:
		return nil, nil, messages.Refuse(messages.NotFound, "agent %s has called no model", a)
	case newest == nil:
		return nil, nil, messages.Refuse(messages.NotFound, "event %d of agent %s (%s) belongs to no model call, and there is none before it", n, a, kind)
	default:
		return nil, nil, messages.Refuse(messages.NotFound, "event %d of agent %s (%s) belongs to no model call: the newest one before it was requested by event %d", n, a, kind, newest.N)
	}
}
