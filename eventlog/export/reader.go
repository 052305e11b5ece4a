package export

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/reprise-dev/reprise/messages"
)

// Line is one line of a file. Exactly one field is set.
type Line struct {
	Head       *Head
	Definition *Definition
	Piece      *Piece
	Frame      *messages.Frame
	End        *End
}

// errNoExport is wrapped by the errors for what is no export at all.
var errNoExport = errors.New("this is no file that `reprise export` has written")

// Lines yields the lines of a file, compressed by gzip or not, each once it was verified: its form,
// the numbers and the chain of frames, the hashes of definitions and blobs, and with an End its counts
// and the digest. The sequence holds at most one error, which names the line, and ends with it. It
// can be run once.
func Lines(from io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r := &reading{}
		in, err := r.open(from)
		for err == nil {
			var raw []byte
			if raw, err = r.next(in); err != nil {
				break
			}
			var line Line
			if line, err = r.line(raw); err == nil && !yield(line, nil) {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if r.n > 0 {
			err = fmt.Errorf("line %d: %w", r.n, err)
		}
		yield(Line{}, err)
	}
}

// reading is the state of Lines.
type reading struct {
	n     int // lines read
	agent messages.AgentID
	inner bool // an agent has begun and not ended
	sum   hash.Hash
	end   End   // as counted
	piece Piece // the newest of a blob that is not complete; Blob empty: none
	blob  hash.Hash

	last       *messages.Frame
	lastDigest messages.Digest
}

// open returns the lines of a file.
func (r *reading) open(from io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(from, 64<<10)
	begin, err := in.Peek(2)
	switch {
	case len(begin) == 0 && err == io.EOF:
		return nil, fmt.Errorf("%w: it is empty", errNoExport)
	case len(begin) == 0:
		return nil, err
	case !bytes.Equal(begin, []byte{0x1f, 0x8b}):
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("the compressed file is damaged: %w", err)
	}
	return bufio.NewReaderSize(z, 64<<10), nil
}

// next returns the next line without its end; io.EOF behind the end of an agent.
func (r *reading) next(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == io.EOF && len(line) == 0 && !r.inner && r.n > 0:
			return nil, io.EOF
		case len(line) > MaxLine:
			r.n++
			return nil, fmt.Errorf("it is longer than %d bytes, which no line of an export is", MaxLine)
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			r.n++
			return nil, errors.New("the file is cut off here: the end of the agent is missing")
		case err != nil && err != bufio.ErrBufferFull:
			r.n++
			return nil, fmt.Errorf("the file is damaged here: %w", err)
		case err == nil:
			r.n++
			return line, nil
		}
	}
}

// line reads a line with its end, and verifies it.
func (r *reading) line(raw []byte) (line Line, err error) {
	kind := kindOf(raw)
	switch {
	case !r.inner && kind != "reprise":
		if r.n == 1 {
			return line, errNoExport
		}
		return line, errors.New("the head of an agent is expected behind the end of another")
	case r.piece.Blob != "" && kind != "blob":
		return line, fmt.Errorf("blob %s has %d bytes, %d have come", r.piece.Blob, r.piece.Size, r.piece.Offset)
	}
	switch kind {
	case "reprise":
		line.Head = &Head{}
		err = r.head(raw, line.Head)
	case "definition":
		line.Definition = &Definition{}
		err = r.definition(raw, line.Definition)
	case "blob":
		line.Piece = &Piece{}
		err = r.pieceOf(raw, line.Piece)
	case "id":
		line.Frame, err = r.frame(raw)
	case "frames":
		line.End = &End{}
		return line, r.ended(raw, line.End)
	default:
		err = errors.New("a line of this kind is unknown: the file is damaged")
	}
	if err == nil {
		r.sum.Write(raw)
	}
	return line, err
}

// kindOf returns the first name of an object; empty if there is none.
func kindOf(raw []byte) string {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"`))
	name, _, found := bytes.Cut(rest, []byte{'"'})
	if !ok || !found {
		return ""
	}
	return string(name)
}

