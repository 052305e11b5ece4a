package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// gathered is an agent in memory, with its payloads in its events, for forms that show it as a
// whole.
type gathered struct {
	head        export.Head
	definitions map[messages.Digest][]byte
	blobs       map[messages.Digest][]byte
	frames      []*messages.Frame
	// complete refuses frames that name a payload which is not there.
	complete bool
	end      export.End
}

func newGathered(head export.Head) gathered {
	return gathered{head: head, definitions: make(map[messages.Digest][]byte), blobs: make(map[messages.Digest][]byte)}
}

// Definition takes a definition.
func (g *gathered) Definition(hash messages.Digest, data []byte) error {
	g.definitions[hash] = data
	g.end.Definitions++
	return nil
}

// Blob takes a blob.
func (g *gathered) Blob(b messages.Blob, fill func(io.Writer) error) error {
	var data bytes.Buffer
	if err := fill(&data); err != nil {
		return err
	}
	g.blobs[b.SHA256] = data.Bytes()
	g.end.Blobs++
	return nil
}

// Frame takes a frame. What is not in the export of its payloads is named in their place, or refused.
func (g *gathered) Frame(f *messages.Frame) error {
	whole, err := f.Whole(g.payload)
	if err != nil {
		return err
	}
	g.frames = append(g.frames, whole)
	g.end.Add(f)
	return nil
}

// payload returns what a blob holds.
func (g *gathered) payload(b messages.Blob, form messages.BlobForm) (string, error) {
	if data, is := g.blobs[b.SHA256]; is {
		return string(data), nil
	}
	if g.complete {
		return "", messages.Refuse(messages.NotFound, "payload %s is not stored: it was lost, or the agent was imported without it", b.SHA256)
	}
	name := fmt.Sprintf("[%d bytes, kept as blob %s]", b.Size, b.SHA256)
	if form == messages.BlobJSON {
		quoted, err := json.Marshal(name)
		return string(quoted), err
	}
	return name, nil
}

// definition returns the newest definition that an event names, as far as the forms show it. The zero
// value: none is stored.
func (g *gathered) definition() (d storedDefinition) {
	for _, f := range g.frames {
		for _, ev := range f.Events {
			if data, is := g.definitions[messages.DefinitionOf(ev)]; is {
				d = storedDefinition{}
				_ = json.Unmarshal(data, &d) // the node has written it
			}
		}
	}
	return d
}

// storedDefinition is what an agent's model reads before its history.
type storedDefinition struct {
	Instructions string `json:"instructions"`
	Tools        []struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"tools"`
}
