package actors

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

// shelf keeps payloads that are too large for a frame beside the log, and gives
// them back. Safe for concurrent use.
type shelf struct {
	log interface {
		eventlog.Reader
		eventlog.Blobs
	}
	// most is the largest payload that is kept, in bytes.
	most    int
	writers *writers
	logger  *slog.Logger
	limited *limited
	shown   cache
}

// The pauses between attempts to store a blob: they double.
const (
	keepAgain = 50 * time.Millisecond
	keepMost  = 5 * time.Second
)

// keep stores a payload on the terms of put.
func (s *shelf) keep(ctx context.Context, a messages.AgentID, epoch messages.Epoch, payload string) (*messages.Blob, error) {
	return s.put(ctx, a, epoch, strings.NewReader(payload))
}

// put stores what r holds and returns once it is on disk. What came of an effect
// cannot be had again, so it tries until ctx ends, as an append does, or until r
// cannot be read. Epoch is that of the owner for whom it does, for the log.
func (s *shelf) put(ctx context.Context, a messages.AgentID, epoch messages.Epoch, r io.ReadSeeker) (*messages.Blob, error) {
	defer s.writers.begin(a)()
	for pause := keepAgain; ; pause = min(2*pause, keepMost) {
		b, err := s.log.PutBlob(ctx, a, r)
		if err == nil {
			return &b, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if _, unread := r.Seek(0, io.SeekStart); unread != nil {
			return nil, err
		}
		s.limited.warn(s.logger, "a large payload cannot be stored; it is tried until it can", a.LogAttr(epoch), "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// show gives items as a model is shown them: a text that is kept as a blob whole
// up to most bytes, of a longer one the beginning and the end. Images and what
// only the provider can read are always whole, for a part of them is worth
// nothing. Once the newest texts are as many as a request may show, those of older
// items are brief. The items given are left as they are. Its error is a
// *providers.Error.
func (s *shelf) show(ctx context.Context, a messages.AgentID, items []messages.Item, most int) ([]messages.Item, error) {
	copied, long := false, longFrom(items, most)
	for i := range items {
		if !items[i].HasBlob() {
			continue
		}
		if !copied {
			items, copied = append([]messages.Item(nil), items...), true
		}
		item, err := items[i].Whole(func(b messages.Blob, form messages.BlobForm) (string, error) {
			if form != messages.BlobText {
				return s.text(ctx, a, b, math.MaxInt)
			}
			if i < long {
				return s.text(ctx, a, b, min(most, projections.ShowBriefly))
			}
			return s.text(ctx, a, b, most)
		})
		if err != nil {
			return nil, err
		}
		items[i] = item.WithoutBlobs()
	}
	return items, nil
}

// longFrom is the oldest item whose texts are not brief.
func longFrom(items []messages.Item, most int) int {
	left := int64(max(projections.ShowInAll, most))
	for i := len(items) - 1; i >= 0; i-- {
		if left -= shownOf(&items[i], most); left < 0 {
			return i + 1
		}
	}
	return 0
}

// shownOf is how many bytes of its blobs' texts an item shows, if they are not brief.
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

// text is a blob whole, or, if it has more than most bytes, an excerpt. Its error
// is a *providers.Error that says where the blob belongs and what to do.
func (s *shelf) text(ctx context.Context, a messages.AgentID, b messages.Blob, most int) (string, error) {
	key := shownKey{a, b.SHA256, most}
	if text, ok := s.shown.get(key); ok {
		return text, nil
	}
	text, err := s.read(ctx, a, b, most)
	if err != nil {
		return "", s.unread(ctx, a, b, err)
	}
	s.shown.put(key, text)
	return text, nil
}

func (s *shelf) read(ctx context.Context, a messages.AgentID, b messages.Blob, most int) (string, error) {
	if err := memory.Of(ctx).Add(ctx, int(min(b.Size, int64(most)))); err != nil {
		return "", err
	}
	r, err := s.log.Blob(ctx, a, b)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	if b.Size <= int64(most) {
		return readAll(r, b.Size)
	}
	return excerpt(r, b, most)
}

// readAll reads to the end, which is where a blob is checked.
func readAll(r io.Reader, size int64) (string, error) {
	var text strings.Builder
	text.Grow(int(max(size, 0)))
	_, err := io.Copy(&text, r)
	return text.String(), err
}

// excerpt is the first three quarters and the last quarter of most bytes of a
// blob, cut between characters, with a line between them that says what is left
// out. It reads, and so checks, all of it and holds no more than it gives.
func excerpt(r io.Reader, b messages.Blob, most int) (string, error) {
	last := most / 4
	head, tail := make([]byte, most-last), make([]byte, last)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", cutOff(err)
	}
	if _, err := io.CopyN(io.Discard, r, b.Size-int64(most)); err != nil {
		return "", cutOff(err)
	}
	if _, err := io.ReadFull(r, tail); err != nil {
		return "", cutOff(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return "", err
	}
	head, tail = wholeRunes(head), fromRune(tail)
	return fmt.Sprintf("%s\n[%d bytes are left out here; the whole, %d bytes, is kept under sha256 %s]\n%s",
		head, b.Size-int64(len(head)+len(tail)), b.Size, b.SHA256, tail), nil
}

// cutOff is the error of a blob that ends too soon.
func cutOff(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return messages.Refuse(messages.Damaged, "it ends too soon")
	}
	return err
}

// wholeRunes is b without the beginning of a character at its end.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// fromRune is b without the rest of a character at its beginning.
func fromRune(b []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// The kinds of model.failed for a request that cannot be made, because what it
// would show is not there.
const (
	blobMissing = "blob_missing"
	blobDamaged = "blob_damaged"
)

// unread says why a blob cannot be shown: with its place and what to do, if it is
// gone for good.
func (s *shelf) unread(ctx context.Context, a messages.AgentID, b messages.Blob, err error) *providers.Error {
	if ctx.Err() != nil {
		return providers.AsError(ctx.Err())
	}
	var noMemory *providers.Error
	if errors.As(err, &noMemory) {
		return noMemory
	}
	kind, how := providers.ErrorKind(blobMissing), "is not stored any more"
	switch messages.AsError(err).Code {
	case messages.NotFound:
	case messages.Damaged:
		kind, how = blobDamaged, "is damaged ("+err.Error()+")"
	default:
		return &providers.Error{Kind: providers.Network, Temporary: true, Err: err,
			Message: fmt.Sprintf("blob %s cannot be read now: %v", b.SHA256, err)}
	}
	where, deleted := s.place(ctx, a, b)
	if deleted && kind == blobMissing {
		return &providers.Error{Kind: kind, Err: err, Message: fmt.Sprintf(
			"blob %s (%d bytes) is not stored any more: agent %s was deleted, and its blobs with it", b.SHA256, b.Size, a)}
	}
	return &providers.Error{Kind: kind, Err: err, Message: fmt.Sprintf(
		"blob %s (%d bytes), which %s names, %s: put it back from a backup, then resume the turn; or clear the agent, which forgets it",
		b.SHA256, b.Size, where, how)}
}

// placeLimit is how long the place of a lost blob is looked for.
const placeLimit = 10 * time.Second

// place is the event that names a blob, for a person; deleted says that it was
// deleted with all that was before the agent's tombstone.
func (s *shelf) place(ctx context.Context, a messages.AgentID, b messages.Blob) (where string, deleted bool) {
	ctx, cancel := context.WithTimeout(ctx, placeLimit)
	defer cancel()
	for rec, err := range s.log.Read(ctx, a, 0) {
		if err != nil {
			break
		}
		deleted = deleted || eventlog.Ends(rec.Frame)
		for i, ev := range rec.Frame.Events {
			for _, named := range messages.BlobsOf(ev) {
				if named.SHA256 == b.SHA256 {
					return fmt.Sprintf("event %d (%s) of %s", rec.Frame.First+messages.EventNumber(i), eventText(ev), a), false
				}
			}
		}
	}
	return "the history of " + a.String(), deleted
}

// eventText names an event whose payload may be a blob.
func eventText(ev messages.Event) string {
	if call := messages.CallOf(ev); call != "" {
		return ev.EventType() + " of call " + string(call)
	}
	if inputs := messages.InputsOf(ev); len(inputs) == 1 && messages.Is(ev.EventType(), messages.JoinsTurn) {
		return fmt.Sprintf("%s of input %q", ev.EventType(), inputs[0])
	}
	return ev.EventType()
}

// cacheSize is how many bytes of what models are shown are kept at hand.
const cacheSize = 64 << 20

// cache keeps the texts that were used last, as many as fit into cacheSize. The
// zero value is ready. Safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	size  int
	order list.List // of *shownText, the newest first
	texts map[shownKey]*list.Element
}

type shownKey struct {
	agent messages.AgentID
	hash  messages.Digest
	most  int
}

type shownText struct {
	key  shownKey
	text string
}

func (c *cache) get(key shownKey) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.texts[key]
	if e == nil {
		return "", false
	}
	c.order.MoveToFront(e)
	return e.Value.(*shownText).text, true
}

// put keeps a text, unless it would take more than a quarter of the room.
func (c *cache) put(key shownKey, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(text) > cacheSize/4 || c.texts[key] != nil {
		return
	}
	if c.texts == nil {
		c.texts = make(map[shownKey]*list.Element)
	}
	c.texts[key] = c.order.PushFront(&shownText{key, text})
	for c.size += len(text); c.size > cacheSize; {
		oldest := c.order.Remove(c.order.Back()).(*shownText)
		delete(c.texts, oldest.key)
		c.size -= len(oldest.text)
	}
}

// showAtMost is how much of a blob a model is shown by the definition.
func (d Definition) showAtMost() int {
	if d.ShowAtMost == 0 {
		return projections.DefaultShow
	}
	return d.ShowAtMost
}
