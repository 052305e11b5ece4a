package projections

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// compacted is what a model would see, a word for each item.
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

// talk is a history of two short turns and a long one that runs: of steps with two
// calls each, whose results come in another order.
func talk(steps int) (h *History, n messages.EventNumber) {
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
		{0, 4, 0, 5, "u:u1 a:a1 u:u2 a:a2 u:u3"}, // the input of a turn that is cut through stays
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
		h, n := talk(tc.steps)
		cut := h.Cut(tc.keep, 0)
		if cut.Dropped != tc.dropped || cut.Dropped > 0 && cut.Kept != tc.kept {
			t.Errorf("%d steps, keep %d: %+v", tc.steps, tc.keep, cut)
		}
		if cut.Upto != 0 {
			if cut.Digest != h.DigestBefore(cut.Upto) {
				t.Errorf("%d steps, keep %d: the digest is not that of what goes", tc.steps, tc.keep)
			}
			h.Apply(n+1, messages.HistoryCompacted{Upto: cut.Upto, Text: "…"})
		}
		if got := compacted(h); got != tc.want {
			t.Errorf("%d steps, keep %d: %s, want %s", tc.steps, tc.keep, got, tc.want)
		}
	}
}

// Once compacted a history goes on as any other: results find their calls, digest
// and size are those of what it shows, and it can be compacted again.
func TestCompactedHistoryGoesOn(t *testing.T) { // A86
	h, n := talk(2)
	h.Apply(n+1, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{{Type: messages.ItemCall, CallID: "c"}}})
	h.Digest()
	cut := h.Cut(2, 0)
	h.Apply(n+2, messages.HistoryCompacted{Upto: cut.Upto, Text: "one"})
	h.Apply(n+3, messages.ToolCompleted{Turn: "t3", Call: "c", Output: "3"})
	if got := compacted(h); got != "d:one u:u3 call:c result:c" || h.Omitted() != 12 {
		t.Errorf("%s, %d", got, h.Omitted())
	}
	h.Apply(n+4, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{{Type: messages.ItemCall, CallID: "d"}}})
	h.Apply(n+5, messages.ToolCompleted{Turn: "t3", Call: "d", Output: "4"})
	again := h.Cut(2, 0)
	h.Apply(n+6, messages.HistoryCompacted{Upto: again.Upto, Text: "two"})
	if got := compacted(h); got != "d:two u:u3 call:d result:d" || again.Dropped != 2 || h.Omitted() != 14 {
		t.Errorf("%s, %+v, %d", got, again, h.Omitted())
	}
	if again := h.Cut(2, 0); again != (Cut{}) {
		t.Errorf("nothing more can go: %+v", again)
	}
	h.Apply(n+7, messages.HistoryCompacted{Upto: n + 3, Text: strings.Repeat("long ", 5000)})
	h.Apply(n+8, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{messages.Text(messages.RoleAssistant, "said")}})
	if last := h.Cut(1, 0); last.Size != 1 || last.Summarized != 25_000+1+len("u3") {
		t.Errorf("what stands for the rest is no gain: %+v", last)
	}
	same := &History{}
	for i, item := range h.Items() {
		same.add(messages.EventNumber(i+1), "", item)
	}
	if h.Size() != same.Size() || h.Digest() != same.Digest() || h.Len() != same.Len() {
		t.Errorf("size %d and %d, or another digest", h.Size(), same.Size())
	}
	h.Apply(n+9, messages.AgentCleared{})
	if h.Omitted() != 0 || h.Len() != 0 {
		t.Error("cleared, and something is left")
	}
}

// A result that is kept as a blob belongs to its call as any other does.
func TestCutBehindABlob(t *testing.T) { // A36, A86
	h, n := talk(0)
	for _, id := range []messages.CallID{"c1", "c2", "c3"} {
		h.Apply(n+1, messages.ModelCompleted{Turn: "t3", Items: []messages.Item{{Type: messages.ItemCall, CallID: id}}})
		h.Apply(n+2, messages.ToolCompleted{Turn: "t3", Call: id, Blob: &messages.Blob{SHA256: "d", Size: 1 << 20}})
		n += 2
	}
	for most, want := range map[int]int{0: 2<<20 + 8, 100: 2*100 + 8, 4 << 20: 2<<20 + 8} {
		if cut := h.Cut(2, most); cut.Size != want || cut.Summarized != 2*MaxSummarized+10 {
			t.Errorf("%d bytes of each are shown: %+v, want %d", most, cut, want)
		}
	}
	cut := h.Cut(2, 0)
	h.Apply(n+1, messages.HistoryCompacted{Upto: cut.Upto, Text: "…"})
	if got := compacted(h); got != "d:… u:u3 call:c3 result:c3" {
		t.Errorf("%s: %+v", got, cut)
	}
}
