// Package codec reads and writes msgpack and JSON.
//
// What it reads may be any bytes: it does not panic, does not recurse without a bound, and
// reserves no memory for lengths that the bytes do not have.
package codec

import (
	"bytes"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
)

// Unmarshal decodes b, one msgpack value, into v, a pointer. strict refuses fields that a struct
// does not have.
func Unmarshal(b []byte, v any, strict bool) error {
	return Decode(b, func(s *Source) error {
		s.strict = strict
		return s.Value(reflect.ValueOf(v).Elem())
	})
}

// Marshal returns v, a pointer to a struct, as a msgpack map of its exported fields, which are
// named by their json tags.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	err := Encode(&buf, v)
	return buf.Bytes(), err
}

// Encode appends to buf what Marshal returns. After an error buf may hold a part of it.
func Encode(buf *bytes.Buffer, v any) error {
	buf.Grow(1024) // most frames fit
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(buf)
	e.SetCustomStructTag("json")
	e.UseCompactInts(true)
	e.UseCompactFloats(true)
	return e.Encode(v)
}
