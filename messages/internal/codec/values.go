package codec

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// Value decodes the next value into v, with its times in UTC. Structs are maps of their exported
// fields, as Marshal writes them.
func (s *Source) Value(v reflect.Value) error { return decoderOf(v.Type())(s, v) }

// decoder decodes the next value into one of a type.
type decoder func(*Source, reflect.Value) error

var decoders sync.Map // of decoder, by reflect.Type

func decoderOf(t reflect.Type) decoder {
	if d, ok := decoders.Load(t); ok {
		return d.(decoder)
	}
	d, _ := decoders.LoadOrStore(t, makeDecoder(t))
	return d.(decoder)
}

// makeDecoder returns the decoder of a type. What no event has, and times, the library decodes.
func makeDecoder(t reflect.Type) decoder {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return decodeTime
	case hasOwnForm(reflect.PointerTo(t)):
		return decodeByLibrary
	}
	switch t.Kind() {
	case reflect.String:
		return decodeText
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return decodeUint
	case reflect.Float64:
		return decodeFloat
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return decodeBytes
		}
		return decodeSlice
	case reflect.Pointer:
		return decodePointer
	case reflect.Struct:
		return (&structDecoder{typ: t}).decode
	}
	return decodeByLibrary
}

// hasOwnForm reports whether the library has values of a type decode themselves.
func hasOwnForm(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[msgpack.CustomDecoder]()) || t.Implements(reflect.TypeFor[msgpack.Unmarshaler]()) ||
		t.Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func decodeText(s *Source, v reflect.Value) error {
	text, err := s.String()
	v.SetString(text)
	return err
}

func decodeBytes(s *Source, v reflect.Value) error {
	b, err := s.Bytes()
	v.SetBytes(b)
	return err
}

func decodeBool(s *Source, v reflect.Value) error {
	is, err := s.Bool()
	v.SetBool(is)
	return err
}

func decodeInt(s *Source, v reflect.Value) error {
	n, err := s.Int()
	v.SetInt(n)
	return err
}

func decodeUint(s *Source, v reflect.Value) error {
	n, err := s.Int()
	v.SetUint(uint64(n))
	return err
}

func decodeFloat(s *Source, v reflect.Value) error {
	n, err := s.Float()
	v.SetFloat(n)
	return err
}

func decodePointer(s *Source, v reflect.Value) error {
	if s.Nil() {
		v.SetZero()
		return nil
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return s.Value(v.Elem())
}

// growth is how many values of a list have memory before they are read. [CheckMsgpack] has counted a byte for
// each value, which may take more memory: an empty item of a model has 208 bytes. A frame of 512 KiB, the
// largest that a log takes, so decodes to at most 107 MiB, and an input of 384 KiB, whose parts have 72 bytes
// each, to 27 MiB. A bound below that would refuse lists of short values.
const growth = 64

func decodeSlice(s *Source, v reflect.Value) error {
	n, err := s.List()
	if err != nil || n < 0 {
		v.SetZero()
		return err
	}
	if n == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return nil
	}
	decode := decoderOf(v.Type().Elem())
	v.SetZero()
	v.Grow(min(n, growth))
	for i := range n {
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		if err := decode(s, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// structDecoder decodes the structs of a type.
type structDecoder struct {
	typ  reflect.Type
	once sync.Once // fields and decoders are found at the first use, for a struct may be within itself
	// decoders are those of the fields.
	fields   []structField
	decoders []decoder
}

func (d *structDecoder) prepare() {
	d.fields = slices.Clone(fieldsOf(d.typ))
	for _, f := range reflect.VisibleFields(d.typ) {
		if f.Anonymous && f.IsExported() { // may have been written under its own name, see Register
			d.fields = append(d.fields, structField{name: f.Name, index: f.Index})
		}
	}
	for _, f := range d.fields {
		d.decoders = append(d.decoders, decoderOf(d.typ.FieldByIndex(f.index).Type))
	}
}

func (d *structDecoder) decode(s *Source, v reflect.Value) error {
	d.once.Do(d.prepare)
	n, err := s.Map()
	if err != nil || n < 0 {
		v.SetZero()
		return err
	}
	next := 0
	for range n {
		name, err := s.Text()
		if err != nil {
			return err
		}
		i := d.find(name, next)
		switch {
		case i >= 0:
			next = i + 1
			err = d.decoders[i](s, v.FieldByIndex(d.fields[i].index))
		case s.strict:
			err = fmt.Errorf("the field %q is unknown to this version", name)
		default:
			_, err = s.Raw()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find returns the index of the field of that name, -1 if there is none. It looks from next on first,
// because fields are stored in their order.
func (d *structDecoder) find(name []byte, next int) int {
	for i := next; i < len(d.fields); i++ {
		if d.fields[i].name == string(name) {
			return i
		}
	}
	for i := range next {
		if d.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// decodeTime decodes a time: the library returns it in the local time zone.
func decodeTime(s *Source, v reflect.Value) error {
	err := decodeByLibrary(s, v)
	t := v.Addr().Interface().(*time.Time)
	*t = t.UTC()
	return err
}

// decodeByLibrary has the library decode a value, which it may panic at.
func decodeByLibrary(s *Source, v reflect.Value) error {
	raw, err := s.Raw()
	if err != nil {
		return err
	}
	d := msgpack.NewDecoder(bytes.NewReader(raw))
	d.SetCustomStructTag("json")
	d.DisallowUnknownFields(s.strict)
	return d.DecodeValue(v)
}
