package gateway

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// traces lists the spans of an agent's turns, each turn's own before those below it.
func (g *Gateway) traces(p *page, a messages.AgentID, q messages.Query) error {
	s := projections.Spans{Agent: a, Content: q.Whole}
	return lines(p, a, q, func() []projections.Span {
		list := append(s.Take(), s.Open()...)
		var turn messages.TurnID
		wanted := false
		return slices.DeleteFunc(list, func(span projections.Span) bool {
			if span.Turn != turn { // the turn's own span
				turn = span.Turn
				wanted = ofTurn(q, turn) && !span.Start.Before(q.Since) && (q.Until.IsZero() || span.Start.Before(q.Until))
			}
			return !wanted
		})
	}, &s)
}
