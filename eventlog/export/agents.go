package export

import (
	"io"
	"iter"

	"github.com/reprise-dev/reprise/messages"
)

// Agent is all that a file holds of an agent.
type Agent struct {
	Head   Head
	End    End
	Frames []*messages.Frame
	// Definitions and Blobs are by their hashes.
	Definitions map[messages.Digest][]byte
	Blobs       map[messages.Digest][]byte
}

// Agents yields the agents of a file, each as a whole and held in memory, once its end was
// verified. The sequence holds at most one error, as that of [Lines], and ends with it.
func Agents(from io.Reader) iter.Seq2[*Agent, error] {
	return func(yield func(*Agent, error) bool) {
		var a *Agent
		for line, err := range Lines(from) {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case line.Head != nil:
				a = &Agent{Head: *line.Head, Definitions: make(map[messages.Digest][]byte), Blobs: make(map[messages.Digest][]byte)}
			case line.Definition != nil:
				a.Definitions[line.Definition.Hash] = line.Definition.Data
			case line.Piece != nil && line.Piece.Offset == 0:
				a.Blobs[line.Piece.Blob] = line.Piece.Data
			case line.Piece != nil:
				a.Blobs[line.Piece.Blob] = append(a.Blobs[line.Piece.Blob], line.Piece.Data...)
			case line.Frame != nil:
				a.Frames = append(a.Frames, line.Frame)
			case line.End != nil:
				if a.End = *line.End; !yield(a, nil) {
					return
				}
			}
		}
	}
}
