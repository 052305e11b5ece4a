package projections

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// compacted returns the items that a model is shown, a word for each.
func compacted(h *History) string {
	var words []string
	for _, item := range h.Items() {
		switch item.Type {
		case messages.ItemCall:
			words = append(words, "call:"+string(item.CallID))
		case messages.ItemCallOutput:
			words = append(words, "result:"+string(item.CallID))
		default:
			words = append(words, item.Role[:1]+":"+item.Content.Text())
		}
	}
	return strings.Join(words, " ")
}

// runningTurn returns a history of two short turns and a running one, and its newest event. Each
// step of the running turn has two calls, whose results arrive in reverse order.
func runningTurn(steps int) (h *History, n messages.EventNumber) {
	h = &History{}
	apply := func(events ...messages.Event) {
		for _, ev := range events {
			n++
			h.Apply(n, ev)
		}
	}
	for i, turn := range []messages.TurnID{"t1", "t2", "t3"} {
		id := fmt.Sprint("u", i+1)
		apply(messages.InputAccepted{Input: id, Content: messages.TextContent(id)}, messages.TurnStarted{Turn: turn, Inputs: []string{id}})
		if i < 2 {
			apply(messages.ModelCompleted{Turn: turn, Items: []messages.Item{messages.Text(messages.RoleAssistant, "a"+id[1:])}},
				messages.TurnCompleted{Turn: turn, Inputs: []string{id}})
		}
	}
	for s := range steps {
		a, b := messages.CallID(fmt.Sprint("a", s)), messages.CallID(fmt.Sprint("b", s))
		apply(messages.ModelCompleted{Turn: "t3", Items: []messages.Item{{Type: messages.ItemCall, CallID: a, Arguments: `{"x":1}`}, {Type: messages.ItemCall, CallID: b}}},
			messages.ToolCompleted{Turn: "t3", Call: b, Output: "2"}, messages.ToolCompleted{Turn: "t3", Call: a, Output: "1"})
	}
	return h, n
}

func TestCut(t *testing.T) { // A86
	for _, tc := range []struct {
		steps, keep   int
		dropped, kept int
		want          string
	}{
		{0, 1, 4, 1, "d:… u:u3"},
		{0, 2, 2, 3, "d:… u:u2 a:a2 u:u3"},
		{0, 3, 2, 3, "d:… u:u2 a:a2 u:u3"},
		{0, 4, 0, 5, "u:u1 a:a1 u:u2 a:a2 u:u3"}, // the input of a turn that is cut within stays
		{0, 5, 0, 5, "u:u1 a:a1 u:u2 a:a2 u:u3"},
		{1, 1, 4, 5, "d:… u:u3 call:a0 call:b0 result:a0 result:b0"},
		{2, 1, 8, 5, "d:… u:u3 call:a1 call:b1 result:a1 result:b1"},
		{2, 5, 4, 9, "d:… u:u3 call:a0 call:b0 result:a0 result:b0 call:a1 call:b1 result:a1 result:b1"}, // the turn can stay whole
		{3, 1, 12, 5, "d:… u:u3 call:a2 call:b2 result:a2 result:b2"},
		{3, 0, 12, 5, "d:… u:u3 call:a2 call:b2 result:a2 result:b2"},
		{3, 4, 12, 5, "d:… u:u3 call:a2 call:b2 result:a2 result:b2"},
		{4, 5, 12, 9, "d:… u:u3 call:a2 call:b2 result:a2 result:b2 call:a3 call:b3 result:a3 result:b3"},
		{2, 99, 0, 13, "u:u1 a:a1 u:u2 a:a2 u:u3 call:a0 call:b0 result:a0 result:b0 call:a1 call:b1 result:a1 result:b1"},
	} {
		h, n := runningTurn(tc.steps)
		cut := h.Cut(tc.keep, 0)
		if cut.Dropped != tc.dropped || cut.Dropped > 0 && cut.Kept != tc.kept {
			t.Errorf("%d steps, keep %d: got %+v, want %d dropped, %d kept", tc.steps, tc.keep, cut, tc.dropped, tc.kept)
		}
		if cut.Upto != 0 {
			if cut.Digest != h.DigestBefore(cut.Upto) {
				t.Errorf("%d steps, keep %d: digest: got %s, want %s", tc.steps, tc.keep, cut.Digest, h.DigestBefore(cut.Upto))
			}
			h.Apply(n+1, messages.HistoryCompacted{Upto: cut.Upto, Text: "…"})
		}
		if got := compacted(h); got != tc.want {
			t.Errorf("%d steps, keep %d: got %s, want %s", tc.steps, tc.keep, got, tc.want)
		}
	}
}

