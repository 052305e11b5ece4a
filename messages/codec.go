package messages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// maxDepth is how deep maps and lists may nest in anything decoded here.
const maxDepth = 64

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

// unmarshal decodes b into v, a pointer. strict refuses fields that a struct does not have.
func unmarshal(b []byte, v any, strict bool) error {
	return decode(b, func(s *source) error {
		s.DisallowUnknownFields(strict)
		return s.Decode(v)
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
			return errors.New("the value is cut off")
		}
		b = b[size:]
		if children > 0 {
			if children > uint64(len(b)) {
				return errors.New("the value is cut off")
			}
			if depth == maxDepth {
				return errTooDeep
			}
			depth++
			pending[depth] = children
		}
	}
}

// msgpackHead returns how many bytes the value at b has without its children, and how many
// children follow.
func msgpackHead(b []byte) (size, children uint64, err error) {
	if len(b) == 0 {
		return 0, 0, errors.New("the value is cut off")
	}
	c := b[0]
	length := func(width uint64) uint64 {
		if uint64(len(b)) < 1+width {
			err = errors.New("the value is cut off")
			return 0
		}
		switch width {
		case 1:
			return uint64(b[1])
		case 2:
			return uint64(binary.BigEndian.Uint16(b[1:]))
		}
		return uint64(binary.BigEndian.Uint32(b[1:]))
	}
	switch {
	case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3: // fixint, nil, bool
		return 1, 0, nil
	case c <= 0x8f: // fixmap
		return 1, 2 * uint64(c&0x0f), nil
	case c <= 0x9f: // fixarray
		return 1, uint64(c & 0x0f), nil
	case c <= 0xbf: // fixstr
		return 1 + uint64(c&0x1f), 0, nil
	case c >= 0xc4 && c <= 0xc6: // bin 8, 16, 32
		w := uint64(1) << (c - 0xc4)
		return 1 + w + length(w), 0, err
	case c >= 0xc7 && c <= 0xc9: // ext 8, 16, 32
		w := uint64(1) << (c - 0xc7)
		return 2 + w + length(w), 0, err
	case c == 0xca || c == 0xce || c == 0xd2: // float 32, uint 32, int 32
		return 5, 0, nil
	case c == 0xcb || c == 0xcf || c == 0xd3:
		return 9, 0, nil
	case c == 0xcc || c == 0xd0:
		return 2, 0, nil
	case c == 0xcd || c == 0xd1:
		return 3, 0, nil
	case c >= 0xd4 && c <= 0xd8: // fixext 1, 2, 4, 8, 16
		return 2 + uint64(1)<<(c-0xd4), 0, nil
	case c >= 0xd9 && c <= 0xdb: // str 8, 16, 32
		w := uint64(1) << (c - 0xd9)
		return 1 + w + length(w), 0, err
	case c == 0xdc || c == 0xdd: // array 16, 32
		w := uint64(2) << (c - 0xdc)
		return 1 + w, length(w), err
	case c == 0xde || c == 0xdf: // map 16, 32
		w := uint64(2) << (c - 0xde)
		return 1 + w, 2 * length(w), err
	}
	return 0, 0, fmt.Errorf("byte 0x%02x begins no msgpack value", c)
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
