package actors

import (
	"context"
	"errors"
	"io"

	"github.com/reprise-dev/reprise/messages"
)

// reread reads a blob from its beginning as often as it is asked to: a log needs the hash of
// what it stores before it stores it. So a copy of a blob is never in memory as a whole. Close
// it at the end.
type reread struct {
	open func() (io.ReadCloser, error)
	from io.ReadCloser // nil: not open
	at   int64
	err  error // why it cannot be read
}

// Read reads on.
func (r *reread) Read(b []byte) (n int, err error) {
	if r.from == nil {
		r.from, err = r.open()
	}
	if err == nil {
		n, err = r.from.Read(b)
		r.at += int64(n)
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Seek goes back to the beginning, and to no other place. It fails as reading has.
func (r *reread) Seek(offset int64, whence int) (int64, error) {
	if r.err != nil {
		return r.at, r.err
	}
	if whence == io.SeekCurrent {
		offset += r.at
	}
	if offset != 0 || whence == io.SeekEnd {
		return r.at, errors.ErrUnsupported
	}
	r.Close()
	return 0, nil
}

// Close closes the blob and goes back to its beginning.
func (r *reread) Close() {
	if r.from != nil {
		_ = r.from.Close()
	}
	r.from, r.at = nil, 0
}

// copy stores a blob of another agent as one of a. An error of reading it is of [shelf.unread].
func (s *shelf) copy(ctx context.Context, a messages.AgentID, epoch messages.Epoch, from messages.AgentID, b messages.Blob) (*messages.Blob, error) {
	r := &reread{open: func() (io.ReadCloser, error) { return s.log.Blob(ctx, from, b) }}
	defer r.Close()
	copied, err := s.put(ctx, a, epoch, r)
	if r.err != nil {
		return nil, s.unread(ctx, from, b, r.err)
	}
	return copied, err
}
