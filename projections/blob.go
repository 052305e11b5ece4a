package projections

import (
	"fmt"
	"iter"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// DefaultShow is how much of a blob a model is shown if its definition does not
// say, in bytes.
const DefaultShow = 1 << 20

// sizeOfBlob returns how many bytes of a blob a model is shown by default; 0 for none.
func sizeOfBlob(b *messages.Blob) int {
	if b == nil {
		return 0
	}
	return int(min(b.Size, DefaultShow))
}

// Texts that are kept as blobs take at most ShowInAll bytes of a request, or as
// many as one of them may; of each of those beyond that, the oldest ones, a model is
// shown ShowBriefly. An agent may move more through its tools than a node has memory.
const (
	ShowInAll   = 32 << 20
	ShowBriefly = 4 << 10
)

// SizeShown returns Size where a model is shown at most so many bytes of each blob, 0 for the
// default, and of all of them as much as a request shows. Unlike Size it walks the history from
// its first blob on, if most is not the default or there is much to show.
func (h *History) SizeShown(most int) int {
	if most == 0 {
		most = DefaultShow
	}
	inAll := max(ShowInAll, most)
	if most == DefaultShow && h.size <= inAll || !h.HasBlobs() {
		return h.size
	}
	size, left := h.size, int64(inAll)
	blobs := h.entries[h.plain:]
	for i := range slices.Backward(blobs) {
		e := &blobs[i]
		for b := range textsOf(e.item) {
			size += shownOf(b, most)
			left -= min(b.Size, int64(most))
		}
		if left >= 0 {
			continue
		}
		for b := range textsOf(e.item) {
			size -= int(min(b.Size, int64(most)) - min(b.Size, int64(min(most, ShowBriefly))))
		}
	}
	return size
}

// HasBlobs reports whether an item refers to a blob. Each item is looked at once.
func (h *History) HasBlobs() bool {
	for h.plain < len(h.entries) {
		if item := h.entries[h.plain].item; item != nil && item.HasBlob() {
			return true
		}
		h.plain++
	}
	return false
}

// textsOf yields the blobs of an item whose text is shown; nil has none.
func textsOf(item *messages.Item) iter.Seq[*messages.Blob] {
	return func(yield func(*messages.Blob) bool) {
		if item == nil || item.Blob != nil && !yield(item.Blob) {
			return
		}
		for i := range item.Content {
			if p := &item.Content[i]; p.Type == "text" && p.Blob != nil && !yield(p.Blob) {
				return
			}
		}
	}
}

// moreShown returns how many bytes of an item's blobs a model is shown beyond the default.
func moreShown(item *messages.Item, most int) (size int) {
	if most == 0 {
		return 0
	}
	for b := range textsOf(item) {
		size += shownOf(b, most)
	}
	return size
}

// shownOf returns how many bytes of a blob a model is shown beyond the default.
func shownOf(b *messages.Blob, most int) int {
	return int(min(b.Size, int64(most))) - sizeOfBlob(b)
}

// blobText returns a blob as a person reads it.
func blobText(b *messages.Blob) string {
	return fmt.Sprintf("%d bytes, kept as blob %s", b.Size, b.SHA256)
}
