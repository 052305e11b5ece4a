package messages

import (
	"reflect"
	"time"
)

// UTC returns a function that converts the times in the exported fields of a T to UTC, for they
// are decoded in the local time zone.
func UTC[T any]() func(*T) {
	in := utcOf(reflect.TypeFor[T]())
	return func(v *T) {
		if in != nil {
			in(reflect.ValueOf(v).Elem())
		}
	}
}

// utcOf returns a function that converts the times in a value of type t to UTC: the library
// decodes them in the local time zone. Nil: t has no times.
func utcOf(t reflect.Type) func(reflect.Value) {
	switch t.Kind() {
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return func(v reflect.Value) { toUTC(v.Addr().Interface().(*time.Time)) }
		}
		return utcOfFields(t)
	case reflect.Pointer:
		if in := utcOf(t.Elem()); in != nil {
			return func(v reflect.Value) {
				if !v.IsNil() {
					in(v.Elem())
				}
			}
		}
	case reflect.Slice:
		if in := utcOf(t.Elem()); in != nil {
			return func(v reflect.Value) {
				for i := range v.Len() {
					in(v.Index(i))
				}
			}
		}
	}
	return nil
}

func utcOfFields(t reflect.Type) func(reflect.Value) {
	var fields []func(reflect.Value)
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			continue
		}
		if in := utcOf(t.Field(i).Type); in != nil {
			fields = append(fields, func(v reflect.Value) { in(v.Field(i)) })
		}
	}
	if fields == nil {
		return nil
	}
	return func(v reflect.Value) {
		for _, in := range fields {
			in(v)
		}
	}
}

func toUTC(t *time.Time) {
	if t != nil {
		*t = t.UTC()
	}
}
