package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// withheld are the entries that a model is not shown, because its server refused them when
// a turn failed. They come back if that turn is resumed.
type withheld struct {
	turn    messages.TurnID
	entries []entry
}

// Refused returns what was new in the last request of a turn whose model refused it: the items
// of the turn since the newest answer of any model, and the first event of them. If the turn
// before was refused as well and no model has answered since, that answer is part of it.
// Without such items since is 0.
func (h *History) Refused(turn messages.TurnID) (since messages.EventNumber, items []messages.Item) {
	again := h.refused > h.accepted
	for i := range h.entries {
		e := &h.entries[i]
		if e.n < h.accepted || e.n == 0 || i < h.standIn() || !again && !h.together(e.turn, turn) {
			continue
		}
		if since == 0 || e.n < since {
			since = e.n
		}
		items = append(items, e.asItem(make([]messages.Part, 1)))
	}
	return since, items
}

// withhold takes out what the failed turn's server refused, and puts a note in its place.
func (h *History) withhold(n messages.EventNumber, ev messages.TurnFailed) {
	if ev.Withheld == 0 || len(h.open) > 0 { // the turn machine leaves no call open
		return
	}
	h.refused = n
	h.removed = withheld{turn: ev.Turn}
	kept := make([]entry, 0, len(h.entries)+1)
	for i := range h.entries {
		e := &h.entries[i]
		if i < h.standIn() || e.n < ev.Withheld || e.mark == noted {
			kept = append(kept, *e)
			continue
		}
		h.removed.entries = append(h.removed.entries, *e)
		h.size -= sizeOf(e.asItem(make([]messages.Part, 1)))
	}
	h.replace(kept)
	if ev.Note != "" {
		h.say(n, ev.Turn, messages.RoleDeveloper, ev.Note)
		h.entries[len(h.entries)-1].mark = noted
	}
}

// restore brings back what was withheld of the turn that now goes on, in place of its note.
// Any other turn begins without it.
func (h *History) restore(turn messages.TurnID) {
	back := h.removed
	h.removed = withheld{}
	if turn == "" || back.turn != turn {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(h.entries), func(e entry) bool {
		gone := e.mark == noted && e.turn == turn
		if gone {
			h.size -= len(e.text)
		}
		return gone
	})
	for _, e := range back.entries {
		h.size += sizeOf(e.asItem(make([]messages.Part, 1)))
		kept = append(kept, e)
	}
	h.replace(kept)
}

// replace puts other entries in the place of all. None of them waits for a result.
func (h *History) replace(entries []entry) {
	h.entries, h.shown, h.digested, h.sum = entries, nil, 0, [len(h.sum)]byte{}
}
