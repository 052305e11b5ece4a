package messages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

var errCutOff = errors.New("the value is cut off")

var errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// source is a decoder of bytes that names fields by their json tags.
type source struct {
	*msgpack.Decoder
	all  []byte
	left bytes.Reader // the decoder reads it without a buffer
}

// text reads a string or bytes without a copy. The result is valid as long as all.
func (s *source) text() ([]byte, error) {
	n, err := s.DecodeBytesLen()
	if err != nil || n <= 0 {
		return nil, err
	}
	at := len(s.all) - s.left.Len()
	if _, err := s.left.Seek(int64(n), io.SeekCurrent); err != nil {
		return nil, err
	}
	return s.all[at : at+n], nil
}

// DecodeMapLen reads the head of a map. The library's own takes the head of an extension for
// a part of it, and would read what [checkMsgpack] has not looked into.
func (s *source) DecodeMapLen() (int, error) {
	switch c, err := s.PeekCode(); {
	case err != nil:
		return 0, err
	case msgpcode.IsExt(c):
		return 0, errors.New("an extension is in the place of a map")
	}
	return s.Decoder.DecodeMapLen()
}

var sources = sync.Pool{New: func() any { return &source{Decoder: msgpack.NewDecoder(nil)} }}

// decode checks b, which must be one msgpack value, and has read decode it. The library
// recurses and panics for some values that do not fit: the first is bounded, the second
// returned as an error.
func decode(b []byte, read func(*source) error) (err error) {
	if err := checkMsgpack(b); err != nil {
		return err
	}
	s := sources.Get().(*source)
	s.all = b
	s.left.Reset(b)
	s.Reset(&s.left)
	s.SetCustomStructTag("json")
	defer func() {
		if p := recover(); p != nil { // s, whose state is not known, is dropped
			err = fmt.Errorf("cannot be decoded: %v", p)
			return
		}
		s.all = nil
		s.left.Reset(nil)
		sources.Put(s)
	}()
	return read(s)
}

// value decodes the next value into v, with its times in UTC.
func (s *source) value(v reflect.Value) error {
	err := s.DecodeValue(v)
	inUTC(v)
	return err
}

// unmarshal decodes b into v, a pointer. strict refuses fields that a struct does not have.
func unmarshal(b []byte, v any, strict bool) error {
	return decode(b, func(s *source) error {
		s.DisallowUnknownFields(strict)
		return s.value(reflect.ValueOf(v).Elem())
	})
}

// checkMsgpack walks one msgpack value without decoding it and refuses one that is
// truncated, followed by more bytes, or nested too deep. It has a stack of its own, so that
// no input can exhaust the goroutine's.
// The format: https://github.com/msgpack/msgpack/blob/master/spec.md
func checkMsgpack(b []byte) error {
	var pending [maxDepth + 1]uint64 // values still to come at each depth
	depth := 0
	pending[0] = 1
	for {
		for pending[depth] == 0 {
			if depth == 0 {
				if len(b) != 0 {
					return fmt.Errorf("%d bytes follow the value", len(b))
				}
				return nil
			}
			depth--
		}
		pending[depth]--
		size, children, err := uint64(1), uint64(0), error(nil)
		switch {
		case len(b) > 0 && b[0] <= 0x7f: // most are small numbers and short texts
		case len(b) > 0 && b[0]&0xe0 == 0xa0:
			size += uint64(b[0] & 0x1f)
		default:
			if size, children, err = msgpackHead(b); err != nil {
				return err
			}
		}
		if uint64(len(b)) < size {
			return errCutOff
		}
		b = b[size:]
		if children > 0 {
			if children > uint64(len(b)) {
				return errCutOff
			}
			if depth == maxDepth {
				return errTooDeep
			}
			depth++
			pending[depth] = children
		}
	}
}

// msgpackHeads are the heads of the values that begin with the bytes 0xc0 to 0xdf: their size, how
// many bytes behind the first are a length, and how many children there are for each of that
// length. Without children the length is in bytes.
var msgpackHeads = [0x20]struct{ size, width, children uint64 }{
	0x00: {size: 1},            // nil
	0x02: {size: 1}, {size: 1}, // false, true
	0x04: {2, 1, 0}, {3, 2, 0}, {5, 4, 0}, // bytes
	0x07: {3, 1, 0}, {4, 2, 0}, {6, 4, 0}, // extensions, with a byte for their type
	0x0a: {size: 5}, {size: 9}, // floats
	0x0c: {size: 2}, {size: 3}, {size: 5}, {size: 9}, // unsigned numbers
	0x10: {size: 2}, {size: 3}, {size: 5}, {size: 9}, // numbers
	0x14: {size: 3}, {size: 4}, {size: 6}, {size: 10}, {size: 18}, // extensions of a fixed size
	0x19: {2, 1, 0}, {3, 2, 0}, {5, 4, 0}, // texts
	0x1c: {3, 2, 1}, {5, 4, 1}, // lists
	0x1e: {3, 2, 2}, {5, 4, 2}, // maps
}

// msgpackHead returns how many bytes the value at b has without its children, and how many
// children follow.
func msgpackHead(b []byte) (size, children uint64, err error) {
	if len(b) == 0 {
		return 0, 0, errCutOff
	}
	switch c := b[0]; {
	case c <= 0x7f || c >= 0xe0: // a small number
		return 1, 0, nil
	case c <= 0x8f: // a small map
		return 1, 2 * uint64(c&0x0f), nil
	case c <= 0x9f: // a short list
		return 1, uint64(c & 0x0f), nil
	case c <= 0xbf: // a short text
		return 1 + uint64(c&0x1f), 0, nil
	}
	head := msgpackHeads[b[0]-0xc0]
	switch {
	case head.size == 0:
		return 0, 0, fmt.Errorf("byte 0x%02x begins no msgpack value", b[0])
	case uint64(len(b)) < head.size:
		return 0, 0, errCutOff
	}
	length := uint64(0)
	for _, digit := range b[1 : 1+head.width] {
		length = length<<8 | uint64(digit)
	}
	if head.children > 0 {
		return head.size, head.children * length, nil
	}
	return head.size + length, 0, nil
}

// checkJSONDepth refuses JSON that nests too deep. It does not check syntax.
func checkJSONDepth(b []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return errTooDeep
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
