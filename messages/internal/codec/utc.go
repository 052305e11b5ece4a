package codec

import (
	"reflect"
	"slices"
	"sync"
	"time"
)

// inUTC converts the times in v, which was decoded, to UTC: the library decodes them in the local
// time zone.
func inUTC(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			inUTC(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			inUTC(v.Index(i))
		}
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(*time.Time); ok {
			*t = t.UTC()
			return
		}
		for _, i := range fieldsWithTimes(v.Type()) {
			inUTC(v.Field(i))
		}
	}
}

var timeFields sync.Map // of []int, by reflect.Type

// fieldsWithTimes returns the exported fields of the struct type t that may hold times.
func fieldsWithTimes(t reflect.Type) []int {
	if known, ok := timeFields.Load(t); ok {
		return known.([]int)
	}
	var list []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && mayHoldTimes(f.Type) {
			list = append(list, i)
		}
	}
	timeFields.Store(t, list)
	return list
}

// mayHoldTimes reports whether values of type t may hold times. above are the structs that t is
// within.
func mayHoldTimes(t reflect.Type, above ...reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return mayHoldTimes(t.Elem(), above...)
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return true
		}
		if slices.Contains(above, t) {
			return false
		}
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && mayHoldTimes(f.Type, append(above, t)...) {
				return true
			}
		}
	}
	return false
}
