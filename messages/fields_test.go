package messages

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Every field of every event is in a stored sample: TestGoldenFramesRead fails when one is
// renamed, removed or given another type without a new schema version.
func TestGoldenFramesHaveAllFields(t *testing.T) { // A84
	stored := make(map[string]bool)
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		addFields(t, stored, text)
	}
	for name, ev := range samples() {
		fields := make(map[string]bool)
		addFields(t, fields, frameJSON(t, sampleFrame(ev)))
		maps.DeleteFunc(fields, func(field string, _ bool) bool { return stored[field] })
		switch {
		case len(fields) == 0:
		case *update:
			writeGrown(t, name, sampleFrame(ev))
		default:
			t.Errorf("no golden frame of %s has the fields %q: run go test ./messages -run Golden -update and keep the new file", name, slices.Sorted(maps.Keys(fields)))
		}
	}
}

// writeGrown stores a sample of an event that has more fields than its stored samples of the same
// schema version.
func writeGrown(t *testing.T, name string, f *Frame) {
	t.Helper()
	for i := 2; ; i++ {
		path := filepath.Join("testdata", fmt.Sprintf("%s.v%d.%d", name, eventsByType[name].version(), i))
		if _, err := os.Stat(path + ".hex"); err == nil {
			continue
		}
		writeNew(t, path+".hex", wrapHex(mustEncode(t, f)))
		writeNew(t, path+".json", frameJSON(t, f))
		return
	}
}

// addFields adds the fields of a frame's events to a set, each as its event's type and its path.
func addFields(t *testing.T, to map[string]bool, frame []byte) {
	t.Helper()
	var f struct {
		Events []struct {
			Type string
			Data json.RawMessage
		}
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		t.Fatal(err)
	}
	var add func(path string, v any)
	add = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, v := range v {
				add(path+"."+k, v)
			}
		case []any:
			for _, v := range v {
				add(path+"[]", v)
			}
		default:
			to[path] = true
		}
	}
	for _, ev := range f.Events {
		add(ev.Type, decodeAny(t, ev.Data))
	}
}
