// Package codec reads and writes msgpack and JSON.
//
// What it reads may be any bytes: it does not panic, does not recurse without a bound, and
// reserves no memory for lengths that the bytes do not have.
package codec

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

// Source is a decoder of bytes that names fields by their json tags.
type Source struct {
	*msgpack.Decoder
	all  []byte
	left bytes.Reader // the decoder reads it without a buffer
}

// Text reads a string or bytes without a copy. The result is valid as long as the bytes that are
// decoded.
func (s *Source) Text() ([]byte, error) {
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
// a part of it, and would read what [CheckMsgpack] has not looked into.
func (s *Source) DecodeMapLen() (int, error) {
	switch c, err := s.PeekCode(); {
	case err != nil:
		return 0, err
	case msgpcode.IsExt(c):
		return 0, errors.New("an extension is in the place of a map")
	}
	return s.Decoder.DecodeMapLen()
}

var sources = sync.Pool{New: func() any { return &Source{Decoder: msgpack.NewDecoder(nil)} }}

// Decode checks b, which must be one msgpack value, and has read decode it. The library
// recurses and panics for some values that do not fit: the first is bounded, the second
// returned as an error.
func Decode(b []byte, read func(*Source) error) (err error) {
	if err := CheckMsgpack(b); err != nil {
		return err
	}
	s := sources.Get().(*Source)
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

// Value decodes the next value into v, with its times in UTC.
func (s *Source) Value(v reflect.Value) error {
	err := s.DecodeValue(v)
	inUTC(v)
	return err
}

// Unmarshal decodes b, one msgpack value, into v, a pointer. strict refuses fields that a struct
// does not have.
func Unmarshal(b []byte, v any, strict bool) error {
	return Decode(b, func(s *Source) error {
		s.DisallowUnknownFields(strict)
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
