package projections

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/reprise-dev/reprise/messages"
)

// storedHistory is what the binary form of a History begins with, after its length. Behind it
// are the entries, then those that are withheld:
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
	Items   []messages.Item `json:"items"`
	Waiting []storedInput   `json:"waiting"`
	Open    []storedCall    `json:"open"`
	Size    int             `json:"size"`
	// Compacted and Omitted are about the first entry, Continued about the newest turn.
	Compacted messages.EventNumber `json:"compacted"`
	Omitted   int                  `json:"omitted"`
	Continued []messages.TurnID    `json:"continued"`
	// Withheld is how many entries of the turn Removed are withheld.
	Withheld int                  `json:"withheld"`
	Removed  messages.TurnID      `json:"removed"`
	Gone     []string             `json:"gone"` // names of calls
	Accepted messages.EventNumber `json:"accepted"`
	Refused  messages.EventNumber `json:"refused"`
	Digested int                  `json:"digested"`
	Sum      []byte               `json:"sum"`
	Baseline []byte               `json:"baseline,omitempty"` // binary, too
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
	s := storedHistory{
		Entries: len(h.entries), Size: h.size, Compacted: h.compacted, Omitted: h.omitted, Continued: h.continued,
		Withheld: len(removed.entries), Removed: removed.turn, Gone: removed.calls, Accepted: h.accepted, Refused: h.refused, Digested: h.digested, Sum: h.sum[:],
	}
	for _, w := range h.waiting {
		s.Waiting = append(s.Waiting, storedInput{w.id, w.content})
	}
	for _, o := range h.open {
		s.Open = append(s.Open, storedCall{o.turn, o.index})
	}
	size := 0 // of the entries, about
	for _, list := range [...][]entry{h.entries, removed.entries} {
		for i := range list {
			e := &list[i]
			size += 8 + len(e.text) + len(e.call)
			if i == 0 || e.turn != list[i-1].turn {
				size += len(e.turn)
			}
			switch {
			case e.form != whole:
			case isPlainCall(e.item):
				size += len(e.item.CallID) + len(e.item.Name) + len(e.item.Arguments) + len(e.item.ID)
			default:
				s.Items = append(s.Items, *e.item)
			}
		}
	}
	if h.baseline != nil {
		base, err := h.baseline.MarshalBinary()
		if err != nil {
			return nil, err
		}
		s.Baseline = base
	}
	head, err := messages.Pack(&s)
	if err != nil {
		return nil, err
	}
	b := packText(make([]byte, 0, len(head)+binary.MaxVarintLen64+size), string(head))
	return packEntries(packEntries(b, h.entries), removed.entries), nil
}

// packEntries appends the entries, but for whole items.
func packEntries(b []byte, entries []entry) []byte {
	var turn messages.TurnID
	var last messages.EventNumber
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
		b = binary.AppendVarint(append(b, head), int64(e.n)-int64(last))
		if e.turn != turn {
			b = packText(b, string(e.turn))
		}
		turn, last = e.turn, e.n
		switch {
		case plain:
			for _, text := range [...]string{string(e.item.CallID), e.item.Name, e.item.Arguments, e.item.ID} {
				b = packText(b, text)
			}
			continue
		case e.form == whole:
			continue
		case e.form == result:
			b = packText(b, string(e.call))
		}
		b = packText(b, e.text)
	}
	return b
}

func packText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// errHistory is the error of bytes that are no history.
var errHistory = errors.New("the bytes hold no history")

// UnmarshalBinary reads what MarshalBinary has written. An error leaves h as it
// was.
func (h *History) UnmarshalBinary(b []byte) error {
	size, width := binary.Uvarint(b)
	if width <= 0 || size > uint64(len(b)-width) {
		return errHistory
	}
	var s storedHistory
	b = b[width:]
	if err := messages.Unpack(b[:size], &s); err != nil {
		return err
	}
	n := History{
		size: s.Size, compacted: s.Compacted, omitted: s.Omitted, continued: s.Continued, digested: s.Digested,
		accepted: s.Accepted, refused: s.Refused,
	}
	r := entryReader{b: b[size:], items: s.Items}
	n.entries = r.entries(s.Entries)
	withheldOnes := r.entries(s.Withheld)
	if r.failed || len(r.b) > 0 || len(r.items) > 0 || s.Digested < 0 || s.Digested > s.Entries || s.Size < 0 || copy(n.sum[:], s.Sum) != sha256.Size {
		return errHistory
	}
	if s.Removed != "" || s.Withheld > 0 || len(s.Gone) > 0 {
		n.removed = &withheld{turn: s.Removed, entries: withheldOnes, calls: s.Gone}
	}
	for _, w := range s.Waiting {
		n.waiting = append(n.waiting, waitingInput{w.ID, w.Content})
	}
	for _, o := range s.Open {
		if o.Index < 0 || o.Index >= len(n.entries) || n.entries[o.Index].form != result {
			return errHistory
		}
		n.open = append(n.open, openCall{o.Turn, n.entries[o.Index].call, o.Index})
	}
	if len(s.Baseline) > 0 {
		n.baseline = new(History)
		if err := n.baseline.UnmarshalBinary(s.Baseline); err != nil {
			return err
		}
	}
	*h = n
	return nil
}

