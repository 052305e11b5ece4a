// Package archive writes an agent as a file: everything that is stored of it, as
// lines of JSON.
//
// The first line names the agent and when it was written, and holds the wrapped
// key if there is one. Then comes a line for each frame: its bytes as they are
// stored, and its events for those who read. Where events are encrypted the bytes
// are all there is: the wrapping key opens the wrapped key, and that opens them.
// Blobs follow in pieces, as they are stored. The last line counts what was
// written and holds the SHA-256 of all lines before it.
//
// # Guarantees
//
//   - A file that has its name is whole and on disk, and was read back.
//   - What cannot be written byte for byte as it is stored is not written at all.
//   - A fork, whose first events are stored for another agent, is not written.
package archive

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Format is the version of the files that are written.
const Format = 1

// Source is the store of agents, below any encryption.
type Source interface {
	eventlog.Reader
	eventlog.Blobs
}

// Head is the first line.
type Head struct {
	Archive int       `json:"archive"` // Format
	Agent   string    `json:"agent"`   // the full address
	At      time.Time `json:"at"`
	// Key is the agent's wrapped key as the store keeps it. Empty: it has none.
	Key json.RawMessage `json:"key,omitempty"`
}

// Frame is the line of a frame.
type Frame struct {
	Frame []byte               `json:"frame"` // as stored
	First messages.EventNumber `json:"first"`
	Last  messages.EventNumber `json:"last"`
	Seq   uint64               `json:"seq"`
	// Events are those of the frame. Empty: they are encrypted.
	Events []projections.EventJSON `json:"events,omitempty"`
}

// Piece is the line of a part of a blob. Pieces of a blob follow one another.
type Piece struct {
	Blob messages.Digest `json:"blob"` // of what is stored
	Size int64           `json:"size"` // of the whole
	At   int64           `json:"offset"`
	Data []byte          `json:"data"`
}

// End is the last line.
type End struct {
	Frames int                  `json:"frames"`
	Last   messages.EventNumber `json:"last"`
	Blobs  int                  `json:"blobs"`
	// SHA256 is of all lines before this one, with their line ends, in hex.
	SHA256 string `json:"sha256"`
}

// ErrFork is wrapped by the error for an agent that is a fork.
var ErrFork = errors.New("it is a fork, and its first events are stored for its parent alone: delete it with `reprise delete` if it is not needed")

// pieceSize is how many bytes of a blob stand in one line.
const pieceSize = 192 << 10

// Write writes an agent to a file of its own below dir, named by its address and now, and returns
// the file and what is in it. key is its wrapped key, empty if it has none. A file that exists
// already is an error, and is left as it is.
func Write(ctx context.Context, dir string, from Source, a messages.AgentID, key json.RawMessage, now time.Time) (path string, end End, err error) {
	if err := a.Validate(); err != nil {
		return "", end, err
	}
	folder := filepath.Join(dir, a.Tenant, a.Kind, a.Key)
	path = filepath.Join(folder, now.UTC().Format("20060102T150405.000000000Z")+".jsonl")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", end, err
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return "", end, fmt.Errorf("%s is there already", path)
	}
	part := path + ".part"
	defer func() { _ = os.Remove(part) }() // gone if it has its name
	if end, err = write(ctx, part, from, a, Head{Format, a.Full(), now.UTC(), key}); err != nil {
		return "", end, fmt.Errorf("archive %s: %w", a, err)
	}
	if got, err := Check(part); err != nil || got != end {
		return "", end, fmt.Errorf("archive %s: it was not written as it should be: %w", a, errors.Join(err, errors.New("the file differs")))
	}
	if err := os.Rename(part, path); err != nil {
		return "", end, err
	}
	return path, end, syncFolders(folder, dir)
}

// Writable says why nothing can be written below dir; nil: it can.
func Writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// syncFolders makes the names from folder up to dir stay.
func syncFolders(folder, dir string) error {
	for range 4 { // key, kind, tenant, dir
		f, err := os.Open(folder)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		if folder == dir {
			return nil
		}
		folder = filepath.Dir(folder)
	}
	return nil
}

func write(ctx context.Context, path string, from Source, a messages.AgentID, head Head) (end End, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &writer{out: bufio.NewWriter(f), sum: sha256.New()}
	w.line(head)
	if err := w.frames(ctx, from, a); err != nil {
		return end, err
	}
	if err := w.blobs(ctx, from, a); err != nil {
		return end, err
	}
	w.end.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	w.line(w.end)
	if err := errors.Join(w.err, w.out.Flush()); err != nil {
		return end, err
	}
	return w.end, f.Sync()
}

// writer writes lines; its first error stays.
type writer struct {
	out *bufio.Writer
	sum hash.Hash
	end End
	err error
}

func (w *writer) line(v any) {
	if w.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		b = append(b, '\n')
		w.sum.Write(b)
		_, err = w.out.Write(b)
	}
	w.err = err
}

func (w *writer) frames(ctx context.Context, from Source, a messages.AgentID) error {
	for rec, err := range from.Read(ctx, a, eventlog.Range{}) {
		if err == nil && eventlog.Forks(rec.Frame) {
			err = ErrFork
		}
		if err != nil {
			return err
		}
		stored, err := messages.EncodeFrame(a, rec.Frame)
		if err != nil {
			return err
		}
		if messages.DigestOf(stored) != rec.Digest {
			return fmt.Errorf("frame %s is stored in another form than this version writes", rec.Frame.ID)
		}
		line := Frame{Frame: stored, First: rec.Frame.First, Last: rec.Frame.Last(), Seq: rec.Seq}
		if !rec.Frame.Encrypted() {
			for i, ev := range rec.Frame.Events {
				e := projections.NewEventJSON(rec.Frame.First+messages.EventNumber(i), rec.Seq, rec.Frame.ID, rec.Frame.Time, ev)
				e.Person = rec.Frame.Cause.Person()
				line.Events = append(line.Events, e)
			}
		}
		if w.line(line); w.err != nil {
			return w.err
		}
		w.end.Frames, w.end.Last = w.end.Frames+1, line.Last
	}
	return nil
}

func (w *writer) blobs(ctx context.Context, from Source, a messages.AgentID) error {
	for b, err := range from.ListBlobs(ctx, a) {
		if err != nil {
			return err
		}
		if err := w.blob(ctx, from, a, b); err != nil {
			return err
		}
		w.end.Blobs++
	}
	return nil
}

func (w *writer) blob(ctx context.Context, from Source, a messages.AgentID, b messages.Blob) (err error) {
	r, err := from.Blob(ctx, a, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	buf, at := make([]byte, pieceSize), int64(0)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 || at == 0 {
			w.line(Piece{b.SHA256, b.Size, at, buf[:n]})
			at += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return w.err
		case err != nil || w.err != nil:
			return errors.Join(err, w.err)
		}
	}
}

// Check reads a file that was written whole and returns its last line. The error is what is wrong
// with it.
func Check(path string) (end End, err error) {
	f, err := os.Open(path)
	if err != nil {
		return end, err
	}
	defer func() { _ = f.Close() }()
	r, sum := bufio.NewReader(f), sha256.New()
	var last []byte
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil {
			return end, fmt.Errorf("the last line is cut off: %w", err)
		}
		sum.Write(last)
		last = line
	}
	if err := json.Unmarshal(bytes.TrimSpace(last), &end); err != nil {
		return end, fmt.Errorf("its last line cannot be read: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != end.SHA256 {
		return end, fmt.Errorf("its lines have the hash %s, not %s: it is cut off or damaged", got, end.SHA256)
	}
	return end, nil
}
