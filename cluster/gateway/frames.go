package gateway

import (
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// frames answers with the agent's frames from the one that holds q.From to the one that holds
// q.At, each behind the definitions that it is the first of the page to name.
func (g *Gateway) frames(p *page, a messages.AgentID, q messages.Query) error {
	named := make(map[messages.Digest]bool)
	var last messages.EventNumber
	for rec, err := range g.Log.Read(g.ctx, a, eventlog.From(q.From)) {
		if err == nil && last == 0 {
			err = begins(a, q, rec.Frame)
		}
		if err != nil {
			return err
		}
		if last = rec.Frame.First - 1; q.At != 0 && last >= q.At {
			return nil
		}
		if more, err := g.frame(p, rec, named); err != nil || !more {
			return err
		}
		last = rec.Frame.Last()
	}
	if last != 0 && q.At <= last {
		return nil
	}
	tail, err := g.Log.Head(g.ctx, a)
	if err != nil || q.From == tail.Last+1 && tail.Last >= q.At && tail.Last > 0 {
		return err // nothing new
	}
	return exists(a, max(q.At, q.From), tail.Last)
}

// begins refuses a query for events from before the first frame that is stored: a page that is asked
// for after the agent was deleted must not end as if it were the last.
func begins(a messages.AgentID, q messages.Query, first *messages.Frame) error {
	if q.From > 1 {
		return kept(a, q.From, first)
	}
	return kept(a, q.At, first)
}

// frame adds a frame, and before it the definitions that it names and named lacks. It reports
// whether the page has room for more.
func (g *Gateway) frame(p *page, rec eventlog.Recorded, named map[messages.Digest]bool) (more bool, err error) {
	f := *rec.Frame
	for _, ev := range f.Events {
		hash := messages.DefinitionOf(ev)
		if hash == "" || named[hash] {
			continue
		}
		named[hash] = true
		data, err := g.Definitions.Definition(g.ctx, hash)
		if err != nil && messages.AsError(err).Code == messages.NotFound {
			continue // the reader has the hash, and notes what is missing
		}
		if err != nil {
			return false, err
		}
		if !p.line(f.First, messages.FrameLine{First: f.First, Definition: hash, Data: data}) {
			return false, nil
		}
	}
	f.KeyID = ""         // its events are not encrypted here
	f.Cause.Stream = nil // a reader of an agent need not know where its callers wait for answers
	stored, err := messages.EncodeFrame(rec.Agent, &f)
	if err != nil {
		return false, err
	}
	return p.line(f.First, messages.FrameLine{First: f.First, Frame: stored}), nil
}
