package messages

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// blobFrame returns a frame with a blob in every field that can hold one.
func blobFrame() *Frame {
	b := func(of string) *Blob { return &Blob{SHA256: DigestOf([]byte(of)), Size: int64(len(of)) << 20} }
	return sampleFrame(
		InputAccepted{Input: "u1", Disposition: Started, Turn: "t2", Content: Content{
			{Type: "text", Blob: b("text")}, {Type: "image_url", Detail: "low", Blob: b("image")}, {Type: "text", Text: "small"}}},
		ModelCompleted{Turn: "t2", Step: 1, Call: "m3", Items: []Item{
			{Type: ItemMessage, Role: RoleAssistant, Content: Content{{Type: "text", Blob: b("answer")}}, RawBlob: b("raw"), Provider: "openai"},
			{Type: ItemCallOutput, CallID: "c0", Blob: b("output")}}, Blob: b("answer")},
		ToolCompleted{Turn: "t2", Call: "c1", Blob: b("result")},
		TurnCompleted{Turn: "t2", Inputs: []string{"u1"}, Steps: 1, Blob: b("answer")},
		TurnAborted{Turn: "t2"})
}

// Whole returns an event with its blobs replaced by their payloads and leaves the given event
// unchanged.
func TestWhole(t *testing.T) { // A36
	var forms []BlobForm
	for _, ev := range blobFrame().Events {
		before, _ := json.Marshal(ev)
		named := BlobsOf(ev)
		n := 0
		whole, err := Whole(ev, func(b Blob, form BlobForm) (string, error) {
			if b != named[n] {
				t.Errorf("%s: load of blob %d: got %v, want %v", ev.EventType(), n, b, named[n])
			}
			n++
			forms = append(forms, form)
			return `"` + string(b.SHA256[:8]) + `"`, nil
		})
		if after, _ := json.Marshal(ev); err != nil || string(before) != string(after) {
			t.Errorf("%s after Whole: error %v\ngot  %s\nwant %s", ev.EventType(), err, after, before)
		}
		text, _ := json.Marshal(WithoutBlobs(whole))
		for _, b := range named {
			if !strings.Contains(string(text), string(b.SHA256[:8])) || strings.Contains(string(text), string(b.SHA256)) {
				t.Errorf("%s: got %s, want the payload of %v and no reference to it", ev.EventType(), text, b)
			}
		}
		if len(named) == 0 && !reflect.DeepEqual(whole, ev) {
			t.Errorf("%s without blobs: got %+v, want %+v", ev.EventType(), whole, ev)
		}
	}
	if want := []BlobForm{BlobText, BlobImage, BlobText, BlobJSON, BlobText, BlobText, BlobText}; !reflect.DeepEqual(forms, want) {
		t.Errorf("forms: got %v, want %v", forms, want)
	}
}

// A whole frame has the payloads of all of its events and no references; the given frame is unchanged.
func TestWholeFrame(t *testing.T) { // A36
	f := blobFrame()
	whole, err := f.Whole(func(b Blob, _ BlobForm) (string, error) { return `"` + string(b.SHA256[:8]) + `"`, nil })
	if err != nil || whole.First != f.First || whole.Cause != f.Cause || !reflect.DeepEqual(f, blobFrame()) {
		t.Errorf("got %+v of %+v, %v", whole, f, err)
	}
	for i, ev := range whole.Events {
		text, _ := json.Marshal(ev)
		for _, b := range BlobsOf(f.Events[i]) {
			if !strings.Contains(string(text), string(b.SHA256[:8])) || len(BlobsOf(ev)) > 0 {
				t.Errorf("got %s, want the payload of %v and no reference", text, b)
			}
		}
	}
	bad := errors.New("lost")
	if _, err := f.Whole(func(Blob, BlobForm) (string, error) { return "", bad }); !errors.Is(err, bad) {
		t.Errorf("got error %v, want %v", err, bad)
	}
}

// Whole returns the error of a blob that cannot be loaded.
func TestWholeFails(t *testing.T) {
	lost := errors.New("lost")
	for _, ev := range blobFrame().Events {
		_, err := Whole(ev, func(Blob, BlobForm) (string, error) { return "", lost })
		if names := len(BlobsOf(ev)) > 0; names != errors.Is(err, lost) {
			t.Errorf("%s: got error %v, want one: %t", ev.EventType(), err, names)
		}
	}
}

// An input cannot name a blob, since its sender might have no right to read it.
func TestInputsNameNoBlobs(t *testing.T) { // A102
	body := `{"content":[{"type":"text","text":"x","blob":{"sha256":"` + strings.Repeat("a", 64) + `","size":1}}]}`
	in, err := ParseInput(testAgent, headers(), []byte(body))
	if err != nil || in.Content.HasBlob() {
		t.Errorf("got %+v, error %v, want no blob", in, err)
	}
}