// entryReader reads from the front of b, and takes whole items from the front of items. Once it
// has failed, what it returns means nothing.
type entryReader struct {
	b      []byte
	items  []messages.Item
	block  string // the front of b
	failed bool
}

// blockSize is how many bytes a history that was read copies at a time: its texts are parts of
// these copies, and each that stays when others go keeps no more than its block in memory.
const blockSize = 4 << 10

// entries reads n entries.
func (r *entryReader) entries(n int) []entry {
	if n < 0 || n > len(r.b) { // each has a byte at least
		r.failed = true
		return nil
	}
	if n == 0 {
		return nil
	}
	entries := make([]entry, n)
	var turn messages.TurnID
	var last messages.EventNumber
	for i := range entries {
		e := &entries[i]
		head := r.byte()
		e.form, e.mark = form(head&(1<<formBits-1)), mark(head&^sameTurn>>formBits)
		last += messages.EventNumber(r.varint())
		if head&sameTurn == 0 {
			turn = messages.TurnID(r.text())
		}
		e.n, e.turn = last, turn
		switch {
		case e.mark > noted || e.form > plainCall || e.form == whole && len(r.items) == 0:
			r.failed = true
		case e.form == whole:
			item := r.items[0] // on its own: it may outlive the others
			e.item, r.items = &item, r.items[1:]
		case e.form == plainCall:
			e.form = whole
			e.item = &messages.Item{Type: messages.ItemCall, CallID: messages.CallID(r.text()), Name: r.text(), Arguments: r.text(), ID: r.text()}
		case e.form == result:
			e.call, e.text = messages.CallID(r.text()), r.text()
		default:
			e.text = r.text()
		}
		if r.failed {
			return nil
		}
	}
	return entries
}

func (r *entryReader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.skip(1)
	return c
}

func (r *entryReader) varint() int64 {
	v, width := binary.Varint(r.b)
	if width <= 0 {
		r.failed = true
		return 0
	}
	r.skip(width)
	return v
}

func (r *entryReader) text() string {
	size, width := binary.Uvarint(r.b)
	if width <= 0 || size > uint64(len(r.b)-width) {
		r.failed = true
		return ""
	}
	r.skip(width)
	if n := int(size); len(r.block) < n {
		r.block = string(r.b[:min(max(n, blockSize), len(r.b))])
	}
	text := r.block[:size]
	r.skip(int(size))
	return text
}

// skip passes over the next n bytes.
func (r *entryReader) skip(n int) {
	r.b, r.block = r.b[n:], r.block[min(n, len(r.block)):]
}

// MarshalBinary writes the state for UnmarshalBinary: no bytes if no patch has come, else its
// canonical form. Before these stand, if there is a baseline, a zero byte and that as a text.
func (s *State) MarshalBinary() ([]byte, error) {
	b := []byte{} // nil would be read as no state at all
	if s.baseline != "" {
		b = packText(append(b, 0), s.baseline)
	}
	if !s.patched {
		return b, nil
	}
	return append(b, s.JSON()...), nil
}

// UnmarshalBinary reads what MarshalBinary has written. An error leaves s as it
// was.
func (s *State) UnmarshalBinary(b []byte) error {
	var n State
	ok := true
	if len(b) > 0 && b[0] == 0 {
		r := entryReader{b: b[1:]}
		n.baseline = r.text()
		ok = !r.failed && json.Valid([]byte(n.baseline))
		b = r.b
	}
	if len(b) > 0 && ok {
		n.value, ok = decodeJSON(b)
		n.patched = true
	}
	if !ok {
		return errors.New("the bytes hold no JSON")
	}
	*s = n
	return nil
}
