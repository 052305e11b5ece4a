package projections

import "github.com/reprise-dev/reprise/messages"

// Bytes returns how many bytes of payload the history holds in memory, by walking all of it.
// Unlike [History.Size] it counts images and what only a provider reads, and no blobs.
func (h *History) Bytes() int {
	held := bytesOf(h.entries)
	if h.removed != nil {
		held += bytesOf(h.removed.entries)
	}
	for i := range h.waiting {
		held += ContentBytes(h.waiting[i].content)
	}
	return held
}

func bytesOf(entries []entry) (held int) {
	for i := range entries {
		held += len(entries[i].text)
		if item := entries[i].item; item != nil {
			held += len(item.Arguments) + len(item.Output) + len(item.Raw) + ContentBytes(item.Content)
		}
	}
	return held
}

// ContentBytes returns how many bytes of c are in memory: its texts and images that are no blobs.
func ContentBytes(c messages.Content) (held int) {
	for i := range c {
		held += len(c[i].Text) + len(c[i].ImageURL)
	}
	return held
}
