package messages

import (
	"encoding/binary"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// reader reads msgpack that checkMsgpack has found whole, faster than the library
// does. Its methods read what the library's encoder writes; where something else
// comes they read nothing and say so, and [reader.slowly] is for it.
type reader struct {
	b []byte
	// strict refuses fields that a struct does not have.
	strict bool
	// texts are short ones that were read last: most come again soon, and are
	// the same string then.
	texts [64]string
}

// longestText is how long a text is at most that is remembered.
const longestText = 64

var readers = sync.Pool{New: func() any { return new(reader) }}

// readerOf takes a reader of b, which must be whole, from the pool.
func readerOf(b []byte) *reader {
	r := readers.Get().(*reader)
	r.b, r.strict = b, false
	return r
}

// release gives the reader back.
func (r *reader) release() {
	r.b = nil
	readers.Put(r)
}

// slowly lets the library read what is next into v. It is not asked for nil, which
// makes it panic for some types.
func (r *reader) slowly(v reflect.Value) error {
	if r.isNil() {
		v.SetZero()
		return nil
	}
	d := decoder(r.skip())
	defer msgpack.PutDecoder(d)
	d.DisallowUnknownFields(r.strict)
	return d.DecodeValue(v)
}

// skip passes the next value over and gives its bytes.
func (r *reader) skip() []byte {
	b, at := r.b, uint64(0)
	for left := uint64(1); left > 0; left-- {
		size, children, _ := msgpackHead(b[at:]) // it is whole
		at, left = at+size, left+children
	}
	r.b = b[at:]
	return b[:at]
}

// isNil says whether nil comes next, and reads it.
func (r *reader) isNil() bool {
	if r.b[0] != 0xc0 {
		return false
	}
	r.b = r.b[1:]
	return true
}

// mapLen reads the head of a map.
func (r *reader) mapLen() (n int, ok bool) { return r.length(0x80, 0xde) }

// arrayLen reads the head of a list.
func (r *reader) arrayLen() (n int, ok bool) { return r.length(0x90, 0xdc) }

func (r *reader) length(fix, wide byte) (n int, ok bool) {
	switch c := r.b[0]; {
	case c&0xf0 == fix:
		r.b = r.b[1:]
		return int(c & 0x0f), true
	case c == wide:
		n = int(binary.BigEndian.Uint16(r.b[1:]))
		r.b = r.b[3:]
		return n, true
	case c == wide+1:
		n = int(binary.BigEndian.Uint32(r.b[1:]))
		r.b = r.b[5:]
		return n, true
	}
	return 0, false
}

// bytes reads a text or bytes; they are not copied.
func (r *reader) bytes() (b []byte, ok bool) {
	head, n := 0, 0
	switch c := r.b[0]; {
	case c&0xe0 == 0xa0:
		head, n = 1, int(c&0x1f)
	case c == 0xd9 || c == 0xc4:
		head, n = 2, int(r.b[1])
	case c == 0xda || c == 0xc5:
		head, n = 3, int(binary.BigEndian.Uint16(r.b[1:]))
	case c == 0xdb || c == 0xc6:
		head, n = 5, int(binary.BigEndian.Uint32(r.b[1:]))
	default:
		return nil, false
	}
	b, r.b = r.b[head:head+n:head+n], r.b[head+n:]
	return b, true
}

// text reads a text.
func (r *reader) text() (s string, ok bool) {
	b, ok := r.bytes()
	return r.remembered(b), ok
}

// remembered is b as a text.
func (r *reader) remembered(b []byte) string {
	if len(b) == 0 || len(b) > longestText {
		return string(b)
	}
	h := uint(len(b)) + 5*uint(b[0]) + 31*uint(b[len(b)/2]) + 131*uint(b[len(b)-1])
	s := &r.texts[h%uint(len(r.texts))]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}

// number reads a whole number; one without a sign beyond int64 keeps its bits.
func (r *reader) number() (n int64, ok bool) {
	c := r.b[0]
	if c <= 0x7f || c >= 0xe0 {
		r.b = r.b[1:]
		return int64(int8(c)), true
	}
	if c < 0xcc || c > 0xd3 {
		return 0, false
	}
	width := 1 << (c & 3)
	for _, b := range r.b[1 : 1+width] {
		n = n<<8 | int64(b)
	}
	if c >= 0xd0 { // with a sign
		shift := 64 - 8*width
		n = n << shift >> shift
	}
	r.b = r.b[1+width:]
	return n, true
}

// yes reads a truth value.
func (r *reader) yes() (is, ok bool) {
	c := r.b[0]
	if c != 0xc2 && c != 0xc3 {
		return false, false
	}
	r.b = r.b[1:]
	return c == 0xc3, true
}