func (r *reading) head(raw []byte, h *Head) error {
	switch err := json.Unmarshal(raw, h); {
	case r.inner:
		return errors.New("an agent begins before the one before it has ended")
	case err != nil && r.n == 1, err == nil && h.Reprise != magic:
		return errNoExport
	case err != nil:
		return err
	case h.Format > Format:
		return fmt.Errorf("the file has format %d, this version reads up to %d: %w", h.Format, Format, messages.ErrNewer)
	case h.Format < 1:
		return fmt.Errorf("format %d: formats begin at 1", h.Format)
	}
	a, err := messages.ParseAgentID(h.Agent)
	if err != nil {
		return err
	}
	*r = reading{n: r.n, agent: a, inner: true, sum: sha256.New()}
	return nil
}

func (r *reading) definition(raw []byte, d *Definition) error {
	if err := json.Unmarshal(raw, d); err != nil {
		return err
	}
	if got := messages.DigestOf(d.Data); got != d.Hash {
		return fmt.Errorf("definition %s has the hash %s: it is damaged", d.Hash, got)
	}
	r.end.Definitions++
	return nil
}

// pieceOf reads a piece of a blob.
func (r *reading) pieceOf(raw []byte, p *Piece) error {
	if err := json.Unmarshal(raw, p); err != nil {
		return err
	}
	if r.piece.Blob == "" {
		r.piece, r.blob = Piece{Blob: p.Blob, Size: p.Size}, sha256.New()
	}
	if p.Blob == "" || p.Blob != r.piece.Blob || p.Size != r.piece.Size || p.Offset != r.piece.Offset || int64(len(p.Data)) > p.Size-p.Offset || len(p.Data) == 0 && p.Size > 0 {
		return fmt.Errorf("a piece of blob %s at %d is expected, here is one of %s at %d", r.piece.Blob, r.piece.Offset, p.Blob, p.Offset)
	}
	r.blob.Write(p.Data)
	if r.piece.Offset += int64(len(p.Data)); r.piece.Offset < p.Size {
		return nil
	}
	if got := hexOf(r.blob); got != p.Blob {
		return fmt.Errorf("blob %s has the hash %s: it is damaged", p.Blob, got)
	}
	r.piece = Piece{}
	r.end.Blobs++
	return nil
}

func (r *reading) frame(raw []byte) (*messages.Frame, error) {
	var line struct{ Frame []byte }
	if err := json.Unmarshal(raw, &line); err != nil {
		return nil, err
	}
	f, err := messages.DecodeFrame(r.agent, line.Frame)
	switch {
	case err != nil:
		return nil, err
	case f.Encrypted():
		return nil, fmt.Errorf("frame %s is encrypted: an export holds frames in clear", f.ID)
	case r.last != nil && f.First != r.last.Last()+1:
		return nil, fmt.Errorf("frame %s begins with event %d behind event %d", f.ID, f.First, r.last.Last())
	case r.last != nil && (f.Prev != r.last.ID || f.PrevDigest != r.lastDigest):
		return nil, fmt.Errorf("frame %s does not follow frame %s: it names %s with digest %s", f.ID, r.last.ID, f.Prev, f.PrevDigest)
	}
	r.last, r.lastDigest = f, messages.DigestOf(line.Frame)
	r.end.Add(f)
	return f, nil
}

func (r *reading) ended(raw []byte, end *End) error {
	if err := json.Unmarshal(raw, end); err != nil {
		return err
	}
	if got := hexOf(r.sum); got != end.SHA256 {
		return fmt.Errorf("the lines of %s have the hash %s, not %s: the file is damaged", r.agent, got, end.SHA256)
	}
	c := r.end
	if c.Frames != end.Frames || c.Events != end.Events || c.Last != end.Last || c.Definitions != end.Definitions || c.Blobs != end.Blobs {
		return fmt.Errorf("%s has %d frames, %d events, %d definitions and %d blobs, %d, %d, %d and %d are here", r.agent, end.Frames, end.Events, end.Definitions, end.Blobs, c.Frames, c.Events, c.Definitions, c.Blobs)
	}
	r.inner = false
	return nil
}
