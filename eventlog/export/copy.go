package export

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/reprise-dev/reprise/eventlog/export/redact"
	"github.com/reprise-dev/reprise/messages"
)

// Source is an agent that is exported.
type Source interface {
	// Lines yields frames in order, and definitions, each before the first frame that names it. A
	// definition may come again. It can be run again, and yields the same then.
	Lines(context.Context) iter.Seq2[Line, error]
	// Blob writes a blob to w; messages.NotFound if it is not stored any more.
	Blob(ctx context.Context, b messages.Blob, w io.Writer) error
}

// Sink is what an agent is exported to. A [Writer] is one.
type Sink interface {
	Definition(hash messages.Digest, data []byte) error
	Blob(b messages.Blob, fill func(io.Writer) error) error
	Frame(f *messages.Frame) error
}

// Options are how an agent is copied.
type Options struct {
	// Blobs copies the payloads that events refer to. Otherwise they are only named.
	Blobs bool
	// Redactor replaces texts. Nil: none are replaced.
	Redactor *redact.Redactor
}

// Copy copies an agent from a source to a sink, and returns the hashes of what is not stored any
// more. A definition or blob comes before the first frame that names it, and once. With a Redactor
// each blob is held in memory.
func Copy(ctx context.Context, from Source, to Sink, o Options) (missing []messages.Digest, err error) {
	c := &copying{ctx: ctx, from: from, to: to, Options: o, seen: make(map[messages.Digest]bool), blobs: make(map[messages.Digest]messages.Blob)}
	if err := c.collect(); err != nil {
		return nil, err
	}
	for line, err := range from.Lines(ctx) {
		switch {
		case err != nil:
			return nil, err
		case line.Frame != nil && line.Frame.Encrypted():
			return nil, fmt.Errorf("frame %s is encrypted: an export holds frames in clear", line.Frame.ID)
		case line.Definition != nil:
			err = c.definition(*line.Definition)
		case line.Frame != nil:
			err = c.frame(line.Frame)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.missing, nil
}

// copying is a Copy under way.
type copying struct {
	ctx  context.Context
	from Source
	to   Sink
	Options
	seen    map[messages.Digest]bool          // definitions
	blobs   map[messages.Digest]messages.Blob // as they are named in the copy, by the hash at the source
	missing []messages.Digest
}

// collect has a Redactor with paths read all values before any is replaced.
func (c *copying) collect() error {
	if c.Redactor == nil || !c.Redactor.Paths() {
		return nil
	}
	for line, err := range c.from.Lines(c.ctx) {
		switch {
		case err != nil:
			return err
		case line.Definition != nil:
			c.Redactor.CollectDefinition(line.Definition.Data)
		case line.Frame != nil && !line.Frame.Encrypted(): // Copy refuses those that are
			f, err := c.whole(line.Frame)
			if err != nil {
				return err
			}
			c.Redactor.Collect(f)
		}
	}
	return nil
}

// whole returns a frame with the payloads that are stored as blobs in its events, if they are copied.
func (c *copying) whole(f *messages.Frame) (*messages.Frame, error) {
	if !c.Blobs {
		return f, nil
	}
	whole := *f
	whole.Events = slices.Clone(f.Events)
	for i, ev := range f.Events {
		var err error
		whole.Events[i], err = messages.Whole(ev, func(b messages.Blob, _ messages.BlobForm) (string, error) {
			data, err := c.load(b)
			if isMissing(err) {
				return "", nil
			}
			return string(data), err
		})
		if err != nil {
			return nil, err
		}
	}
	return &whole, nil
}

func (c *copying) load(b messages.Blob) ([]byte, error) {
	var data bytes.Buffer
	err := c.from.Blob(c.ctx, b, &data)
	return data.Bytes(), err
}

func isMissing(err error) bool {
	return err != nil && messages.AsError(err).Code == messages.NotFound
}

func (c *copying) definition(d Definition) error {
	if c.seen[d.Hash] {
		return nil
	}
	c.seen[d.Hash] = true
	if c.Redactor != nil {
		hash, data, err := c.Redactor.Definition(d.Hash, d.Data)
		if err != nil {
			return err
		}
		d = Definition{hash, data}
	}
	return c.to.Definition(d.Hash, d.Data)
}

// frame copies a frame, behind the blobs that it is the first to refer to.
func (c *copying) frame(f *messages.Frame) error {
	copied := *f
	copied.KeyID, copied.Events = "", slices.Clone(f.Events)
	for i, ev := range copied.Events {
		if hash := messages.DefinitionOf(ev); hash != "" && !c.seen[hash] {
			c.seen[hash] = true
			c.missing = append(c.missing, hash)
		}
		var err error
		if copied.Events[i], err = messages.ReplaceBlobs(ev, c.blob); err != nil {
			return err
		}
	}
	if c.Redactor != nil {
		c.Redactor.Frame(&copied)
	}
	return c.to.Frame(&copied)
}

// blob copies a blob that was not copied, and returns how the copy names it.
func (c *copying) blob(b messages.Blob, form messages.BlobForm) (messages.Blob, error) {
	if named, is := c.blobs[b.SHA256]; is {
		return named, nil
	}
	if form == messages.BlobFrames { // they are in front of the event
		return messages.Blob{}, nil
	}
	named, err := c.copyBlob(b, form)
	if isMissing(err) {
		c.missing, err = append(c.missing, named.SHA256), nil
	}
	if err != nil {
		return named, fmt.Errorf("blob %s: %w", b.SHA256, err)
	}
	c.blobs[b.SHA256] = named
	return named, nil
}

func (c *copying) copyBlob(b messages.Blob, form messages.BlobForm) (messages.Blob, error) {
	named := messages.Blob{SHA256: b.SHA256, Size: b.Size}
	if c.Redactor == nil {
		if !c.Blobs {
			return named, nil
		}
		return named, c.to.Blob(named, func(w io.Writer) error { return c.from.Blob(c.ctx, b, w) })
	}
	named.SHA256 = c.Redactor.Digest(b.SHA256) // nothing is known of what it holds
	if !c.Blobs {
		return named, nil
	}
	data, err := c.load(b)
	if err != nil {
		return named, err
	}
	data = c.Redactor.Blob(form, data)
	named = messages.Blob{SHA256: messages.DigestOf(data), Size: int64(len(data))}
	return named, c.to.Blob(named, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
