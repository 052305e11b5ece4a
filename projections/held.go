package projections

import "github.com/reprise-dev/reprise/messages"

// Held returns how many bytes of payload the history holds in memory, by walking all of it.
// Unlike [History.Size] it counts images and what only a provider reads, and no blobs.
func (h *History) Held() int {
	held := heldBy(h.entries)
	if h.removed != nil {
		held += heldBy(h.removed.entries)
	}
	for i := range h.waiting {
		held += Held(h.waiting[i].content)
	}
	return held
}

func heldBy(entries []entry) (held int) {
	for i := range entries {
		held += len(entries[i].text)
		if item := entries[i].item; item != nil {
			held += len(item.Arguments) + len(item.Output) + len(item.Raw) + Held(item.Content)
		}
	}
	return held
}

// Held returns how many bytes of c are in memory: its texts and images that are no blobs.
func Held(c messages.Content) (held int) {
	for i := range c {
		held += len(c[i].Text) + len(c[i].ImageURL)
	}
	return held
}
