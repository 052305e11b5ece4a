package index

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A frame is decoded for the index if one of its events changes what the index holds.
func TestIndexedEventsAreThoseThatChangeIt(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"}
	changes := 0
	for _, zero := range messages.Events() {
		effects, usage := projections.EffectsAfter(nil), projections.UsageAfter(nil)
		views := func() string {
			b, err := json.Marshal([]any{effects.List(a), usage.Lines(), usage.Asked()})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		apply := func(n messages.EventNumber, ev messages.Event) {
			effects.Apply(n, ev)
			usage.Apply(n, ev)
		}
		apply(1, messages.ToolRequested{Turn: "x", Call: "x", Tool: "x"})
		apply(2, messages.ModelRequested{Turn: "x", Call: "x"})
		ev := reflect.New(reflect.TypeOf(zero)).Elem()
		for i := range ev.NumField() { // an event about that turn and that call
			if f := ev.Field(i); f.Kind() == reflect.String {
				f.SetString("x")
			}
		}
		before := views()
		apply(3, ev.Interface().(messages.Event))
		changed := views() != before
		if name := zero.EventType(); changed && !indexed(name) && !ends(name) {
			t.Errorf("%s changes what the index holds, and its frames are not decoded", name)
		} else if changed {
			changes++
		}
	}
	if changes < 15 {
		t.Errorf("%d types of events change it: the test does not find them", changes)
	}
}
