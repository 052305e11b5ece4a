package cli

import (
	"context"
	"io"
	"iter"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// exportSource is an agent that is exported through a node.
type exportSource struct {
	c     *client.Client
	agent messages.AgentID
	at    messages.EventNumber // the newest event to export
	each  func(messages.EventNumber)
}

// newest sets at to the newest event unless another one is chosen, and reports whether the agent
// is deleted.
func (s *exportSource) newest(ctx context.Context) (deleted bool, err error) {
	for ev, err := range s.c.Events(ctx, s.agent.Full(), client.Only(messages.Query{Tail: 1})) {
		if err != nil {
			return false, err
		}
		deleted = messages.Is(ev.Type, messages.EndsAgent)
		if s.at == 0 {
			s.at = ev.N
		}
	}
	return deleted, nil
}

// Lines yields the agent's definitions and frames. It is an error if they end before the event at.
func (s *exportSource) Lines(ctx context.Context) iter.Seq2[export.Line, error] {
	return func(yield func(export.Line, error) bool) {
		var last messages.EventNumber
		for line, err := range linesOf(ctx, s.c, s.agent, s.at) {
			if line.Frame != nil {
				last = line.Frame.Last()
				s.each(line.Frame.First)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
		if last < s.at {
			yield(export.Line{}, messages.Refuse(messages.Damaged, "the log of agent %s has event %d, and no frame after event %d was read: export it again", s.agent, s.at, last))
		}
	}
}

// Blob writes a blob of the agent.
func (s *exportSource) Blob(ctx context.Context, b messages.Blob, w io.Writer) error {
	_, err := s.c.BlobOf(ctx, s.agent.Full(), b, w)
	return err
}

// linesOf yields the definitions and frames of an agent, up to the frame that holds event at, or with 0
// all. An error is the last.
func linesOf(ctx context.Context, c *client.Client, agent messages.AgentID, at messages.EventNumber) iter.Seq2[export.Line, error] {
	return func(yield func(export.Line, error) bool) {
		for line, err := range c.Frames(ctx, agent.Full(), client.At(at)) {
			var l export.Line
			switch {
			case err != nil:
			case line.Definition != "":
				l.Definition = &export.Definition{Hash: line.Definition, Data: line.Data}
			default:
				l.Frame, err = messages.DecodeFrame(agent, line.Frame)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}
