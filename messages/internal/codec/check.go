package codec

import (
	"errors"
	"fmt"
)

// MaxDepth is how deep maps and lists may nest in anything decoded here.
const MaxDepth = 64

var errCutOff = errors.New("the value is cut off")

var errTooDeep = fmt.Errorf("nested deeper than %d levels", MaxDepth)

// CheckMsgpack walks one msgpack value without decoding it and refuses one that is
// truncated, followed by more bytes, or nested too deep. It has a stack of its own, so that
// no input can exhaust the goroutine's.
// The format: https://github.com/msgpack/msgpack/blob/master/spec.md
func CheckMsgpack(b []byte) error {
	var pending [MaxDepth + 1]uint64 // values still to come at each depth
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
			if depth == MaxDepth {
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

// CheckJSONDepth refuses JSON that nests too deep. It does not check syntax.
func CheckJSONDepth(b []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return errTooDeep
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
