package projections

import (
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// What is streamed of a turn's last answer is what the turn answers.
func TestStreamedAnswer(t *testing.T) {
	blob := &messages.Blob{SHA256: "abc", Size: 9}
	say := func(text string) messages.Item { return messages.Text(messages.RoleAssistant, text) }
	refuse := messages.Item{Type: messages.ItemRefusal, Content: messages.TextContent("no")}
	for name, c := range map[string]struct {
		said messages.ModelCompleted
		want *Output
	}{
		"one text":      {messages.ModelCompleted{Items: []messages.Item{say("yes")}}, &Output{Text: "yes"}},
		"several":       {messages.ModelCompleted{Items: []messages.Item{say("yes"), {Type: messages.ItemReasoning, Content: messages.TextContent("hm")}, refuse}}, &Output{Text: "yes\nno"}},
		"a blob":        {messages.ModelCompleted{Items: []messages.Item{say("cut"), say("rest")}, Blob: blob}, &Output{Blob: blob}},
		"asks for more": {messages.ModelCompleted{Items: []messages.Item{say("one moment"), {Type: messages.ItemCall, Name: "look"}}}, nil},
		"empty":         {messages.ModelCompleted{Finish: messages.FinishEmpty}, &Output{Finish: messages.FinishEmpty}},
	} {
		var turn TurnState
		var o origin
		turn.apply(o.event(1, c.said))
		got := StreamedBy(c.said)
		if got.Kind != StreamEnds || (got.Answer == nil) != (c.want == nil) || c.want != nil && *got.Answer != *c.want {
			t.Errorf("%s: got %+v, want answer %+v", name, got, c.want)
		}
		if (turn.Answer == nil) != (c.want == nil) || c.want != nil && !turn.Answer.Same(got.Answer) {
			t.Errorf("%s: the turn answers %+v, streamed is %+v", name, turn.Answer, got.Answer)
		}
	}
}

// Every event that begins or ends the call of a turn's model changes what its reader gets, and so
// do hooks that answer and the answer of the turn.
func TestStreamedKinds(t *testing.T) {
	var got []string
	for _, ev := range append(messages.Events(), messages.HookDecided{Answer: "enough"}) {
		traits := messages.TraitsOf(ev.EventType())
		ofCall := traits&(messages.BeginsModelCall|messages.EndsModelCall) != 0 && traits&messages.Summarizes == 0
		switch changes := StreamedBy(ev).Kind != StreamUnchanged; {
		case ofCall && !changes:
			t.Errorf("%s changes nothing", ev.EventType())
		case changes && !ofCall:
			got = append(got, ev.EventType())
		}
	}
	if want := []string{"turn.completed", "hook.decided"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Texts are compared as they are, blobs by their hashes, and a text with no blob.
func TestSameOutput(t *testing.T) {
	blob := func(sum messages.Digest) *Output { return &Output{Blob: &messages.Blob{SHA256: sum}} }
	same := [][2]*Output{{{Text: "a"}, {Text: "a", Finish: "length"}}, {blob("1"), blob("1")}}
	differ := [][2]*Output{{{Text: "a\nb"}, {Text: "ab"}}, {blob("1"), blob("2")}, {blob("1"), {Text: "a"}}, {{}, blob("1")}}
	for i, list := range [][][2]*Output{differ, same} {
		for _, pair := range list {
			if got := pair[0].Same(pair[1]); got != (i == 1) {
				t.Errorf("%+v and %+v: got %v", pair[0], pair[1], got)
			}
		}
	}
}
