package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The functions here take JSON that json.Valid has approved, but for LookUp, Complete and Object.

// Members calls f with the members of an object, in order. A key with escapes
// is decoded; keys and values are valid as long as b is. Of anything but an object it
// calls nothing.
func Members(b []byte, f func(key, value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return nil
	}
	for i = skipSpace(b, i+1); b[i] != '}'; i = skipSpace(b, i) {
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		end := skipValue(b, i)
		key := Unquoted(b[i:end])
		i = skipSpace(b, end)
		i = skipSpace(b, i+1) // the colon
		end = skipValue(b, i)
		if err := f(key, b[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// Elements calls f with the elements of an array, in order. Of anything but an
// array it calls nothing.
func Elements(b []byte, f func(value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return nil
	}
	for i = skipSpace(b, i+1); b[i] != ']'; i = skipSpace(b, i) {
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		end := skipValue(b, i)
		if err := f(b[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// SkipString returns where the string that starts at i ends.
func SkipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue is where the value that starts at i ends.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = SkipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if i++; depth == 0 {
				return i
			}
		}
	}
	for i < len(b) && strings.IndexByte(",]} \n\t\r", b[i]) < 0 {
		i++
	}
	return i
}

// Count is a number of tokens, as servers write it: 12, 12.0 or "12". What is no number, or is
// negative, is 0.
type Count int

// UnmarshalJSON returns nil.
func (c *Count) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if *c = 0; err == nil && n > 0 && n < math.MaxInt32 {
		*c = Count(n)
	}
	return nil
}

// Unquoted returns the text of a JSON string, which is part of raw where it can be, and nil
// for other values.
func Unquoted(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return inside
	}
	var s string
	_ = json.Unmarshal(raw, &s) // raw is valid
	return []byte(s)
}

// Text returns the text of a JSON string, and "" for other values.
func Text(raw []byte) string { return string(Unquoted(raw)) }

// LookUp returns the last member of that name of an object, nil if it has none.
func LookUp(object []byte, name string) (value []byte) {
	if !json.Valid(object) {
		return nil
	}
	_ = Members(object, func(key, v []byte) error {
		if string(key) == name {
			value = v
		}
		return nil
	})
	return value
}

// List returns an array of values.
func List(values []json.RawMessage) json.RawMessage {
	list, _ := json.Marshal(values) // values are JSON
	return list
}

// Null reports whether a value is null.
func Null(value []byte) bool { return string(value) == "null" }

// Complete reports whether arguments may be over: they are one JSON object.
func Complete(arguments []byte) bool {
	trimmed := bytes.TrimSpace(arguments)
	return bytes.HasPrefix(trimmed, []byte("{")) && bytes.HasSuffix(trimmed, []byte("}")) && json.Valid(arguments)
}

// Object returns the arguments of a call as a JSON object, which servers require. Arguments
// that are not one become its only member.
func Object(arguments string) string {
	switch {
	case strings.TrimSpace(arguments) == "":
		return "{}"
	case Complete([]byte(arguments)):
		return arguments
	}
	return `{"not_json":` + string(AppendString(nil, arguments)) + `}`
}

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string. What is no UTF-8 becomes the replacement character.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[begin:i]...), "\ufffd"...)
				begin = i + 1
			}
			i += size
			continue
		}
		b = append(b, s[begin:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		begin = i
	}
	return append(append(b, s[begin:]...), '"')
}
