package projections

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// manyEvents returns the events of n turns and of a running one, with every form of entry and every
// mark.
func manyEvents(n int) (events []messages.Event) {
	long := strings.Repeat("word ", 40)
	for i := range n {
		turn, in := messages.TurnID(fmt.Sprint("t", i)), fmt.Sprint("u", i)
		call := messages.CallID(fmt.Sprint("c", i))
		events = append(events, input(in, long), started(turn, in), answer(turn, "let me see", call), done(turn, call, long))
		switch i % 4 {
		case 0:
			events = append(events, messages.TurnFailed{Turn: turn})
		case 1:
			events = append(events, messages.TurnAborted{Turn: turn, Note: "stopped"})
		default:
			events = append(events, answer(turn, long), messages.TurnCompleted{Turn: turn})
		}
	}
	for cut := range messages.EventNumber(2) { // the second includes the first
		events = append(events, messages.HistoryCompacted{Upto: 12 + 6*cut, Text: "what went before", How: "summary"})
	}
	events = append(events, messages.AgentForked{})
	return append(events, input("now", "hi"), started("tn", "now"), answer("tn", "", "a", "b", "large"), done("tn", "b", "B"),
		messages.ToolCompleted{Turn: "tn", Call: "large", Blob: &messages.Blob{SHA256: "00", Size: 1 << 20}},
		messages.ToolFailed{Turn: "tn", Call: "a", Message: "no"}, messages.TurnFailed{Turn: "tn", Withheld: 3, Note: "refused"},
		input("more", long), started("to", "more"), answer("to", ""), input("most", long), started("tp", "most"),
		messages.TurnFailed{Turn: "tp", Withheld: 3, Note: "refused again"}, messages.TurnStarted{Turn: "tq", Continues: "tp"},
		answer("tq", "", "a", "b"), done("tq", "b", "B"),
		messages.TurnFailed{Turn: "tq"}, messages.TurnStarted{Turn: "tr", Continues: "tq"}, input("later", "and then"))
}

// restored returns h after writing and reading it.
func restored(t testing.TB, h *History) *History {
	t.Helper()
	b, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back := &History{}
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	return back
}

// cleared returns what a clear makes of a history, which stays what it is.
func cleared(t testing.TB, h *History) string {
	t.Helper()
	c := restored(t, h)
	c.Apply(100_000, messages.AgentCleared{})
	return lines(c)
}

// A history that is written and read after any events equals one that was not, and still does after
// later events.
func TestHistoryBinary(t *testing.T) { // A27, A87
	events := manyEvents(9)
	live, stored := &History{}, &History{}
	for i, ev := range events {
		live.Apply(messages.EventNumber(i+1), ev)
		stored.Apply(messages.EventNumber(i+1), ev)
		if i%3 == 0 {
			stored.Digest()
		}
		stored = restored(t, stored)
		if lines(live) != lines(stored) || live.Digest("x") != restored(t, stored).Digest("x") || live.Size() != stored.Size() || live.Len() != stored.Len() ||
			live.Omitted() != stored.Omitted() || live.compacted != stored.compacted || cleared(t, live) != cleared(t, stored) {
			t.Fatalf("after event %d\ngot\n%s\nwant\n%s", i+1, lines(stored), lines(live))
		}
		size, blobs := 0, false
		for _, item := range live.Items() {
			size, blobs = size+sizeOf(item), blobs || item.HasBlob()
		}
		if live.HasBlobs() != blobs || stored.HasBlobs() != blobs {
			t.Fatalf("after event %d: blobs: got %t and %t, want %t", i+1, live.HasBlobs(), stored.HasBlobs(), blobs)
		}
		if live.Size() != size {
			t.Fatalf("after event %d: size: got %d, want %d", i+1, live.Size(), size)
		}
		again := *stored
		again.digested, again.sum = live.digested, live.sum
		if a, b := *live, again; !reflect.DeepEqual(a.entries, b.entries) || !reflect.DeepEqual(a.waiting, b.waiting) || !reflect.DeepEqual(a.open, b.open) || !reflect.DeepEqual(a.continued, b.continued) ||
			!reflect.DeepEqual(a.removed, b.removed) || a.accepted != b.accepted || a.refused != b.refused {
			t.Fatalf("after event %d\ngot  %+v\nwant %+v", i+1, b, a)
		}
	}
}

// Every field of a history and its parts is listed here: either the binary form has it, or it is
// derived.
func TestHistoryBinaryHasAllFields(t *testing.T) {
	for kind, known := range map[reflect.Type]string{
		reflect.TypeFor[History]():      "entries waiting open size compacted omitted continued accepted refused removed shown plain digested sum baseline",
		reflect.TypeFor[entry]():        "n turn text item call form mark",
		reflect.TypeFor[waitingInput](): "id content",
		reflect.TypeFor[openCall]():     "turn call index",
		reflect.TypeFor[withheld]():     "turn entries calls",
		reflect.TypeFor[State]():        "value patched baseline",
	} {
		for i := range kind.NumField() {
			if name := kind.Field(i).Name; !strings.Contains(" "+known+" ", " "+name+" ") {
				t.Errorf("%s.%s is new: write and read it in projections/snapshot.go, use it in manyEvents, raise turn.FoldVersion, and name it here", kind, name)
			}
		}
	}
	if plainCall >= 1<<formBits || noted<<formBits >= sameTurn {
		t.Error("forms or marks do not fit their bits")
	}
}

