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
		for line, err := range s.c.Frames(ctx, s.agent.Full(), client.At(s.at)) {
			if err != nil {
				yield(export.Line{}, err)
				return
			}
			if s.each(line.First); line.Definition != "" {
				if !yield(export.Line{Definition: &export.Definition{Hash: line.Definition, Data: line.Data}}, nil) {
					return
				}
				continue
			}
			f, err := messages.DecodeFrame(s.agent, line.Frame)
			if !yield(export.Line{Frame: f}, err) || err != nil {
				return
			}
			last = f.Last()
		}
		if last < s.at {
			yield(export.Line{}, messages.Refuse(messages.Damaged, "the log of agent %s has event %d, and no frame behind event %d was read: export it again", s.agent, s.at, last))
		}
	}
}

// Blob writes a blob of the agent.
func (s *exportSource) Blob(ctx context.Context, b messages.Blob, w io.Writer) error {
	_, err := s.c.BlobOf(ctx, s.agent.Full(), b, w)
	return err
}
