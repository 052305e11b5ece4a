package projections

import (
	"fmt"

	"github.com/reprise-dev/reprise/messages"
)

// DefaultShow is how much of a blob a model is shown if its definition does not
// say, in bytes.
const DefaultShow = 1 << 20

// sizeOfBlob is what a model is shown of a blob by default; 0 for none.
func sizeOfBlob(b *messages.Blob) int {
	if b == nil {
		return 0
	}
	return int(min(b.Size, DefaultShow))
}

// SizeShown is Size where a model is shown at most so many bytes of each blob; 0
// is the default. Unlike Size it is counted, if most is another.
func (h *History) SizeShown(most int) int {
	size := h.size
	if most == 0 || most == DefaultShow {
		return size
	}
	for i := range h.entries {
		if item := h.entries[i].item; item != nil {
			size += moreShown(item, most)
		}
	}
	return size
}

// moreShown is what a model is shown of an item's blobs beyond what it is by
// default.
func moreShown(item *messages.Item, most int) (size int) {
	if most == 0 || !item.HasBlob() {
		return 0
	}
	size = shownOf(item.Blob, most)
	for _, p := range item.Content {
		if p.Type == "text" {
			size += shownOf(p.Blob, most)
		}
	}
	return size
}

// shownOf is what a model is shown of a blob beyond what it is by default.
func shownOf(b *messages.Blob, most int) int {
	if b == nil {
		return 0
	}
	return int(min(b.Size, int64(most))) - sizeOfBlob(b)
}

// blobText names a blob for a person.
func blobText(b *messages.Blob) string {
	return fmt.Sprintf("%d bytes, kept as blob %s", b.Size, b.SHA256)
}
