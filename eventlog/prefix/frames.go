package prefix

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A prefix that is a blob is a sequence of frames. In front of each are the number of its last event,
// in 8 bytes, and its length, in 4, so that a reader need not decode what it passes over. A frame is
// encoded as one of the agent that the blob belongs to, with the epoch 0.

// headSize is how many bytes are in front of a frame.
const headSize = 12

// maxSize is the largest frame that is read, in bytes: several times what a log takes.
const maxSize = 8 * eventlog.MaxFrame

// Writer writes frames as a prefix that is a blob.
type Writer struct {
	to    io.Writer
	agent messages.AgentID
	last  messages.Prefix
	id    messages.FrameID
}

// NewWriter returns a Writer of a prefix of agent a.
func NewWriter(a messages.AgentID, to io.Writer) *Writer { return &Writer{to: to, agent: a} }

// Frame writes the next frame, which is not changed. It is chained to the one that was written before.
func (w *Writer) Frame(f *messages.Frame) error {
	if w.id != "" && f.First != w.last.Last+1 {
		return fmt.Errorf("frame %s begins with event %d behind event %d", f.ID, f.First, w.last.Last)
	}
	chained := *f
	chained.Epoch, chained.KeyID, chained.Prev, chained.PrevDigest = 0, "", w.id, w.last.Digest
	b, err := messages.EncodeFrame(w.agent, &chained)
	if err != nil {
		return err
	}
	if len(b) > maxSize {
		return fmt.Errorf("frame %s has %d bytes, the limit is %d: %w", f.ID, len(b), maxSize, eventlog.ErrTooLarge)
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(f.Last()))
	if _, err := w.to.Write(binary.BigEndian.AppendUint32(head, uint32(len(b)))); err != nil {
		return err
	}
	w.id, w.last.Last, w.last.Digest = f.ID, f.Last(), messages.DigestOf(b)
	_, err = w.to.Write(b)
	return err
}

// Prefix returns what was written, without the blob.
func (w *Writer) Prefix() messages.Prefix { return w.last }

// Frames yields the frames of agent a's prefix in p.Frames from the one that holds event from on, with
// the sequence 0. Each was verified. What is not there, or not as it was written, is a
// *eventlog.DamageError.
func Frames(ctx context.Context, blobs eventlog.Blobs, a messages.AgentID, p messages.Prefix, from messages.EventNumber) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		r := &reading{agent: a, prefix: p, from: from}
		blob, err := blobs.Blob(ctx, a, p.Frames)
		if err != nil {
			err = readError{err}
		} else {
			defer func() { _ = blob.Close() }() // it was only read
			r.in = bufio.NewReaderSize(blob, 64<<10)
			var more bool
			if more, err = r.each(yield); !more {
				return
			}
		}
		if err != nil {
			yield(eventlog.Recorded{}, r.failed(err))
		}
	}
}

// reading is a read of a prefix that is a blob.
type reading struct {
	agent  messages.AgentID
	prefix messages.Prefix
	from   messages.EventNumber
	in     *bufio.Reader
	passed bool              // frames before from
	tail   eventlog.Position // of the newest frame that was read; zero: none was
}

// failed returns the error for a prefix that cannot be read on.
func (r *reading) failed(err error) error {
	if read := (readError{}); errors.As(err, &read) {
		err = read.error
		if code := messages.AsError(err).Code; code != messages.NotFound && code != messages.Damaged {
			return err
		}
	}
	next := max(r.from, r.tail.Last+1)
	return &eventlog.DamageError{Agent: r.agent, Event: next, Err: fmt.Errorf("its events up to %d are in blob %s: %w", r.prefix.Last, r.prefix.Frames.SHA256, err)}
}

// each yields the frames. It reports whether the caller still takes an error.
func (r *reading) each(yield func(eventlog.Recorded, error) bool) (more bool, err error) {
	for {
		last, size, err := r.head()
		switch {
		case err == io.EOF:
			return true, r.end()
		case err != nil:
			return true, err
		case last < r.from && last < r.prefix.Last:
			if _, err := r.in.Discard(size); err != nil {
				return true, cut(err)
			}
			r.passed = true
			continue
		}
		rec, err := r.frame(last, size)
		if err != nil {
			return true, err
		}
		if !yield(rec, nil) {
			return false, nil
		}
	}
}

// head reads what is in front of a frame; io.EOF behind the last one.
func (r *reading) head() (last messages.EventNumber, size int, err error) {
	var head [headSize]byte
	switch _, err := io.ReadFull(r.in, head[:]); {
	case err == io.EOF:
		return 0, 0, err
	case err != nil:
		return 0, 0, cut(err)
	}
	length := binary.BigEndian.Uint32(head[8:])
	if length > maxSize {
		return 0, 0, fmt.Errorf("a frame has %d bytes, the limit is %d", length, maxSize)
	}
	return messages.EventNumber(binary.BigEndian.Uint64(head[:8])), int(length), nil
}

// frame reads a frame and checks that it follows the one before it.
func (r *reading) frame(last messages.EventNumber, size int) (rec eventlog.Recorded, err error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(r.in, b); err != nil {
		return rec, cut(err)
	}
	f, err := messages.DecodeFrame(r.agent, b)
	if err != nil {
		return rec, err
	}
	rec = eventlog.Recorded{Agent: r.agent, Frame: f, Digest: messages.DigestOf(b), Size: size}
	if f.Last() != last || f.Epoch != 0 {
		return rec, fmt.Errorf("frame %s ends with event %d under epoch %d, not with event %d", f.ID, f.Last(), f.Epoch, last)
	}
	switch {
	case r.tail.Frame == "" && !r.passed && f.First != 1 && !eventlog.Ends(f):
		return rec, fmt.Errorf("it begins with event %d, and the ones before it are missing", f.First)
	case r.tail.Frame != "":
		if err := eventlog.Check(r.tail, rec); err != nil {
			return rec, err
		}
	}
	r.tail = rec.Position()
	return rec, nil
}

// end checks that the last frame is that of the prefix.
func (r *reading) end() error {
	if r.tail.Last != r.prefix.Last || r.tail.Digest != r.prefix.Digest {
		return fmt.Errorf("it does not end with the frame of event %d that was stored", r.prefix.Last)
	}
	return nil
}

// cut returns the error of a read that has ended within a frame.
func cut(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is cut off")
	}
	return readError{err}
}

// readError is why a blob cannot be read. That is no damage unless the blob is missing or damaged.
type readError struct{ error }
