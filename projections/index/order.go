package index

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// callKey orders calls by when they were asked for, those of the same time by agent and event. Its
// first timeDigits bytes are the time. The empty one is before all others.
type callKey string

// timeDigits is how many digits every 64-bit number has as one of a key.
const timeDigits = 16

func callKeyOf(at position) callKey {
	b := make([]byte, 0, 2*timeDigits+2+len(at.Kind)+len(at.Key))
	b = append(appendDigits(b, at.At), '\x00')
	b = append(append(b, at.Kind...), '\x00')
	b = append(append(b, at.Key...), '\x00')
	return callKey(appendDigits(b, at.N))
}

// appendDigits appends a number in such a form that greater numbers have greater texts.
func appendDigits(b []byte, n int64) []byte {
	return hex.AppendEncode(b, binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63))
}

// at returns the time, in nanoseconds.
func (k callKey) at() int64 {
	n, _ := strconv.ParseUint(string(k[:min(timeDigits, len(k))]), 16, 64)
	return int64(n ^ 1<<63)
}

// cursor returns the cursor of the row with the key.
func (k callKey) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(ofEffects + string(k)))
}

// readCallKey returns the key of the row that a cursor of Effects is of. The empty cursor is that
// of the empty key.
func readCallKey(cursor string) (callKey, error) {
	if cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	key, given := strings.CutPrefix(string(b), ofEffects)
	if err == nil && given && len(key) > timeDigits {
		_, err = strconv.ParseUint(key[:timeDigits], 16, 64)
		given = key[timeDigits] == '\x00'
	} else {
		given = false
	}
	if err != nil || !given {
		return "", strangeCursor(cursor)
	}
	return callKey(key), nil
}

// ordered yields those of rows whose key is greater than after, at most limit of them if that is not
// 0. The rows come in the order of the first digits of their keys; those that have the same are put in
// order here, because SQLite would copy every row to sort them.
func ordered(rows iter.Seq2[Row, error], digits int, after string, limit int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		o := ordering{after: after, left: limit, yield: yield}
		for row, err := range rows {
			if err != nil {
				yield(Row{}, err)
				return
			}
			if len(o.same) > 0 && o.same[0].Key[:digits] != row.Key[:digits] && !o.flush() {
				return
			}
			if row.Key > o.after {
				o.same = append(o.same, row)
			}
		}
		o.flush()
	}
}

// ordering is a sequence of rows that is being put in order.
type ordering struct {
	after string
	left  int   // rows to yield; 0: there is no limit
	same  []Row // with the same first digits
	yield func(Row, error) bool
}

// flush yields the rows with the same first digits, and reports whether more are wanted.
func (o *ordering) flush() bool {
	slices.SortFunc(o.same, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	for _, row := range o.same {
		if !o.yield(row, nil) {
			return false
		}
		if o.left--; o.left == 0 {
			return false
		}
	}
	o.same = o.same[:0]
	return true
}
