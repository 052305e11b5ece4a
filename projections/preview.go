package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// ItemsWith is Items with the given inputs, which wait, as if a model call had
// let them in. It is on the terms of Items.
func (h *History) ItemsWith(inputs []string) []messages.Item {
	items := slices.Clip(h.Items())
	for _, id := range inputs {
		if i := slices.IndexFunc(h.waiting, func(w waitingInput) bool { return w.id == id }); i >= 0 {
			items = append(items, userItem(h.waiting[i].content))
		}
	}
	return items
}
