package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// withheld are the entries that a model is not shown, because its server refused them when
// a turn failed. They come back if that turn is resumed. It never changes.
type withheld struct {
	turn    messages.TurnID
	entries []entry
	calls   []string // names of the calls among entries that do not come back
}

// Refusing reports whether items were withheld and no model has answered since.
func (h *History) Refusing() bool { return h.refused > h.accepted }

// Refused returns what was new in the last request of a turn whose model refused it: the items
// of the turn since the newest answer of any model, and the first event of them. While
// [History.Refusing], that answer and all that came after it is part of it, and calls are the
// names of the tool calls that were withheld before. Without such items since is 0.
func (h *History) Refused(turn messages.TurnID) (since messages.EventNumber, items []messages.Item, calls []string) {
	for i := range h.entries {
		e := &h.entries[i]
		if e.n < h.accepted || e.n == 0 || i < h.standIn() || !h.Refusing() && !h.together(e.turn, turn) {
			continue
		}
		if since == 0 || e.n < since {
			since = e.n
		}
		items = append(items, e.asItem(make([]messages.Part, 1)))
	}
	if h.removed != nil {
		calls = slices.Clone(h.removed.calls)
	}
	return since, items, calls
}

// withhold replaces what the failed turn's server refused, and the notes of turns before, by one
// note.
func (h *History) withhold(n messages.EventNumber, ev messages.TurnFailed) {
	if ev.Withheld == 0 || len(h.open) > 0 { // the turn machine leaves no call open
		return
	}
	h.refused = n
	now := &withheld{turn: ev.Turn}
	if h.removed != nil {
		now.calls = h.removed.calls
	}
	h.removed = now
	kept := make([]entry, 0, len(h.entries)+1)
	for i := range h.entries {
		e := &h.entries[i]
		if i < h.standIn() || e.n < ev.Withheld {
			kept = append(kept, *e)
			continue
		}
		now.entries = append(now.entries, *e)
		h.size -= e.size()
	}
	h.replace(kept)
	if ev.Note != "" {
		h.say(n, ev.Turn, messages.RoleDeveloper, ev.Note)
		h.entries[len(h.entries)-1].mark = noted
	}
}

// restore brings back what was withheld of the turn that is resumed, in place of its note. Any
// other turn begins without it.
func (h *History) restore(turn messages.TurnID) {
	back := h.removed
	if back == nil {
		return
	}
	resumed := turn != "" && back.turn == turn
	calls := slices.Clip(back.calls)
	for i := range back.entries {
		if item := back.entries[i].item; !resumed && item != nil && item.Type == messages.ItemCall {
			calls = append(calls, item.Name)
		}
	}
	if h.removed = nil; len(calls) > 0 {
		h.removed = &withheld{calls: calls}
	}
	if !resumed {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(h.entries), func(e entry) bool {
		gone := e.mark == noted && e.turn == turn
		if gone {
			h.size -= e.size()
		}
		return gone
	})
	for _, e := range back.entries {
		h.size += e.size()
	}
	h.replace(append(kept, back.entries...))
}

// replace replaces all entries, and drops what was made of the old ones.
func (h *History) replace(entries []entry) {
	h.entries, h.shown, h.plain, h.digested, h.sum = entries, nil, 0, 0, [len(h.sum)]byte{}
}
