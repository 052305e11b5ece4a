package projections

import (
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// UsedBy returns the usage and cost of every event that ends a model call.
func TestUsedBy(t *testing.T) {
	usage, cost := messages.Usage{Input: 3, Output: 5}, messages.Cost(7)
	for _, zero := range messages.Events() {
		v := reflect.New(reflect.TypeOf(zero)).Elem()
		f := v.FieldByName("Usage")
		if !messages.Is(zero.EventType(), messages.EndsModelCall) || !f.IsValid() {
			continue
		}
		f.Set(reflect.ValueOf(usage))
		v.FieldByName("Cost").Set(reflect.ValueOf(cost))
		if gotUsage, gotCost, _ := UsedBy(v.Interface().(messages.Event)); gotUsage != usage || gotCost != cost {
			t.Errorf("%s: got %+v, cost %d, want %+v, cost %d", zero.EventType(), gotUsage, gotCost, usage, cost)
		}
	}
}
