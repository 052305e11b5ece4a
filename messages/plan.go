package messages

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// reading reads the next value into v, which is addressable, as the library does.
type reading func(r *reader, v reflect.Value) error

// plan is how a struct is read: what reflection tells of its type, found out once.
type plan struct {
	fields []plannedField
	places map[string]int // of fields, by name
}

type plannedField struct {
	name  string
	index int
	read  reading
}

// read reads a struct. Fields come most often in the order they are declared in.
func (p *plan) read(r *reader, v reflect.Value) error {
	n, ok := r.mapLen()
	if !ok {
		return r.slowly(v)
	}
	next := 0
	for range n {
		name, ok := r.bytes()
		if !ok && !r.isNil() {
			return fmt.Errorf("a field of %s has no name", v.Type())
		}
		i, known := p.place(name, next)
		switch {
		case known:
			next = i + 1
			f := &p.fields[i]
			if err := f.read(r, v.Field(f.index)); err != nil {
				return err
			}
		case r.strict:
			return fmt.Errorf("unknown field %q", name)
		default:
			r.skip()
		}
	}
	return nil
}

// place finds a field; it is probably not before next.
func (p *plan) place(name []byte, next int) (i int, known bool) {
	for i := next; i < len(p.fields); i++ {
		if p.fields[i].name == string(name) {
			return i, true
		}
	}
	i, known = p.places[string(name)]
	return i, known
}

// readings are those found out so far, planning guards the making of more.
var (
	readings sync.Map // of reflect.Type to reading
	planning sync.Mutex
)

// readingOf is how a value of type t is read.
func readingOf(t reflect.Type) reading {
	if r, ok := readings.Load(t); ok {
		return r.(reading)
	}
	planning.Lock()
	defer planning.Unlock()
	p := planner{}
	r := p.reading(t)
	for t, plan := range maps.All(p) {
		readings.Store(t, reading(plan.read))
	}
	readings.Store(t, r)
	return r
}

// planner holds the plans of structs that are being made: they may hold one another.
type planner map[reflect.Type]*plan

var (
	timeType   = reflect.TypeFor[time.Time]()
	binaryType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
	otherTypes = [...]reflect.Type{reflect.TypeFor[msgpack.CustomDecoder](), reflect.TypeFor[msgpack.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
)

func (p planner) reading(t reflect.Type) reading {
	if t.Kind() != reflect.Pointer {
		if t == timeType || t.Implements(binaryType) || ownWay(t) {
			return (*reader).slowly
		}
		if reflect.PointerTo(t).Implements(binaryType) {
			return readBinary
		}
	}
	switch t.Kind() {
	case reflect.String:
		return readText
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return readInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return readUint
	case reflect.Bool:
		return readBool
	case reflect.Pointer:
		return p.pointer(t)
	case reflect.Slice:
		return p.slice(t)
	case reflect.Struct:
		return p.structure(t)
	}
	return (*reader).slowly
}

// ownWay says that a type decodes itself in a way that is rare here.
func ownWay(t reflect.Type) bool {
	for _, other := range otherTypes {
		if t.Implements(other) || reflect.PointerTo(t).Implements(other) {
			return true
		}
	}
	return false
}

func (p planner) structure(t reflect.Type) reading {
	if made, ok := p[t]; ok {
		return made.read
	}
	fields := reflect.VisibleFields(t)
	if slices.ContainsFunc(fields, func(f reflect.StructField) bool {
		return f.Anonymous || f.Name == "_msgpack" || f.Tag.Get("msgpack") != ""
	}) {
		return (*reader).slowly
	}
	made := &plan{places: make(map[string]int)}
	p[t] = made
	for i, f := range fields {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		made.places[name] = len(made.fields)
		made.fields = append(made.fields, plannedField{name, i, p.reading(f.Type)})
	}
	return made.read
}

func (p planner) pointer(t reflect.Type) reading {
	elem := t.Elem()
	read := p.reading(elem)
	return func(r *reader, v reflect.Value) error {
		if r.isNil() {
			v.SetZero()
			return nil
		}
		if v.IsNil() {
			v.Set(reflect.New(elem))
		}
		return read(r, v.Elem())
	}
}

func (p planner) slice(t reflect.Type) reading {
	switch {
	case t.Elem().Kind() == reflect.Uint8:
		return readBytes
	case t.Elem().Kind() == reflect.Pointer: // as the library takes them, if ever there are any
		return (*reader).slowly
	case t == reflect.TypeFor[[]string]():
		return readTexts
	}
	read := p.reading(t.Elem())
	return func(r *reader, v reflect.Value) error {
		n, ok := r.arrayLen()
		if !ok {
			return r.slowly(v)
		}
		if n == 0 && v.IsNil() {
			v.Set(reflect.MakeSlice(t, 0, 0))
		}
		if n > v.Len() {
			v.Grow(n - v.Len())
		}
		v.SetLen(n)
		for i := range n {
			if err := read(r, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
}

func readText(r *reader, v reflect.Value) error {
	s, ok := r.text()
	if !ok {
		return r.slowly(v)
	}
	v.SetString(s)
	return nil
}

func readInt(r *reader, v reflect.Value) error {
	n, ok := r.number()
	if !ok {
		return r.slowly(v)
	}
	v.SetInt(n)
	return nil
}

func readUint(r *reader, v reflect.Value) error {
	n, ok := r.number()
	if !ok {
		return r.slowly(v)
	}
	v.SetUint(uint64(n))
	return nil
}

func readBool(r *reader, v reflect.Value) error {
	is, ok := r.yes()
	if !ok {
		return r.slowly(v)
	}
	v.SetBool(is)
	return nil
}

func readBytes(r *reader, v reflect.Value) error {
	b, ok := r.bytes()
	if !ok {
		return r.slowly(v)
	}
	v.SetBytes(append([]byte{}, b...))
	return nil
}

func readTexts(r *reader, v reflect.Value) error {
	n, ok := r.arrayLen()
	if !ok {
		return r.slowly(v)
	}
	texts := make([]string, n)
	for i := range texts {
		if texts[i], ok = r.text(); !ok {
			if err := r.slowly(reflect.ValueOf(&texts[i]).Elem()); err != nil {
				return err
			}
		}
	}
	*v.Addr().Interface().(*[]string) = texts
	return nil
}

// readBinary lets a value read its own bytes, which it must not keep.
func readBinary(r *reader, v reflect.Value) error {
	b, ok := r.bytes()
	if !ok {
		return r.slowly(v)
	}
	return v.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
}
