package codec

import (
	"cmp"
	"reflect"
	"strings"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// Register has the structs of type t, and those of its fields that are of the same package, encoded
// without the copies that the library makes. The library takes an embedded struct with an encoder
// of its own for a field, unless its tag has "inline". Call it before anything is encoded.
func Register(t reflect.Type) { register(t, t.PkgPath()) }

func register(t reflect.Type, pkg string) {
	switch {
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
		register(t.Elem(), pkg)
	case t.Kind() == reflect.Struct && t.PkgPath() == pkg:
		msgpack.Register(reflect.Zero(t).Interface(), encodeStruct, nil)
		for i := range t.NumField() {
			register(t.Field(i).Type, pkg)
		}
	}
}

// encodeStruct encodes a struct as the library does, except that it does not leave out a pointer
// to a zero time. The library copies the value of each field that may be left out to the heap, to
// find out whether it is empty: a tenth of the objects that a turn allocates.
func encodeStruct(e *msgpack.Encoder, v reflect.Value) error {
	all := fieldsOf(v.Type())
	var left [64]bool // those left out; no struct has more fields
	n := 0
	for i := range all {
		if left[i] = all[i].omitEmpty && isEmpty(v.FieldByIndex(all[i].index)); !left[i] {
			n++
		}
	}
	err := e.EncodeMapLen(n)
	for i := 0; i < len(all) && err == nil; i++ {
		if left[i] {
			continue
		}
		if err = e.EncodeString(all[i].name); err == nil {
			err = e.EncodeValue(v.FieldByIndex(all[i].index))
		}
	}
	return err
}

// isEmpty reports whether a field is left out: a pointer if it is nil, a struct with IsZero if
// that reports true.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
	}
	return v.IsZero()
}

// structField is how a field of a struct is encoded.
type structField struct {
	name      string
	index     []int
	omitEmpty bool
}

var structFields sync.Map // of []structField, by reflect.Type

func fieldsOf(t reflect.Type) []structField {
	if all, ok := structFields.Load(t); ok {
		return all.([]structField)
	}
	var all []structField
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" {
			all = append(all, structField{name: cmp.Or(name, f.Name), index: f.Index, omitEmpty: strings.Contains(options, "omitempty")})
		}
	}
	structFields.Store(t, all)
	return all
}
