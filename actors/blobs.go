package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

// blobs stores payloads that are too large for a frame beside the log, and reads them. Safe for
// concurrent use.
type blobs struct {
	rt *Runtime
	// most is the largest payload that is stored, in bytes.
	most  int
	shown cache
}

// put stores what r holds and returns once it is on disk. What came of an effect cannot be had
// again, so it is tried until ctx ends, as an append is, or until r cannot be read. epoch is that
// of the agent's owner.
func (s *blobs) put(ctx context.Context, a messages.AgentID, epoch messages.Epoch, r io.ReadSeeker) (stored *messages.Blob, err error) {
	defer s.rt.writers.begin(a)()
	err = s.rt.retry(ctx, func() error {
		b, err := s.rt.store.PutBlob(ctx, a, r)
		if stored = &b; err == nil {
			return nil
		}
		if _, unread := r.Seek(0, io.SeekStart); unread != nil {
			return backoff.Permanent(err)
		}
		return err
	}, "a large payload cannot be stored; it is tried until it can", a.LogAttr(epoch))
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// show returns items as a model is shown them: a text that is stored as a blob whole up to most
// bytes, of a longer one the beginning and the end. Images and what only the provider can read
// are always whole, for a part of them is worth nothing. Once the newest texts are as many as a
// request may show, those of older items are brief. The items given are not changed. Its error
// is a *providers.Error.
func (s *blobs) show(ctx context.Context, a messages.AgentID, items []messages.Item, most int) ([]messages.Item, error) {
	return s.showEach(ctx, a, items, most, func(_ int, err error) error { return err })
}

// showEach is show with the errors of single items given to failed. If that returns nil, the item keeps
// its references, and the next one is shown.
func (s *blobs) showEach(ctx context.Context, a messages.AgentID, items []messages.Item, most int, failed func(i int, err error) error) ([]messages.Item, error) {
	copied, long := false, longFrom(items, most)
	for i := range items {
		if !items[i].HasBlob() {
			continue
		}
		if !copied {
			items, copied = append([]messages.Item(nil), items...), true
		}
		shown := most
		if i < long {
			shown = min(most, projections.ShowBriefly)
		}
		item, err := items[i].Whole(func(b messages.Blob, form messages.BlobForm) (string, error) {
			if form != messages.BlobText {
				return s.text(ctx, a, b, math.MaxInt)
			}
			return s.text(ctx, a, b, shown)
		})
		if err == nil {
			items[i] = item.WithoutBlobs()
		} else if err = failed(i, err); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// longFrom returns the oldest item whose texts are not brief.
func longFrom(items []messages.Item, most int) int {
	left := int64(max(projections.ShowInAll, most))
	for i := len(items) - 1; i >= 0; i-- {
		if left -= shownOf(&items[i], most); left < 0 {
			return i + 1
		}
	}
	return 0
}

// shownOf returns how many bytes of its blobs' texts an item shows, if they are not brief.
func shownOf(item *messages.Item, most int) (size int64) {
	if item.Blob != nil {
		size = min(item.Blob.Size, int64(most))
	}
	for _, p := range item.Content {
		if p.Blob != nil && p.Type == "text" {
			size += min(p.Blob.Size, int64(most))
		}
	}
	return size
}

// text returns a blob whole, or, if it has more than most bytes, an excerpt. Its error
// is a *providers.Error that names the event of the blob and what to do.
func (s *blobs) text(ctx context.Context, a messages.AgentID, b messages.Blob, most int) (string, error) {
	key := shownKey{a, b.SHA256, most}
	if text, ok := s.shown.get(key); ok {
		return text, nil
	}
	text, err := s.read(ctx, a, b, most)
	if err != nil {
		return "", s.unreadable(ctx, a, b, err)
	}
	s.shown.put(key, text)
	return text, nil
}

func (s *blobs) read(ctx context.Context, a messages.AgentID, b messages.Blob, most int) (string, error) {
	if err := memory.Of(ctx).Add(ctx, int(min(b.Size, int64(most)))); err != nil {
		return "", err
	}
	r, err := s.rt.store.Blob(ctx, a, b)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	if b.Size > int64(most) {
		return excerpt(r, b, most)
	}
	var text strings.Builder
	text.Grow(int(max(b.Size, 0)))
	_, err = io.Copy(&text, r) // to the end, which is where a blob is checked
	return text.String(), err
}

// excerpt returns the first three quarters and the last quarter of most bytes of a blob, cut
// between characters, with a line between them that names how much is left out. It reads, and so
// checks, all of it and holds no more than it returns.
func excerpt(r io.Reader, b messages.Blob, most int) (string, error) {
	last := most / 4
	head, tail := make([]byte, most-last), make([]byte, last)
	_, err := io.ReadFull(r, head)
	if err == nil {
		_, err = io.CopyN(io.Discard, r, b.Size-int64(most))
	}
	if err == nil {
		_, err = io.ReadFull(r, tail)
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = messages.Refuse(messages.Damaged, "it ends too soon")
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return "", err
	}
	first, end := strings.ToValidUTF8(string(head), ""), strings.ToValidUTF8(string(tail), "")
	return fmt.Sprintf("%s\n[%d bytes are left out here; the whole, %d bytes, is kept under sha256 %s]\n%s",
		first, b.Size-int64(len(first)+len(end)), b.Size, b.SHA256, end), nil
}

// unreadable returns why a blob cannot be shown: with the event that names it and what to do, if
// trying again does not help.
func (s *blobs) unreadable(ctx context.Context, a messages.AgentID, b messages.Blob, err error) *providers.Error {
	if ctx.Err() != nil {
		return providers.AsError(ctx.Err())
	}
	var noMemory *providers.Error
	if errors.As(err, &noMemory) {
		return noMemory
	}
	kind, how := messages.ModelFailureBlobMissing, "is not stored any more"
	switch messages.AsError(err).Code {
	case messages.NotFound:
	case messages.Damaged:
		kind, how = messages.ModelFailureBlobDamaged, "is damaged ("+err.Error()+")"
	default:
		return &providers.Error{Kind: providers.Network, Temporary: true, Err: err,
			Message: fmt.Sprintf("blob %s cannot be read now: %v", b.SHA256, err)}
	}
	where, deleted := s.namedBy(ctx, a, b)
	remedy := "put it back from a backup, then resume the turn; or clear the agent, which drops it"
	if deleted {
		remedy = fmt.Sprintf("agent %s was deleted, and its blobs with it", a)
	}
	return &providers.Error{Kind: kind, Err: err, Message: fmt.Sprintf("blob %s (%d bytes), which %s names, %s: %s", b.SHA256, b.Size, where, how, remedy)}
}

// namedBy describes the event that names a blob; deleted reports that it was removed with a
// former life of the agent.
func (s *blobs) namedBy(ctx context.Context, a messages.AgentID, b messages.Blob) (where string, deleted bool) {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	for rec, err := range s.rt.store.Read(ctx, a, eventlog.Range{}) {
		if err != nil {
			break
		}
		deleted = deleted || eventlog.Ends(rec.Frame)
		for i, ev := range rec.Frame.Events {
			if !slices.ContainsFunc(messages.BlobsOf(ev), func(named messages.Blob) bool { return named.SHA256 == b.SHA256 }) {
				continue
			}
			text := ev.EventType()
			if call := messages.CallOf(ev); call != "" {
				text += " of call " + string(call)
			}
			return fmt.Sprintf("event %d (%s) of %s", rec.Frame.First+messages.EventNumber(i), text, a), false
		}
	}
	return "the history of " + a.String(), deleted
}

// copy stores a blob of another agent as one of a, piece by piece. An error of reading it is
// that of unreadable.
func (s *blobs) copy(ctx context.Context, a messages.AgentID, epoch messages.Epoch, from messages.AgentID, b messages.Blob) (*messages.Blob, error) {
	r := &rereader{open: func() (io.ReadCloser, error) { return s.rt.store.Blob(ctx, from, b) }}
	defer r.Close()
	copied, err := s.put(ctx, a, epoch, r)
	if r.err != nil {
		return nil, s.unreadable(ctx, from, b, r.err)
	}
	return copied, err
}

// rereader reads a blob from its beginning as often as it is asked to: a log needs the hash of
// what it stores before it stores it. So a copy of a blob is never in memory as a whole. Close
// it at the end.
type rereader struct {
	open func() (io.ReadCloser, error)
	from io.ReadCloser // nil: not open
	at   int64
	err  error // why it cannot be read
}

// Read reads the next bytes.
func (r *rereader) Read(b []byte) (n int, err error) {
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
func (r *rereader) Seek(offset int64, whence int) (int64, error) {
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
func (r *rereader) Close() {
	if r.from != nil {
		_ = r.from.Close()
	}
	r.from, r.at = nil, 0
}
