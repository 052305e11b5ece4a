package redact

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// walk goes through the texts of one event, cause, definition or blob.
type walk struct {
	*Redactor
	root string
	path []string
	// collecting notes what paths name, and changes nothing.
	collecting bool
	// under is the rule whose path the walk is at or below; empty: none.
	under string
	// structured reports whether the JSON is a definition or the item of a provider, whose keys
	// and words stay.
	structured bool
}

// at does what do does, one step further down the path.
func (w *walk) at(step string, do func()) {
	path, under := w.path, w.under
	w.path = append(path[:len(path):len(path)], step)
	if w.under == "" {
		w.under = w.of(w.root, w.path)
	}
	do()
	w.path, w.under = path, under
}

// last returns the newest step of the path.
func (w *walk) last() string {
	if len(w.path) == 0 {
		return ""
	}
	return w.path[len(w.path)-1]
}

// Frame redacts a frame, whose blobs have been replaced before. The frame is changed.
func (r *Redactor) Frame(f *messages.Frame) {
	before := r.edits
	r.walkFrame(f, func(*walk) {})
	f.Trace = r.trace(f.Trace)
	if f.Cause.Digest != "" && r.edits > before {
		f.Cause.Digest = r.likeHash(f.Cause.Digest)
	}
}

// walkFrame walks through cause and events.
func (r *Redactor) walkFrame(f *messages.Frame, with func(*walk)) {
	w := &walk{Redactor: r, root: rootCause}
	with(w)
	digest := f.Cause.Digest // it follows from the whole frame
	w.value(reflect.ValueOf(&f.Cause).Elem())
	f.Cause.Digest = digest
	for i, ev := range f.Events {
		w := &walk{Redactor: r, root: ev.EventType()}
		with(w)
		v := reflect.New(reflect.TypeOf(ev)).Elem()
		v.Set(reflect.ValueOf(ev))
		if w.value(v); !w.collecting {
			f.Events[i] = v.Interface().(messages.Event)
		}
	}
}

// value walks through a field, and sets what is redacted.
func (w *walk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s := w.field(v.Type(), v.String()); s != v.String() {
			v.SetString(s)
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*messages.Blob]() && v.Type() != reflect.TypeFor[*time.Time]() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			w.value(copied.Elem())
			v.Set(copied)
		}
	case reflect.Slice:
		w.slice(v)
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			w.object(v)
		}
	}
}

func (w *walk) slice(v reflect.Value) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		if v.Len() > 0 {
			v.SetBytes([]byte(w.raw(string(v.Bytes()))))
		}
		return
	}
	if v.Len() == 0 {
		return
	}
	copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(copied, v)
	for i := range copied.Len() {
		w.value(copied.Index(i))
	}
	v.Set(copied)
}

// object walks through the fields of a struct. A hash of arguments follows them.
func (w *walk) object(v reflect.Value) {
	arguments, sum := v.FieldByName("Arguments"), v.FieldByName("ArgsHash")
	before := ""
	if arguments.IsValid() {
		before = arguments.String()
	}
	for i := range v.NumField() {
		jsonName, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if jsonName == "" || jsonName == "-" { // embedded
			w.value(v.Field(i))
			continue
		}
		w.at(jsonName, func() { w.value(v.Field(i)) })
	}
	if sum.IsValid() && !w.collecting {
		w.hashOfArguments(arguments, sum, before)
	}
}

// hashOfArguments sets the hash of arguments that were changed, here or where they were named before.
func (w *walk) hashOfArguments(arguments, sum reflect.Value, before string) {
	old := sum.String()
	if arguments.IsValid() && arguments.String() != before && old != "" {
		if _, known := w.hashes[old]; !known {
			w.hashes[old] = w.keyed(old) // of a part of the arguments: the hash was of the whole
			if messages.HashArguments(before) == old {
				w.hashes[old] = messages.HashArguments(arguments.String())
			}
		}
	}
	if changed, ok := w.hashes[old]; ok {
		sum.SetString(changed)
	}
}

// field returns a field of type string as it is redacted.
func (w *walk) field(t reflect.Type, s string) string {
	if s == "" {
		return s
	}
	switch c := classOf(t, w.root, w.path); {
	case c == text:
		return w.text(s)
	case w.collecting:
	case c == name:
		return w.name(s)
	case c == trace:
		return string(w.trace(messages.TraceContext(s)))
	case c == hash:
		if changed, ok := w.hashes[s]; ok {
			return changed
		}
	case c == state && w.edits > w.begun:
		return w.likeHash(s)
	}
	return s
}

// raw returns JSON of a field as it is redacted. What is no JSON becomes a JSON text if it holds
// anything to redact.
func (w *walk) raw(s string) string {
	structured := w.structured
	w.structured = w.last() == "raw" || w.last() == "rewritten"
	defer func() { w.structured = structured }()
	if changed, ok := w.json(s); ok {
		return changed
	}
	changed := w.leaf(s)
	if changed == s {
		return s
	}
	quoted, _ := json.Marshal(changed) // a string encodes
	return string(quoted)
}
