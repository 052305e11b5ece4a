package index

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The frames of every event type that changes the index are decoded for it.
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
		for i := range ev.NumField() { // of the turn and call above
			if f := ev.Field(i); f.Kind() == reflect.String {
				f.SetString("x")
			}
		}
		before := views()
		apply(3, ev.Interface().(messages.Event))
		changed := views() != before
		if name := zero.EventType(); changed && !indexed(name) && !ends(name) {
			t.Errorf("indexed(%s): got false, want true, since it changes the index", name)
		} else if changed {
			changes++
		}
	}
	if changes < 15 {
		t.Errorf("event types that change the index: got %d, want at least 15", changes)
	}
}
