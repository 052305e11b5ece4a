package gateway

import (
	"iter"

	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// verify answers with how the agent's events compare with those that this node decides now.
func (g *Gateway) verify(p *page, a messages.AgentID) error {
	tail, err := g.Log.Head(g.ctx, a)
	if err == nil {
		err = exists(a, 0, tail.Last)
	}
	if err != nil {
		return err
	}
	current, err := g.Current(g.ctx, a.Kind)
	if err != nil {
		p.line(0, verify.Result{Agent: a, Result: verify.Unreadable, Why: messages.AsError(err).Message})
		return nil
	}
	p.line(0, verify.Stream(a, current, g.allFrames(a)))
	return nil
}

// allFrames yields the agent's frames, oldest first.
func (g *Gateway) allFrames(a messages.AgentID) iter.Seq2[*messages.Frame, error] {
	return func(yield func(*messages.Frame, error) bool) {
		for rec, err := range g.Log.Read(g.ctx, a, eventlog.Range{}) {
			if !yield(rec.Frame, err) || err != nil {
				return
			}
		}
	}
}