// A call with additional fields keeps them.
func TestHistoryBinaryKeepsAllOfACall(t *testing.T) { // A87
	of := reflect.TypeFor[messages.Item]()
	for i := range of.NumField() {
		item := messages.Item{Type: messages.ItemCall, CallID: "c", Name: "f", Arguments: "{}", ID: "i"}
		switch v := reflect.ValueOf(&item).Elem().Field(i); v.Interface().(type) {
		case messages.Content:
			v.Set(reflect.ValueOf(messages.TextContent("x")))
		case json.RawMessage:
			v.SetBytes([]byte("{}"))
		case *messages.Blob:
			v.Set(reflect.ValueOf(&messages.Blob{SHA256: "00", Size: 1}))
		default:
			v.SetString("other")
		}
		h := historyOf(messages.ModelCompleted{Turn: "t", Items: []messages.Item{item, item}})
		for n, e := range restored(t, h).entries[:2] {
			if e.item == nil || !reflect.DeepEqual(*e.item, item) {
				t.Errorf("with %s: entry %d: got %+v, want %+v", of.Field(i).Name, n, e.item, item)
			}
		}
	}
}

// Texts of all sizes are read as they were written. Texts that remain after a compaction do not keep
// the removed ones in memory.
func TestHistoryBinaryOfTexts(t *testing.T) { // A27
	var events []messages.Event
	for i, size := range []int{0, 1, blockSize - 1, blockSize, blockSize + 1, 3 * blockSize, 7, blockSize / 2, blockSize/2 - 3, 1} {
		turn := messages.TurnID(fmt.Sprint("t", i))
		events = append(events, started(turn), answer(turn, strings.Repeat(string(rune('a'+i)), size), "c"), done(turn, "c", strings.Repeat("x", size)), messages.TurnCompleted{Turn: turn})
	}
	h := historyOf(events...)
	if got, want := lines(restored(t, h)), lines(h); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	h = historyOf(ordinaryTurns(5000)...)
	read := restored(t, h)
	read.Apply(40_000, messages.HistoryCompacted{Upto: h.entries[len(h.entries)-5].n, Text: "what went before", How: "summary"})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	runtime.KeepAlive(read)
	read = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	if size := int64(before.HeapAlloc) - int64(after.HeapAlloc); size > 100<<10 {
		t.Errorf("bytes of a history of 5 items out of 20,000: got %d, want at most %d", size, 100<<10)
	}
	runtime.KeepAlive(h)
}

// ordinaryTurns returns the events of n turns of four items each.
func ordinaryTurns(n int) (events []messages.Event) {
	for i := range n {
		turn, in, call := messages.TurnID(fmt.Sprint("t", i)), fmt.Sprint("u", i), messages.CallID(fmt.Sprint("call_", i))
		events = append(events, input(in, "What is 17 times 19, and why?"), started(turn, in), answer(turn, "", call), done(turn, call, "323"),
			answer(turn, "It is 323, since 17 times 20 is 340, and 17 less is 323."), messages.TurnCompleted{Turn: turn})
	}
	return events
}

func TestStateBinary(t *testing.T) { // A87
	for i, patch := range []string{"", `{}`, `{"a":{"b":[1,2.50,1e400,"x<y"]}}`, `null`, `7`, "", `{}`, `{"a":[1.50]}`, `null`} {
		var s, back State
		forked := i > 4
		if patch != "" {
			s.Apply(1, messages.StatePatched{Patch: []byte(patch)})
		}
		if forked {
			s.Apply(2, messages.AgentForked{})
		}
		b, err := s.MarshalBinary()
		if err == nil {
			err = back.UnmarshalBinary(b)
		}
		if err != nil || !reflect.DeepEqual(s, back) {
			t.Errorf("%s: got %+v, error %v, want %+v", patch, back, err, s)
		}
	}
}

// Any bytes are either read or refused, and a history that was read can be used.
func FuzzHistoryBinary(f *testing.F) {
	b, err := historyOf(manyEvents(4)...).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &History{}
		if h.UnmarshalBinary(b) != nil {
			return
		}
		h.Items()
		h.View()
		h.Digest()
		back := restored(t, h)
		if lines(h) != lines(back) {
			t.Errorf("second read: got\n%s\nwant\n%s", lines(back), lines(h))
		}
		if s := (&State{}); s.UnmarshalBinary(b) == nil && !bytes.Equal(b, nil) {
			s.JSON()
		}
	})
}

// BenchmarkHistoryBinary stores and reads a history of 1,000 items.
func BenchmarkHistoryBinary(b *testing.B) {
	h := historyOf(ordinaryTurns(250)...)
	stored, err := h.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.MarshalBinary(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := new(History).UnmarshalBinary(stored); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(h.Len()), "items")
		b.ReportMetric(float64(len(stored)), "bytes")
	})
}

// A snapshot of a history with many blobs takes the memory of their references only.
func TestSnapshotOfManyBlobs(t *testing.T) { // A36
	var h History
	apply := func(ev messages.Event) { h.Apply(messages.EventNumber(h.Len()+1), ev) }
	apply(started("t", "u"))
	for i := range 1000 {
		call := messages.CallID(fmt.Sprint("c", i))
		apply(answer("t", "", call))
		apply(messages.ToolCompleted{Turn: "t", Call: call, Blob: &messages.Blob{SHA256: messages.DigestOf([]byte(call)), Size: 1 << 20}})
	}
	if h.Size() < 1000<<20 {
		t.Fatalf("size: got %d, want at least %d", h.Size(), 1000<<20)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	restored(t, &h)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("bytes for a snapshot of %d references: got %d, want at most %d", h.Len(), n, 32<<20)
	}
}
