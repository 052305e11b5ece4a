package projections

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/reprise-dev/reprise/messages"
)

// MaxSummarized is the most bytes of one item that a summary is made of.
const MaxSummarized = 8 << 10

// Cut is where a compaction may drop the older part of a history.
type Cut struct {
	// Upto is the newest event of that part. Zero: nothing can go.
	Upto messages.EventNumber
	// Dropped is how many items go, beside the message in place of those that went before,
	// Kept how many stay, Size how many bytes less a model is shown.
	Dropped, Kept, Size int
	// Summarized is how many bytes a summary of it is made of.
	Summarized int
	// Digest is the hash of what goes.
	Digest messages.Digest
}

// Cut returns what can go if so many of the newest items, at least one, are to
// stay: all before the newest turn that can stay whole or, where that is less than
// half of what could go, all before one of its steps. A call and its result are never parted, nor are the
// items of one answer. Inputs of a turn that is cut through stay. A model is shown at
// most so many bytes of each blob, as in [History.SizeShown].
func (h *History) Cut(keep, most int) Cut {
	at := h.cutAt(len(h.entries) - max(keep, 1))
	if at == 0 {
		return Cut{}
	}
	c := Cut{Upto: upto(h.entries[h.standIn():at])}
	if h.prefix(c.Upto) != at {
		return Cut{} // a log from elsewhere
	}
	var sum [sha256.Size]byte
	part := make([]messages.Part, 1)
	turn := h.entries[at].turn
	for i := range at {
		e := &h.entries[i]
		item := e.asItem(part)
		sum = chain(sum, item)
		if i < h.standIn() { // the next one replaces it, and is made of all of it
			c.Summarized += sizeOf(item)
			continue
		}
		c.Summarized += min(sizeOf(item), MaxSummarized)
		if !h.staysIn(e, turn) {
			c.Size += sizeOf(item) + moreShown(&item, most)
		}
	}
	if c.Dropped, c.Kept = h.Drops(c.Upto); c.Dropped == 0 {
		return Cut{}
	}
	c.Digest = messages.Digest(hex.EncodeToString(sum[:]))
	return c
}

// cutAt returns the last entry, no later than most, that can be the first to stay; 0: none.
func (h *History) cutAt(most int) int {
	step, turn, open := 0, 0, 0
	size, stays, toStep, toTurn := 0, 0, 0, 0 // in bytes; stays is the inputs of the turn at hand
	first := h.standIn()
	for i := first; i < len(h.entries) && i <= most; i++ {
		e := &h.entries[i]
		if e.n == 0 {
			break // a result that has not come
		}
		if i > first && open == 0 && e.n != h.entries[i-1].n && e.n > upto(h.entries[max(i-maxCalls, first):i]) {
			step, toStep = i, size-stays
			if !h.together(e.turn, h.entries[i-1].turn) {
				turn, toTurn, stays, toStep = i, size, 0, size
			}
		}
		switch {
		case e.form == result || e.form == whole && e.item.Type == messages.ItemCallOutput:
			open--
		case e.form == whole && e.item.Type == messages.ItemCall:
			open++
		}
		if size += e.size(); h.staysIn(e, e.turn) {
			stays += e.size()
		}
	}
	if 2*toTurn >= toStep {
		return turn
	}
	return step
}

// maxCalls is how many entries back the newest event before an item is searched: results are in
// the order of their calls, not of their events.
const maxCalls = 256

func upto(entries []entry) messages.EventNumber {
	newest := messages.EventNumber(0)
	for i := range entries {
		newest = max(newest, entries[i].n)
	}
	return newest
}

// staysIn reports whether the entry is an input of the turn, or of one that it continues: it
// stays where that turn is cut through.
func (h *History) staysIn(e *entry, turn messages.TurnID) bool {
	if !h.together(e.turn, turn) {
		return false
	}
	return e.form == userText || e.form == whole && e.item.Type == messages.ItemMessage && e.item.Role == messages.RoleUser
}

// standIn returns 1 if the first entry stands for others, which went before: it goes with what
// follows it, though its event may be a later one. Else it returns 0.
func (h *History) standIn() int {
	if h.compacted != 0 && len(h.entries) > 0 && h.entries[0].n == h.compacted {
		return 1
	}
	return 0
}

// prefix returns how many entries stand for events up to n alone.
func (h *History) prefix(n messages.EventNumber) int {
	at := h.standIn()
	for at < len(h.entries) && h.entries[at].n != 0 && h.entries[at].n <= n {
		at++
	}
	return at
}

// Before returns the items that stand for events up to n, oldest first, on the terms of
// [History.Items].
func (h *History) Before(n messages.EventNumber) []messages.Item {
	return extend(nil, h.entries[:h.prefix(n)])
}

// DigestBefore returns Cut.Digest of the items that stand for events up to n.
func (h *History) DigestBefore(n messages.EventNumber) messages.Digest {
	var sum [sha256.Size]byte
	part := make([]messages.Part, 1)
	for i := range h.prefix(n) {
		sum = chain(sum, h.entries[i].asItem(part))
	}
	return messages.Digest(hex.EncodeToString(sum[:]))
}

// Drops returns Cut.Dropped and Cut.Kept of a compaction up to event n.
func (h *History) Drops(n messages.EventNumber) (dropped, kept int) {
	at := h.prefix(n)
	kept = h.Len()
	for i := range at {
		if at < len(h.entries) && h.staysIn(&h.entries[i], h.entries[at].turn) {
			continue
		}
		if kept--; h.entries[i].n != h.compacted {
			dropped++
		}
	}
	return dropped, kept
}

// Omitted returns how many items are not shown any more, because a message stands for them.
func (h *History) Omitted() int { return h.omitted }

// compact folds event number n.
func (h *History) compact(n messages.EventNumber, ev messages.HistoryCompacted) {
	at := h.prefix(ev.Upto)
	turn := messages.TurnID("")
	if at < len(h.entries) {
		turn = h.entries[at].turn
	}
	old := h.entries
	h.replace(make([]entry, 0, len(old)-at+1))
	h.size = 0
	h.add(n, "", messages.Text(messages.RoleDeveloper, ev.Text))
	for i := range old {
		e := &old[i]
		if i < at && (turn == "" || !h.staysIn(e, turn)) {
			if e.n != h.compacted {
				h.omitted++
			}
			continue
		}
		h.entries = append(h.entries, *e)
		h.size += e.size()
	}
	gone := len(old) - len(h.entries)
	for i := range h.open {
		h.open[i].index -= gone
	}
	h.compacted = n
}
