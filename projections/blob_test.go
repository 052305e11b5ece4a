package projections_test

import (
	"strconv"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// historyWith returns the history of one turn. blob returns each payload as text or as a blob.
func historyWith(blob func(text string) (string, *messages.Blob)) *projections.History {
	h := &projections.History{}
	n := messages.EventNumber(0)
	apply := func(ev messages.Event) { n++; h.Apply(n, ev) }
	text, ref := blob("input")
	apply(messages.InputAccepted{Input: "u1", Content: messages.Content{{Type: "text", Text: text, Blob: ref}}})
	apply(messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}})
	apply(messages.ModelRequested{Turn: "t2", Call: "m3", Inputs: []string{"u1"}})
	apply(messages.ModelCompleted{Turn: "t2", Call: "m3", Items: []messages.Item{{Type: messages.ItemCall, CallID: "c1", Name: "x", Arguments: "{}"}}})
	text, ref = blob("result")
	apply(messages.ToolCompleted{Turn: "t2", Call: "c1", Output: text, Blob: ref})
	text, ref = blob("answer")
	apply(messages.ModelCompleted{Turn: "t2", Call: "m6", Items: []messages.Item{{Type: messages.ItemMessage, Role: messages.RoleAssistant, Content: messages.Content{{Type: "text", Text: text, Blob: ref}}}}, Blob: ref})
	apply(messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}, Output: text, Blob: ref})
	return h
}

// sized returns payloads as blobs of the given size.
func sized(size int64) func(string) (string, *messages.Blob) {
	return func(text string) (string, *messages.Blob) {
		return "", &messages.Blob{SHA256: messages.DigestOf([]byte(text)), Size: size}
	}
}

// A history with blobs has the same items as one with the payloads, in the same order.
func TestHistoryOfBlobs(t *testing.T) { // A36
	inline := historyWith(func(text string) (string, *messages.Blob) { return text, nil })
	blobs := historyWith(sized(100))
	if inline.Len() != 4 || blobs.Len() != 4 {
		t.Fatalf("items: got %d and %d, want 4", inline.Len(), blobs.Len())
	}
	texts := map[messages.Digest]string{}
	for _, text := range []string{"input", "result", "answer"} {
		texts[messages.DigestOf([]byte(text))] = text
	}
	for i, item := range blobs.Items() {
		whole, err := item.Whole(func(b messages.Blob, _ messages.BlobForm) (string, error) { return texts[b.SHA256], nil })
		if want := inline.Items()[i]; err != nil || whole.Output != want.Output || whole.Content.Text() != want.Content.Text() || whole.CallID != want.CallID || whole.Role != want.Role {
			t.Errorf("item %d: got %+v, error %v, want %+v", i, whole, err, want)
		}
	}
	if blobs.Digest() == inline.Digest() || blobs.Digest() != historyWith(sized(100)).Digest() {
		t.Error("digest: want the same for the same blobs, another for payloads in the events")
	}
	for _, which := range []string{"input", "result", "answer"} {
		other := historyWith(func(text string) (string, *messages.Blob) {
			if text == which {
				text += "!"
			}
			return sized(100)(text)
		})
		if other.Digest() == blobs.Digest() {
			t.Errorf("digest with another %s: got the same, want another", which)
		}
	}
}

func TestSizeOfBlobs(t *testing.T) {
	const arguments = len("{}")
	for _, c := range []struct {
		size      int64
		most      int
		want, def int
	}{
		{100, 0, 300, 300},
		{100, 40, 120, 300},
		{5 << 20, 0, 3 << 20, 3 << 20},
		{5 << 20, projections.DefaultShow, 3 << 20, 3 << 20},
		{5 << 20, 2 << 20, 6 << 20, 3 << 20},
		{5 << 20, 9 << 20, 15 << 20, 3 << 20},
	} {
		h := historyWith(sized(c.size))
		if got, def := h.SizeShown(c.most), h.Size(); got != c.want+arguments || def != c.def+arguments {
			t.Errorf("%d bytes, at most %d: got %d and %d, want %d and %d", c.size, c.most, got, def, c.want+arguments, c.def+arguments)
		}
	}
}

// SizeShown counts only the newest of many large texts in full, as a request does. Otherwise a
// budget would refuse requests that cost less.
func TestSizeOfManyBlobs(t *testing.T) { // A17, A36
	for _, c := range []struct{ most, each, whole int }{
		{0, 1 << 20, 32}, {4 << 20, 2 << 20, 16}, {64 << 20, 2 << 20, 32}, {2 << 10, 2 << 10, 40},
	} {
		var h projections.History
		n := messages.EventNumber(0)
		for i := range 40 {
			call := messages.CallID(strconv.Itoa(i))
			b := &messages.Blob{SHA256: messages.DigestOf([]byte(call)), Size: 2 << 20}
			for _, ev := range []messages.Event{
				messages.ModelCompleted{Turn: "t", Call: "m", Items: []messages.Item{{Type: messages.ItemCall, CallID: call}}},
				messages.ToolCompleted{Turn: "t", Call: call, Blob: b},
			} {
				n++
				h.Apply(n, ev)
			}
		}
		want := c.whole*c.each + (40-c.whole)*projections.ShowBriefly
		if got := h.SizeShown(c.most); got != want {
			t.Errorf("at most %d of each: got %d, want %d", c.most, got, want)
		}
	}
}

// HasBlobs reports blobs of items that were added after a compaction.
func TestHasBlobsAfterCompaction(t *testing.T) { // A36
	h := historyWith(func(text string) (string, *messages.Blob) { return text, nil })
	if h.HasBlobs() {
		t.Error("HasBlobs of a history of texts: got true, want false")
	}
	h.Apply(8, messages.HistoryCompacted{Upto: 7, Text: "what went before", How: messages.CompactSummary})
	ref := &messages.Blob{SHA256: messages.DigestOf(nil), Size: 1}
	h.Apply(9, messages.InputAccepted{Input: "u9", Content: messages.Content{{Type: "text", Blob: ref}}})
	h.Apply(10, messages.TurnStarted{Turn: "t10", Inputs: []string{"u9"}})
	if !h.HasBlobs() {
		t.Error("HasBlobs after a compaction and a blob: got false, want true")
	}
}
