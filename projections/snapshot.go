package projections

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// Clone returns a copy that events applied to h do not change. It shares with h what neither
// changes: the texts and the items.
func (h *History) Clone() *History {
	c := *h
	c.entries, c.waiting, c.open = slices.Clone(h.entries), slices.Clone(h.waiting), slices.Clone(h.open)
	c.shown = nil
	return &c
}

// storedHistory is a History in its binary form. Most of what entries hold is in
// Packed, entry by entry:
//
//	1 byte   form, mark << 3, and sameTurn if the turn is that of the entry before
//	varint   event number, less the one before
//	text     turn, unless sameTurn
//	text     call, of a result
//	text     of all forms but whole
//
// A text has its length before it, as a uvarint. An item that is nothing but a call
// has the form plainCall and four texts: call, name, arguments, the provider's id.
// Other entries of form whole take the next of Items.
type storedHistory struct {
	Entries int             `json:"entries"`
	Packed  []byte          `json:"packed"`
	Items   []messages.Item `json:"items"`
	Waiting []storedInput   `json:"waiting"`
	Open    []storedCall    `json:"open"`
	Size    int             `json:"size"`
	// Compacted and Omitted are about the first entry, Continued about the newest turn.
	Compacted messages.EventNumber `json:"compacted"`
	Omitted   int                  `json:"omitted"`
	Continued []messages.TurnID    `json:"continued"`
	// The last Withheld of the entries are those of the turn Removed.
	Withheld int                  `json:"withheld"`
	Removed  messages.TurnID      `json:"removed"`
	Gone     []string             `json:"gone"` // names of calls
	Accepted messages.EventNumber `json:"accepted"`
	Refused  messages.EventNumber `json:"refused"`
	Digested int                  `json:"digested"`
	Sum      []byte               `json:"sum"`
}

type storedInput struct {
	ID      string           `json:"id"`
	Content messages.Content `json:"content"`
}

type storedCall struct {
	Turn  messages.TurnID `json:"turn"`
	Index int             `json:"index"`
}

const (
	formBits = 3
	sameTurn = 1 << 7
)

// plainCall is a form of binary histories only: one that is read holds the item.
const plainCall = developerText + 1

// isPlainCall reports whether an item is a call without anything that few calls have.
func isPlainCall(item *messages.Item) bool {
	return item.Type == messages.ItemCall && item.Role == "" && item.Content == nil && item.Output == "" &&
		item.Raw == nil && item.Provider == "" && item.Model == "" && !item.HasBlob()
}

// MarshalBinary writes the history for UnmarshalBinary of the same build.
func (h *History) MarshalBinary() ([]byte, error) {
	var removed withheld
	if h.removed != nil {
		removed = *h.removed
	}
	entries := slices.Concat(h.entries, removed.entries)
	s := storedHistory{
		Entries: len(entries), Size: h.size, Compacted: h.compacted, Omitted: h.omitted, Continued: h.continued,
		Withheld: len(removed.entries), Removed: removed.turn, Gone: removed.calls, Accepted: h.accepted, Refused: h.refused, Digested: h.digested, Sum: h.sum[:],
	}
	var turn messages.TurnID
	var last messages.EventNumber
	s.Packed = make([]byte, 0, h.packed())
	for i := range entries {
		e := &entries[i]
		plain := e.form == whole && isPlainCall(e.item)
		head := byte(e.form) | byte(e.mark)<<formBits
		if plain {
			head |= byte(plainCall)
		}
		if e.turn == turn {
			head |= sameTurn
		}
		s.Packed = binary.AppendVarint(append(s.Packed, head), int64(e.n)-int64(last))
		if e.turn != turn {
			s.Packed = packText(s.Packed, string(e.turn))
		}
		turn, last = e.turn, e.n
		switch {
		case plain:
			for _, text := range [...]string{string(e.item.CallID), e.item.Name, e.item.Arguments, e.item.ID} {
				s.Packed = packText(s.Packed, text)
			}
			continue
		case e.form == whole:
			s.Items = append(s.Items, *e.item)
			continue
		case e.form == result:
			s.Packed = packText(s.Packed, string(e.call))
		}
		s.Packed = packText(s.Packed, e.text)
	}
	for _, w := range h.waiting {
		s.Waiting = append(s.Waiting, storedInput{w.id, w.content})
	}
	for _, o := range h.open {
		s.Open = append(s.Open, storedCall{o.turn, o.index})
	}
	return messages.Pack(&s)
}

// packed estimates how many bytes the entries take. It is not their size: a blob is shown and
// not held.
func (h *History) packed() int {
	n := 16 * len(h.entries)
	for i := range h.entries {
		n += len(h.entries[i].text) + len(h.entries[i].call)
	}
	return n
}