// A compacted history is extended as any other: results are matched with their calls, digest and
// size are those of its items, and it can be compacted again.
func TestCompactedHistoryIsExtended(t *testing.T) { // A86
	h, n := runningTurn(2)
	h.Apply(n+1, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{{Type: messages.ItemCall, CallID: "c"}}})
	h.Digest()
	cut := h.Cut(2, 0)
	h.Apply(n+2, messages.HistoryCompacted{Upto: cut.Upto, Text: "one"})
	h.Apply(n+3, messages.ToolCompleted{Turn: "t3", Call: "c", Output: "3"})
	if got := compacted(h); got != "d:one u:u3 call:c result:c" || h.Omitted() != 12 {
		t.Errorf("after one compaction: got %s, %d omitted, want 12", got, h.Omitted())
	}
	h.Apply(n+4, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{{Type: messages.ItemCall, CallID: "d"}}})
	h.Apply(n+5, messages.ToolCompleted{Turn: "t3", Call: "d", Output: "4"})
	again := h.Cut(2, 0)
	h.Apply(n+6, messages.HistoryCompacted{Upto: again.Upto, Text: "two"})
	if got := compacted(h); got != "d:two u:u3 call:d result:d" || again.Dropped != 2 || h.Omitted() != 14 {
		t.Errorf("after two compactions: got %s, cut %+v, %d omitted, want 14", got, again, h.Omitted())
	}
	if again := h.Cut(2, 0); again != (Cut{}) {
		t.Errorf("third cut: got %+v, want none", again)
	}
	h.Apply(n+7, messages.HistoryCompacted{Upto: n + 3, Text: strings.Repeat("long ", 5000)})
	h.Apply(n+8, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{messages.Text(messages.RoleAssistant, "said")}})
	if last := h.Cut(1, 0); last.Size != 1 || last.Summarized != 25_000+1+len("u3") {
		t.Errorf("cut of a long summary: got %+v, want size 1 and %d summarized", last, 25_000+1+len("u3"))
	}
	same := &History{}
	for i, item := range h.Items() {
		same.add(messages.EventNumber(i+1), "", item)
	}
	if h.Size() != same.Size() || h.Digest() != same.Digest() || h.Len() != same.Len() {
		t.Errorf("got size %d, length %d, digest %s, want %d, %d, %s", h.Size(), h.Len(), h.Digest(), same.Size(), same.Len(), same.Digest())
	}
	h.Apply(n+9, messages.AgentCleared{})
	if h.Omitted() != 0 || h.Len() != 0 {
		t.Errorf("cleared history: got %d items, %d omitted, want none", h.Len(), h.Omitted())
	}
}

// A result that is stored as a blob is kept or dropped with its call.
func TestCutWithBlobs(t *testing.T) { // A36, A86
	h, n := runningTurn(0)
	for _, id := range []messages.CallID{"c1", "c2", "c3"} {
		h.Apply(n+1, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{{Type: messages.ItemCall, CallID: id}}})
		h.Apply(n+2, messages.ToolCompleted{Turn: "t3", Call: id, Blob: &messages.Blob{SHA256: "d", Size: 1 << 20}})
		n += 2
	}
	for most, want := range map[int]int{0: 2<<20 + 8, 100: 2*100 + 8, 4 << 20: 2<<20 + 8} {
		if cut := h.Cut(2, most); cut.Size != want || cut.Summarized != 2*MaxSummarized+10 {
			t.Errorf("%d bytes of each are shown: got %+v, want size %d", most, cut, want)
		}
	}
	cut := h.Cut(2, 0)
	h.Apply(n+1, messages.HistoryCompacted{Upto: cut.Upto, Text: "…"})
	if got := compacted(h); got != "d:… u:u3 call:c3 result:c3" {
		t.Errorf("got %s with %+v, want d:… u:u3 call:c3 result:c3", got, cut)
	}
}
