package turn_test

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/reprise-dev/reprise/actors/turn"
)

// comparer finds where two states differ, unexported fields included, so that
// a new field needs no new test. Not safe for concurrent use.
type comparer struct {
	fields map[reflect.Type][]field
	whole  bool
}

type field struct {
	index int
	name  string
}

func newComparer() *comparer { return &comparer{fields: map[reflect.Type][]field{}} }

// volatile are the fields that the log does not decide: what hooks and tools are
// asked, what only views set, and what a history keeps to be quick.
var volatile = map[string]bool{"origin": true, "asking": true, "lost": true, "shown": true, "plain": true, "digested": true, "sum": true}

// lengthy are the fields that are compared in full only now and then.
var lengthy = map[string]bool{"History": true, "processed": true}

// states returns where two states differ; empty: nowhere.
func (c *comparer) states(a, b *turn.State, whole bool) string {
	c.whole = whole
	if a.History.Len() != b.History.Len() || a.History.Digest() != b.History.Digest() {
		return "History"
	}
	return c.differ(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

func (c *comparer) differ(a, b reflect.Value) string {
	switch a.Kind() {
	case reflect.Struct:
		return c.structs(a, b)
	case reflect.Pointer:
		return c.pointers(a, b)
	case reflect.Slice:
		return c.slices(a, b)
	case reflect.Map:
		return c.maps(a, b)
	case reflect.Interface:
		return c.pointers(a, b)
	}
	if a.Equal(b) {
		return ""
	}
	return fmt.Sprintf(": %v, %v", a, b)
}

func (c *comparer) structs(a, b reflect.Value) string {
	if a.Type() == reflect.TypeFor[time.Time]() {
		if timeOf(a).Equal(timeOf(b)) {
			return ""
		}
		return ": another time"
	}
	for _, f := range c.of(a.Type()) {
		if !c.whole && lengthy[f.name] {
			continue
		}
		if where := c.differ(a.Field(f.index), b.Field(f.index)); where != "" {
			return f.name + " " + where
		}
	}
	return ""
}

// timeOf is a time, also one below a field that is not exported.
func timeOf(v reflect.Value) time.Time {
	return *(*time.Time)(unsafe.Pointer(v.UnsafeAddr()))
}

// of are the fields of a struct that count.
func (c *comparer) of(t reflect.Type) []field {
	list, known := c.fields[t]
	if !known {
		for i := range t.NumField() {
			if name := t.Field(i).Name; !volatile[name] {
				list = append(list, field{i, name})
			}
		}
		c.fields[t] = list
	}
	return list
}

func (c *comparer) pointers(a, b reflect.Value) string {
	switch {
	case a.IsNil() || b.IsNil():
		if a.IsNil() == b.IsNil() {
			return ""
		}
		return ": one is nil"
	case a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer():
		return ""
	}
	return c.differ(a.Elem(), b.Elem())
}

func (c *comparer) slices(a, b reflect.Value) string {
	switch {
	case a.Len() != b.Len():
		return fmt.Sprintf(": %d, %d long", a.Len(), b.Len())
	case a.Pointer() == b.Pointer():
		return ""
	}
	for i := range a.Len() {
		if where := c.differ(a.Index(i), b.Index(i)); where != "" {
			return fmt.Sprint(i, " ", where)
		}
	}
	return ""
}

func (c *comparer) maps(a, b reflect.Value) string {
	if a.Len() != b.Len() {
		return fmt.Sprintf(": %d, %d entries", a.Len(), b.Len())
	}
	for it := a.MapRange(); it.Next(); {
		other := b.MapIndex(it.Key())
		if !other.IsValid() {
			return fmt.Sprintf(": only one has %v", it.Key())
		}
		if where := c.differ(it.Value(), other); where != "" {
			return fmt.Sprint(it.Key(), " ", where)
		}
	}
	return ""
}
