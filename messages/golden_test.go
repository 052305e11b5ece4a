package messages

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// update writes missing golden frames. Existing ones are never rewritten, since frames of
// released versions must stay readable.
var update = flag.Bool("update", false, "write missing golden frames to testdata, and the answers of refusals.txt; existing frames are never changed")

// goldens returns frames of the newest schema versions: one for each event type, and those of an
// ordinary turn.
func goldens() map[string]*Frame {
	frames := make(map[string]*Frame)
	for name, ev := range samples() {
		frames[fmt.Sprintf("%s.v%d", name, eventsByType[name].version())] = sampleFrame(ev)
	}
	for i, f := range ordinaryTurn() {
		frames[fmt.Sprintf("turn.frame%d", i+1)] = f
	}
	frames["blobs"] = blobFrame()
	frames["person"] = sampleFrame(samples()["child.decided"])
	frames["first.frame"] = &Frame{ID: "x", First: 1, Time: testTime, Events: []Event{AgentCreated{Agent: testAgent.Full()}}}
	return frames
}

func frameJSON(t *testing.T, f *Frame) []byte {
	t.Helper()
	type event struct {
		Type string
		Data Event
	}
	events := make([]event, len(f.Events))
	for i, ev := range f.Events {
		events[i] = event{ev.EventType(), ev}
	}
	b, err := json.MarshalIndent(struct {
		Frame
		Events []event
	}{*f, events}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// wrapHex returns b in hex, 32 bytes a line.
func wrapHex(b []byte) []byte {
	var out bytes.Buffer
	for len(b) > 0 {
		n := min(32, len(b))
		fmt.Fprintf(&out, "%x\n", b[:n])
		b = b[n:]
	}
	return out.Bytes()
}

func writeNew(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

func TestGoldenFramesRead(t *testing.T) { // A84
	for name, f := range goldens() {
		path := filepath.Join("testdata", name)
		if *update {
			writeNew(t, path+".hex", wrapHex(mustEncode(t, f)))
			writeNew(t, path+".json", frameJSON(t, f))
		}
		if _, err := os.Stat(path + ".hex"); err != nil {
			t.Errorf("%s has no golden frame: run go test ./messages -run Golden -update and keep the file", name)
		}
	}
	paths, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(paths) == 0 {
		t.Fatalf("golden frames: got %d files, error %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
		if err != nil {
			t.Fatal(path, err)
		}
		f, err := DecodeFrame(testAgent, b)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want, err := os.ReadFile(strings.TrimSuffix(path, ".hex") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		// The file may lack fields that were added later. The others must be equal.
		if missing := lacks(decodeAny(t, frameJSON(t, f)), decodeAny(t, want), ""); missing != "" {
			t.Errorf("%s: decoded frame differs: %s", path, missing)
		}
	}
}

func decodeAny(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// lacks returns where got does not contain want, or "".
func lacks(got, want any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		m, _ := got.(map[string]any)
		for k, v := range want {
			if l := lacks(m[k], v, path+"."+k); l != "" {
				return l
			}
		}
		return ""
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return fmt.Sprintf("%s has %d entries, want %d", path, len(list), len(want))
		}
		for i, v := range want {
			if l := lacks(list[i], v, fmt.Sprintf("%s[%d]", path, i)); l != "" {
				return l
			}
		}
		return ""
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

// A frame is encoded to the bytes of its golden file. A field added to its events changes them.
func TestGoldenFramesAreWritten(t *testing.T) {
	text, err := os.ReadFile("testdata/first.frame.hex")
	if err != nil {
		t.Fatal(err)
	}
	if got := wrapHex(mustEncode(t, goldens()["first.frame"])); !bytes.Equal(got, text) {
		t.Errorf("got\n%swant\n%s", got, text)
	}
}
