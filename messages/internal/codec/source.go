package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Source reads values that [CheckMsgpack] has accepted, one after the other.
type Source struct {
	left   []byte
	strict bool // fields that a struct does not have are an error
	// texts are short ones that came before: events, and frames read one after the other, name the same
	// turns, calls and tools.
	texts [64]string
}

// sources are used again for the texts they know.
var sources = sync.Pool{New: func() any { return new(Source) }}

// Decode checks b, which must be one msgpack value, and has read decode it. A panic, as of a value
// that does not fit its type, is returned as an error.
func Decode(b []byte, read func(*Source) error) (err error) {
	if err := CheckMsgpack(b); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be decoded: %v", p)
		}
	}()
	s := sources.Get().(*Source)
	s.left, s.strict = b, false
	err = read(s)
	s.left = nil
	sources.Put(s)
	return err
}

// head reads the first byte of the next value.
func (s *Source) head() (byte, error) {
	if len(s.left) == 0 {
		return 0, errCutOff
	}
	c := s.left[0]
	s.left = s.left[1:]
	return c, nil
}

// uint reads n bytes as a number.
func (s *Source) uint(n int) (v uint64, err error) {
	if len(s.left) < n {
		return 0, errCutOff
	}
	for _, b := range s.left[:n] {
		v = v<<8 | uint64(b)
	}
	s.left = s.left[n:]
	return v, nil
}

// Nil reads the next value if it is nil, and reports whether it was.
func (s *Source) Nil() bool {
	is := len(s.left) > 0 && s.left[0] == msgpcode.Nil
	if is {
		s.left = s.left[1:]
	}
	return is
}

// IsBytes reports whether the next value is a byte string.
func (s *Source) IsBytes() bool { return len(s.left) > 0 && msgpcode.IsBin(s.left[0]) }

// Text reads a string or bytes without a copy; nil if it is nil. The result is valid as long as the
// bytes that are decoded.
func (s *Source) Text() ([]byte, error) {
	c, err := s.head()
	if err != nil {
		return nil, err
	}
	n := uint64(c & msgpcode.FixedStrMask)
	switch {
	case msgpcode.IsFixedString(c):
	case c == msgpcode.Nil:
		return nil, nil
	case c == msgpcode.Str8 || c == msgpcode.Bin8:
		n, err = s.uint(1)
	case c == msgpcode.Str16 || c == msgpcode.Bin16:
		n, err = s.uint(2)
	case c == msgpcode.Str32 || c == msgpcode.Bin32:
		n, err = s.uint(4)
	default:
		return nil, unfit(c, "a text")
	}
	if err != nil || uint64(len(s.left)) < n {
		return nil, errors.Join(err, errCutOff)
	}
	text := s.left[:n:n]
	s.left = s.left[n:]
	return text, nil
}

// String reads a string or bytes; empty if it is nil.
func (s *Source) String() (string, error) {
	text, err := s.Text()
	if len(text) == 0 || len(text) > 64 {
		return string(text), err
	}
	known := &s.texts[(len(text)+int(text[0])+int(text[len(text)-1]))%len(s.texts)]
	if *known != string(text) {
		*known = string(text)
	}
	return *known, nil
}

// Bytes reads a copy of a string or bytes; nil if it is nil.
func (s *Source) Bytes() ([]byte, error) {
	text, err := s.Text()
	if text == nil {
		return nil, err
	}
	return append([]byte{}, text...), nil
}

// Int reads a number; 0 if it is nil.
func (s *Source) Int() (int64, error) {
	c, err := s.head()
	if err != nil {
		return 0, err
	}
	var v uint64
	switch {
	case msgpcode.IsFixedNum(c):
		return int64(int8(c)), nil
	case c == msgpcode.Nil:
		return 0, nil
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		v, err = s.uint(1 << (c - msgpcode.Uint8))
		return int64(v), err
	case c >= msgpcode.Int8 && c <= msgpcode.Int64:
		size := 1 << (c - msgpcode.Int8)
		v, err = s.uint(size)
		return int64(v<<(64-8*size)) >> (64 - 8*size), err
	}
	return 0, unfit(c, "a whole number")
}

// Float reads a number; 0 if it is nil.
func (s *Source) Float() (float64, error) {
	if len(s.left) > 0 && (s.left[0] == msgpcode.Float || s.left[0] == msgpcode.Double) {
		raw, err := s.Raw()
		if len(raw) == 5 {
			return float64(math.Float32frombits(binary.BigEndian.Uint32(raw[1:]))), err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(raw[1:])), err
	}
	n, err := s.Int()
	return float64(n), err
}

// Bool reads true or false; false if it is nil.
func (s *Source) Bool() (bool, error) {
	switch c, err := s.head(); {
	case err != nil:
		return false, err
	case c == msgpcode.True || c == msgpcode.False || c == msgpcode.Nil:
		return c == msgpcode.True, nil
	default:
		return false, unfit(c, "true or false")
	}
}

// List reads the head of a list and returns how many values follow; -1 if it is nil.
func (s *Source) List() (int, error) {
	return s.many(msgpcode.FixedArrayLow, msgpcode.Array16, msgpcode.Array32, "a list")
}

// Map reads the head of a map and returns how many names with values follow; -1 if it is nil.
func (s *Source) Map() (int, error) {
	return s.many(msgpcode.FixedMapLow, msgpcode.Map16, msgpcode.Map32, "a map")
}

// many reads the head of what has others in it.
func (s *Source) many(fixed, by16, by32 byte, what string) (int, error) {
	c, err := s.head()
	if err != nil {
		return 0, err
	}
	var n uint64
	switch {
	case c&0xf0 == fixed:
		return int(c & 0x0f), nil
	case c == msgpcode.Nil:
		return -1, nil
	case c == by16:
		n, err = s.uint(2)
	case c == by32:
		n, err = s.uint(4)
	default:
		err = unfit(c, what)
	}
	return int(n), err
}

// Raw reads the next value as it is stored, without a copy.
func (s *Source) Raw() ([]byte, error) {
	all := s.left
	for values := uint64(1); values > 0; values-- {
		size, children, err := msgpackHead(s.left)
		if err == nil && uint64(len(s.left)) < size {
			err = errCutOff
		}
		if err != nil {
			return nil, err
		}
		s.left = s.left[size:]
		values += children
	}
	return all[:len(all)-len(s.left)], nil
}

// unfit returns the error for a value that begins with c where another one is expected.
func unfit(c byte, what string) error {
	return fmt.Errorf("a value that begins with 0x%02x is in the place of %s", c, what)
}