func packText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// errHistory is the error of bytes that are no history.
var errHistory = errors.New("the bytes hold no history")

// UnmarshalBinary reads what MarshalBinary has written. An error leaves h as it
// was.
func (h *History) UnmarshalBinary(b []byte) error {
	var s storedHistory
	if err := messages.Unpack(b, &s); err != nil {
		return err
	}
	n := History{
		size: s.Size, compacted: s.Compacted, omitted: s.Omitted, continued: s.Continued, digested: s.Digested,
		accepted: s.Accepted, refused: s.Refused,
	}
	if s.Withheld < 0 || s.Withheld > s.Entries || s.Digested < 0 || s.Digested > s.Entries-s.Withheld || s.Size < 0 || copy(n.sum[:], s.Sum) != sha256.Size {
		return errHistory
	}
	if err := n.unpack(&s); err != nil {
		return err
	}
	for _, w := range s.Waiting {
		n.waiting = append(n.waiting, waitingInput{w.ID, w.Content})
	}
	if s.Removed != "" || s.Withheld > 0 || len(s.Gone) > 0 {
		n.removed = &withheld{turn: s.Removed, calls: s.Gone}
	}
	if at := s.Entries - s.Withheld; s.Withheld > 0 {
		n.removed.entries = slices.Clone(n.entries[at:])
		if n.entries = n.entries[:at:at]; at == 0 {
			n.entries = nil
		}
	}
	for _, o := range s.Open {
		if o.Index < 0 || o.Index >= len(n.entries) || n.entries[o.Index].form != result {
			return errHistory
		}
		n.open = append(n.open, openCall{o.Turn, n.entries[o.Index].call, o.Index})
	}
	*h = n
	return nil
}

// unpack reads the entries.
func (h *History) unpack(s *storedHistory) error {
	if s.Entries < 0 || s.Entries > len(s.Packed) {
		return errHistory
	}
	if s.Entries > 0 {
		h.entries = make([]entry, s.Entries)
	}
	r, items, call := packedReader{b: s.Packed}, s.Items, &messages.Item{}
	var turn messages.TurnID
	var last messages.EventNumber
	for i := range h.entries {
		e := &h.entries[i]
		head := r.byte()
		e.form, e.mark = form(head&(1<<formBits-1)), mark(head&^sameTurn>>formBits)
		if e.form > plainCall || e.mark > noted {
			return errHistory
		}
		last += messages.EventNumber(r.varint())
		if head&sameTurn == 0 {
			turn = messages.TurnID(r.text())
		}
		e.n, e.turn = last, turn
		switch e.form {
		case whole:
			if len(items) == 0 {
				return errHistory
			}
			item := items[0] // on its own: it may outlive the others
			e.item, items = &item, items[1:]
			continue
		case plainCall:
			call = r.call(call)
			e.form, e.item = whole, call
			continue
		case result:
			e.call = messages.CallID(r.text())
		}
		e.text = r.text()
	}
	if r.short || len(r.b) > 0 || len(items) > 0 {
		return errHistory
	}
	return nil
}

// packedReader reads from the front of b. Past its end it returns zeros, and is short.
type packedReader struct {
	b     []byte
	short bool
}

func (r *packedReader) byte() byte {
	if len(r.b) == 0 {
		r.short = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *packedReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.short, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// call reads a plain call. One with the name of the call before it shares its string.
func (r *packedReader) call(before *messages.Item) *messages.Item {
	item := &messages.Item{Type: messages.ItemCall, CallID: messages.CallID(r.text()), Name: r.text(), Arguments: r.text(), ID: r.text()}
	if item.Name == before.Name {
		item.Name = before.Name
	}
	return item
}

func (r *packedReader) text() string {
	size, n := binary.Uvarint(r.b)
	if n <= 0 || size > uint64(len(r.b)-n) {
		r.short, r.b = true, nil
		return ""
	}
	text := string(r.b[n : n+int(size)])
	r.b = r.b[n+int(size):]
	return text
}

// MarshalBinary writes the state for UnmarshalBinary: no bytes if no patch has
// come, else its canonical form.
func (s *State) MarshalBinary() ([]byte, error) {
	if !s.patched {
		return []byte{}, nil // nil would be read as no state at all
	}
	return s.JSON(), nil
}

// UnmarshalBinary reads what MarshalBinary has written. An error leaves s as it
// was.
func (s *State) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		*s = State{}
		return nil
	}
	value, ok := decodeJSON(b)
	if !ok {
		return errors.New("the bytes hold no JSON")
	}
	*s = State{value, true}
	return nil
}
