package export_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog/export/redact"
	"github.com/reprise-dev/reprise/messages"
)

// hiding sets every field of a value, one text of them to one that holds secret.
type hiding struct {
	at, texts int // which text, and how many there were so far
}

func (h *hiding) text() string {
	if h.texts++; h.texts == h.at {
		return "a secret b"
	}
	return "b"
}

func (h *hiding) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.SetString(h.text()); v.Type() == reflect.TypeFor[messages.TraceContext]() {
			v.SetString("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=" + v.String())
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		h.fill(v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"text":"` + h.text() + `"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		h.fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			h.fill(v.Field(i))
		}
	}
}

// secretPaths returns the paths of the texts in v that hold secret.
func secretPaths(path string, v any) (found []string) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "secret") {
			return []string{path}
		}
	case []any:
		for _, e := range v {
			found = append(found, secretPaths(path, e)...)
		}
	case map[string]any:
		for k, e := range v {
			found = append(found, secretPaths(path+"."+k, e)...)
		}
	}
	return found
}

// A rule finds what is in any field of any event, but for words that the program branches on, names of
// definitions, and hashes: testdata/kept.txt lists these. A field that is added and kept must be added there.
func TestRedactionOfEveryField(t *testing.T) {
	var kept []string
	for _, zero := range messages.Events() {
		for h, at := (hiding{}), 1; h.texts >= at-1; at++ {
			h = hiding{at: at}
			v := reflect.New(reflect.TypeOf(zero)).Elem()
			h.fill(v)
			f := &messages.Frame{Events: []messages.Event{v.Interface().(messages.Event)}}
			h.fill(reflect.ValueOf(&f.Cause).Elem())
			h.fill(reflect.ValueOf(&f.Trace).Elem())
			redactor(t, redact.Rule{Name: "rule", Pattern: regexp.MustCompile(`secret`)}).Frame(f)
			kept = append(kept, secretPaths(zero.EventType(), tree(t, f.Events[0]))...)
			kept = append(kept, secretPaths("cause", tree(t, f.Cause))...)
			kept = append(kept, secretPaths("trace", tree(t, f.Trace))...)
		}
	}
	slices.Sort(kept)
	got := strings.Join(slices.Compact(kept), "\n") + "\n"
	if want, err := os.ReadFile(filepath.Join("testdata", "kept.txt")); err != nil || got != string(want) {
		t.Errorf("%v: got kept fields\n%s\nwant\n%s", err, got, want)
	}
}

// tree returns a value as it is in JSON.
func tree(t *testing.T, v any) (tree any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}
