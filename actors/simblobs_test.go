package actors_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// texts holds all blobs that nodes tried to store, also those deleted since.
type texts struct {
	mu      sync.Mutex
	of      map[messages.Digest]string
	removed map[messages.AgentID]bool // agents whose blobs were removed
}

func newTexts() *texts {
	return &texts{of: make(map[messages.Digest]string), removed: make(map[messages.AgentID]bool)}
}

func (t *texts) record(r io.ReadSeeker) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[messages.DigestOf(b)] = string(b)
	_, err = r.Seek(0, io.SeekStart)
	return err
}

func (t *texts) read(b messages.Blob) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, ok := t.of[b.SHA256]
	if !ok || int64(len(text)) != b.Size {
		return "", fmt.Errorf("no node stored blob %s", b.SHA256)
	}
	return text, nil
}

// RemoveBlobs records that blobs were removed, and removes them.
func (h *host) RemoveBlobs(ctx context.Context, a messages.AgentID, upto uint64, hashes ...messages.Digest) error {
	t := h.w.texts
	t.mu.Lock()
	t.removed[a] = true
	t.mu.Unlock()
	return h.Store.RemoveBlobs(ctx, a, upto, hashes...)
}

// PutBlob stores a blob, or loses the request or the answer.
func (h *host) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	w := h.w
	if err := w.texts.record(r); err != nil {
		return messages.Blob{}, err
	}
	if w.faultless() {
		return h.Store.PutBlob(ctx, a, r)
	}
	dice := w.dice("blob", w.reads.Add(1))
	fate := dice.IntN(8)
	if fate == 0 {
		return messages.Blob{}, errNoConnection
	}
	if fate < 3 {
		select {
		case <-time.After(time.Duration(dice.IntN(3000)) * time.Millisecond):
		case <-ctx.Done():
			return messages.Blob{}, ctx.Err()
		}
	}
	b, err := h.Store.PutBlob(ctx, a, r)
	if fate == 3 {
		return messages.Blob{}, errNoConnection
	}
	return b, err
}

// Blob reads a blob, or fails.
func (h *host) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	if h.unreadable() {
		return nil, errNoConnection
	}
	return h.Store.Blob(ctx, a, b)
}

// checkBlobs checks that a blob is stored before a frame that names it. A frame of a replaced
// owner may name blobs that a delete has removed since.
func (h *host) checkBlobs(e eventlog.Entry) {
	h.w.texts.mu.Lock()
	removed := h.w.texts.removed[e.Agent]
	h.w.texts.mu.Unlock()
	for _, ev := range e.Frame.Events {
		for _, b := range messages.BlobsOf(ev) {
			if _, err := readBlob(prefix.New(h.w.stage.Store()), e.Agent, b); err != nil && !removed {
				h.w.mu.Lock()
				h.w.fail("%s: %s names blob %s, which is not stored: %v", e.Agent, ev.EventType(), b.SHA256, err)
				h.w.mu.Unlock()
			}
		}
	}
}

func readBlob(store eventlog.Blobs, a messages.AgentID, b messages.Blob) (string, error) {
	r, err := store.Blob(context.Background(), a, b)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	bytes, err := io.ReadAll(r)
	return string(bytes), err
}

// whole returns an event with its payloads. An event that names a blob must not contain its
// text as well.
func (v *view) whole(n messages.EventNumber, ev messages.Event) messages.Event {
	whole, err := messages.Whole(ev, func(b messages.Blob, _ messages.BlobForm) (string, error) { return v.store.read(b) })
	if err != nil {
		v.fail(n, "%v", err)
		return ev
	}
	if left := messages.WithoutBlobs(ev); len(messages.BlobsOf(ev)) > 0 && len(fmt.Sprint(left)) > len(fmt.Sprint(messages.WithoutBlobs(whole)))-minKept {
		v.fail(n, "%s names a blob and contains its text as well", ev.EventType())
	}
	return whole
}

// minKept is the smallest payload that is offloaded.
const minKept = 1 << 10

// shownItems returns the history as a model must be given it.
func (v *view) shownItems() []messages.Item {
	items := v.state.History.Items()
	for i := range items {
		if !items[i].HasBlob() {
			continue
		}
		items = append([]messages.Item(nil), items...)
		item, err := items[i].Whole(func(b messages.Blob, _ messages.BlobForm) (string, error) {
			text, err := v.store.read(b)
			return shownText(text, b, v.most), err
		})
		if err != nil {
			v.fail(v.state.Last, "%v", err)
		}
		items[i] = item
	}
	return items
}

// shownText returns what a model is given of an ASCII text that is stored as a blob.
func shownText(text string, b messages.Blob, most int) string {
	if most == 0 {
		most = projections.DefaultShow
	}
	if len(text) <= most {
		return text
	}
	head, tail := text[:most-most/4], text[len(text)-most/4:]
	return strings.Join([]string{head, fmt.Sprintf("[%d bytes are left out here; the whole, %d bytes, is kept under sha256 %s]",
		len(text)-most, len(text), b.SHA256), tail}, "\n")
}
