package turn_test

import (
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// Calls get ids that are unique in their turn. Those that are keep them, and what was given is
// not changed: hooks and the provider may hold it.
func TestUniqueCalls(t *testing.T) {
	for name, c := range map[string]struct{ used, given, want []messages.CallID }{
		"unique":          {[]messages.CallID{"c1"}, []messages.CallID{"c2", "c3"}, []messages.CallID{"c2", "c3"}},
		"none":            {nil, nil, nil},
		"empty":           {nil, []messages.CallID{"", ""}, []messages.CallID{"call_1", "call_2"}},
		"used":            {[]messages.CallID{"c1", "c1_1"}, []messages.CallID{"c1"}, []messages.CallID{"c1_2"}},
		"twice":           {nil, []messages.CallID{"c1", "c1", "c1"}, []messages.CallID{"c1", "c1_1", "c1_2"}},
		"one that is new": {[]messages.CallID{"a"}, []messages.CallID{"b", "a", "a_1"}, []messages.CallID{"b", "a_1", "a_1_1"}},
	} {
		items := []messages.Item{messages.Text(messages.RoleAssistant, "so")}
		for _, id := range c.given {
			items = append(items, messages.Item{Type: messages.ItemCall, CallID: id})
		}
		used := append(make([]messages.CallID, 0, 9), c.used...)
		var got []messages.CallID
		for _, item := range turn.UniqueCalls(items, used)[1:] {
			got = append(got, item.CallID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		for i, id := range c.given {
			if items[i+1].CallID != id {
				t.Errorf("%s: the given items were changed: %v", name, items)
			}
		}
		if spare := used[len(used):cap(used)]; spare[0] != "" {
			t.Errorf("%s: the given ids were appended to: %v", name, spare)
		}
	}
}

// An answer that is changed after it was decided does not change its event: its provider may use the
// same items again.
func TestAnswerIsCopied(t *testing.T) {
	s, env := &turn.State{}, turn.Env{Definition: turn.Definition{Digest: "d", Model: "scripted/m", MaxSteps: 5, MaxQueue: 5, MaxAttempts: 1, Parallel: 1}}
	if _, err := s.Decide(env, messages.Input{ID: "i", Content: messages.TextContent("hello")}); err != nil {
		t.Fatal(err)
	}
	items := []messages.Item{messages.Text(messages.RoleAssistant, "so")}
	events, err := s.Decide(env, turn.ModelAnswered{Call: s.Turn.Model.ID, Items: items})
	if err != nil {
		t.Fatal(err)
	}
	items[0] = messages.Text(messages.RoleAssistant, "another answer")
	i := slices.IndexFunc(events, func(ev messages.Event) bool { _, ok := ev.(messages.ModelCompleted); return ok })
	if i < 0 {
		t.Fatalf("the answer was not recorded: %+v", events)
	}
	if got := events[i].(messages.ModelCompleted).Items[0].Content.Text(); got != "so" {
		t.Errorf("the event has the answer %q, want %q", got, "so")
	}
}
