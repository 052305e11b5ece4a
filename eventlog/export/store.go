package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

// Stored is an agent of a file whose events, payloads and definitions are in a store.
type Stored struct {
	Head Head
	End  End
	// Agent is in whose place they are stored, Prefix what its log is to begin with.
	Agent  messages.AgentID
	Prefix messages.Prefix
}

// Store stores the agents of a file one after another, and yields each once all of it is stored and its
// end was verified. as returns in whose place an agent is stored, and reports whether it is. Nothing is
// appended to a log, so that what was stored before an error is named by nothing; storing it again
// changes nothing. The sequence holds at most one error, and ends with it. No more than a line is held
// in memory; files in the folder for temporary ones hold a payload and the frames of one agent.
func Store(ctx context.Context, from io.Reader, to eventlog.Store, as func(Head) (messages.AgentID, bool)) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		s := &storing{ctx: ctx, to: to, as: as}
		err := s.open()
		for line, failed := range Lines(from) {
			if err = errors.Join(err, failed); err != nil {
				break
			}
			if err = s.line(line); err != nil {
				break
			}
			if line.End != nil && s.chosen && !yield(s.stored, nil) {
				s.close()
				return
			}
		}
		s.close()
		if err != nil {
			yield(Stored{}, err)
		}
	}
}

// storing is a Store under way.
type storing struct {
	ctx    context.Context
	to     eventlog.Store
	as     func(Head) (messages.AgentID, bool)
	blob   *os.File // the newest payload, as far as it has come
	frames *os.File // of the newest agent
	out    *bufio.Writer
	prefix *prefix.Writer
	blobs  map[messages.Digest]messages.Blob // of the newest agent, as they are stored
	chosen bool                              // the newest agent is stored
	stored Stored
}

// open makes the temporary files.
func (s *storing) open() (err error) {
	if s.blob, err = unnamed(); err != nil {
		return err
	}
	s.frames, err = unnamed()
	return err
}

// unnamed makes a temporary file, without a name where the system has such: a process that is killed
// leaves no content of agents in the folder.
func unnamed() (*os.File, error) {
	f, err := os.CreateTemp("", "reprise-import-*")
	if err == nil {
		_ = os.Remove(f.Name()) // Windows refuses: close removes it
	}
	return f, err
}

func (s *storing) close() {
	for _, f := range [...]*os.File{s.blob, s.frames} {
		if f != nil {
			_, _ = f.Close(), os.Remove(f.Name()) // what is left is temporary
		}
	}
}

func (s *storing) line(l Line) error {
	if l.Head != nil {
		return s.begin(*l.Head)
	}
	switch {
	case !s.chosen:
		return nil
	case l.Definition != nil:
		return s.definition(*l.Definition)
	case l.Piece != nil:
		return s.piece(*l.Piece)
	case l.Frame != nil:
		return s.frame(l.Frame)
	}
	return s.end(*l.End)
}

func (s *storing) begin(h Head) error {
	s.stored = Stored{Head: h}
	if s.stored.Agent, s.chosen = s.as(h); !s.chosen {
		return nil
	}
	s.blobs = make(map[messages.Digest]messages.Blob)
	s.out = bufio.NewWriter(s.frames)
	s.prefix = prefix.NewWriter(s.stored.Agent, s.out)
	return empty(s.frames)
}

func empty(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return errors.Join(err, f.Truncate(0))
}

func (s *storing) definition(d Definition) error {
	hash, err := s.to.PutDefinition(s.ctx, d.Data)
	if err == nil && hash != d.Hash {
		err = fmt.Errorf("it was stored as %s", hash)
	}
	if err != nil {
		return fmt.Errorf("store definition %s: %w", d.Hash, err)
	}
	return nil
}

// piece takes a piece of a payload, and stores that with its last one.
func (s *storing) piece(p Piece) error {
	if p.Offset == 0 {
		if err := empty(s.blob); err != nil {
			return err
		}
	}
	if _, err := s.blob.Write(p.Data); err != nil || p.Offset+int64(len(p.Data)) < p.Size {
		return err
	}
	b, err := s.put(s.blob)
	s.blobs[p.Blob] = b
	return err
}

// put stores a file as a blob of the agent.
func (s *storing) put(f *os.File) (messages.Blob, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return messages.Blob{}, err
	}
	b, err := s.to.PutBlob(s.ctx, s.stored.Agent, f)
	if err != nil {
		return b, fmt.Errorf("store a payload of %s: %w", s.stored.Agent, err)
	}
	return b, nil
}

// frame adds a frame, which names payloads as they are stored.
func (s *storing) frame(f *messages.Frame) (err error) {
	named := *f
	named.Events = make([]messages.Event, len(f.Events))
	for i, ev := range f.Events {
		named.Events[i], err = messages.ReplaceBlobs(ev, func(b messages.Blob, _ messages.BlobForm) (messages.Blob, error) {
			if stored, is := s.blobs[b.SHA256]; is {
				return stored, nil
			}
			return b, nil
		})
		if err != nil {
			return err
		}
	}
	return s.prefix.Frame(&named)
}

func (s *storing) end(e End) (err error) {
	s.stored.End = e
	if e.Frames == 0 {
		return fmt.Errorf("%s has no events in the file", s.stored.Head.Agent)
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	s.stored.Prefix = s.prefix.Prefix()
	s.stored.Prefix.Frames, err = s.put(s.frames)
	return err
}
