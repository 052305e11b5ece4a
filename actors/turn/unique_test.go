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
