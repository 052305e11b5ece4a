package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/reprise-dev/reprise/messages"
)

// Writer writes one agent. Several agents are written to a file one after another, each by a Writer
// of its own. The first error stays, and what was written before it is no export. Not safe for
// concurrent use.
type Writer struct {
	to     io.Writer
	sum    hash.Hash
	agent  messages.AgentID
	end    End
	id     messages.FrameID // of the newest frame
	digest messages.Digest  // of the newest frame; empty before the first
	err    error
}

// NewWriter writes the head of an agent to w.
func NewWriter(w io.Writer, head Head) (*Writer, error) {
	a, err := messages.ParseAgentID(head.Agent)
	if err != nil {
		return nil, err
	}
	head.Reprise, head.Format, head.Agent, head.At = magic, Format, a.Full(), head.At.UTC()
	out := &Writer{to: w, sum: sha256.New(), agent: a}
	return out, out.line(head)
}

func (w *Writer) line(v any) error {
	if w.err != nil {
		return w.err
	}
	b, err := json.Marshal(v)
	if err == nil && len(b) >= MaxLine {
		err = fmt.Errorf("a line has %d bytes: at most %d are written", len(b), MaxLine)
	}
	if err == nil {
		b = append(b, '\n')
		w.sum.Write(b)
		_, err = w.to.Write(b)
	}
	w.err = err
	return err
}

// Definition writes a definition. Its hash must be that of data, which must be JSON as json.Marshal
// writes it.
func (w *Writer) Definition(hash messages.Digest, data []byte) error {
	compact, err := json.Marshal(json.RawMessage(data))
	if err != nil || messages.DigestOf(compact) != hash {
		return fmt.Errorf("definition %s of %s is stored in a form that cannot be exported: %w", hash, w.agent, errors.Join(err, errors.New("its hash is another one")))
	}
	w.end.Definitions++
	return w.line(Definition{hash, data})
}

// Blob writes the bytes that fill writes to it as a blob. They must have the size and hash of b, which is
// checked. If fill fails before it has written a byte nothing is written, and the error does not stay.
func (w *Writer) Blob(b messages.Blob, fill func(io.Writer) error) error {
	p := &pieces{w: w, sum: sha256.New(), piece: Piece{Blob: b.SHA256, Size: b.Size}}
	if err := fill(p); err != nil {
		if p.piece.Offset > 0 || p.buf.Len() > 0 {
			w.err = errors.Join(w.err, err)
		}
		return err
	}
	if p.buf.Len() > 0 || b.Size == 0 {
		p.flush(p.buf.Len())
	}
	if got := hexOf(p.sum); w.err == nil && (got != b.SHA256 || p.piece.Offset != b.Size) {
		w.err = fmt.Errorf("blob %s of %s came as %d bytes with hash %s", b.SHA256, w.agent, p.piece.Offset, got)
	}
	w.end.Blobs++
	return w.err
}

// pieces cuts what is written to it into lines.
type pieces struct {
	w     *Writer
	sum   hash.Hash
	piece Piece
	buf   bytes.Buffer
}

// Write takes bytes of the blob.
func (p *pieces) Write(b []byte) (int, error) {
	p.sum.Write(b)
	p.buf.Write(b)
	for p.buf.Len() >= pieceSize {
		p.flush(pieceSize)
	}
	return len(b), p.w.err
}

func (p *pieces) flush(n int) {
	p.piece.Data = append([]byte{}, p.buf.Next(n)...) // null is no data
	_ = p.w.line(p.piece)                             // it stays in w
	p.piece.Offset += int64(n)
}

func hexOf(h hash.Hash) messages.Digest { return messages.Digest(hex.EncodeToString(h.Sum(nil))) }

// Frame writes the next frame, which is not changed. Written it names the frame before it by the digest
// with which that was written, also where it is the first of a fork's own and names none in the log.
func (w *Writer) Frame(f *messages.Frame) error {
	switch {
	case f.Encrypted():
		return fmt.Errorf("frame %s of %s is encrypted: an export holds frames in clear", f.ID, w.agent)
	case w.end.Frames > 0 && f.First != w.end.Last+1:
		return fmt.Errorf("frame %s of %s begins with event %d behind event %d", f.ID, w.agent, f.First, w.end.Last)
	}
	chained := *f
	chained.KeyID = ""
	if w.digest != "" {
		chained.Prev, chained.PrevDigest = w.id, w.digest
	}
	stored, err := messages.EncodeFrame(w.agent, &chained)
	if err != nil {
		return err
	}
	if err := w.line(newFrameLine(&chained, stored)); err != nil {
		return err
	}
	w.id, w.digest = f.ID, messages.DigestOf(stored)
	w.end.Add(f)
	return nil
}

// Close ends the agent and returns what was written. missing and redactions are those of [End]. It
// does not close the writer below.
func (w *Writer) Close(missing []messages.Digest, redactions map[string]int) (End, error) {
	w.end.Missing, w.end.Redactions, w.end.SHA256 = missing, redactions, hexOf(w.sum)
	return w.end, w.line(w.end)
}
