//go:build unix

package chaos

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprise-dev/reprise/cluster/client"
)

// TestHistoryBites holds that a history is refused if an append is lost, comes too
// late or changes its place, or a read is of the past, and only then.
func TestHistoryBites(t *testing.T) {
	const forever = math.MaxInt64
	put := func(id string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: listed{"a", id}, Call: call, Return: end}
	}
	get := func(ids string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: listed{"a", ""}, Output: ids, Call: call, Return: end}
	}
	for name, c := range map[string]struct {
		ops []porcupine.Operation
		ok  bool
	}{
		"in order":              {[]porcupine.Operation{put("x", 0, 1), put("y", 2, 3), get(" x  y ", 4, 5)}, true},
		"at once":               {[]porcupine.Operation{put("x", 0, 3), put("y", 1, 2), get(" y  x ", 4, 5)}, true},
		"once more":             {[]porcupine.Operation{put("x", 0, 1), put("y", 2, 3), put("x", 4, 5), get(" x  y ", 6, 7)}, true},
		"not known":             {[]porcupine.Operation{put("x", 0, forever), get("", 1, 2), get(" x ", 3, 4)}, true},
		"never":                 {[]porcupine.Operation{put("x", 0, forever), get("", 1, 2)}, true},
		"lost":                  {[]porcupine.Operation{put("x", 0, 1), get("", 2, 3)}, false},
		"doubled":               {[]porcupine.Operation{put("x", 0, 1), get(" x  x ", 2, 3)}, false},
		"the other way round":   {[]porcupine.Operation{put("x", 0, 1), put("y", 2, 3), get(" y  x ", 4, 5)}, false},
		"a read of the past":    {[]porcupine.Operation{put("x", 0, 9), get(" x ", 1, 2), get("", 3, 4)}, false},
		"two orders":            {[]porcupine.Operation{put("x", 0, 9), put("y", 0, 9), get(" x  y ", 1, 2), get(" y  x ", 3, 4)}, false},
		"what no one has given": {[]porcupine.Operation{get(" x ", 0, 1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if ok := porcupine.CheckOperations(listModel, c.ops); ok != c.ok {
				t.Errorf("linearizable: %t, want %t", ok, c.ok)
			}
		})
	}
}

// TestFigures holds that what is lost and doubled is counted, and that a pause is no pause while
// an agent waits for a person.
func TestFigures(t *testing.T) {
	const agent = "default/worker/a"
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := func(second int, what, data string) client.Event {
		return client.Event{Type: what, Data: json.RawMessage(data), At: began.Add(time.Duration(second) * time.Second)}
	}
	logs := map[string][]client.Event{agent: {
		event(0, "input.accepted", `{"input":"p-1"}`),
		event(2, "approval.requested", `{"call":"x"}`),
		event(9, "approval.granted", `{"call":"x"}`),
		event(12, "turn.completed", `{"inputs":["p-1"]}`),
		event(32, "input.accepted", `{"input":"p-2"}`),
		event(33, "input.accepted", `{"input":"p-2"}`),
	}}
	input := func(id string) *sent { return &sent{ID: id, Agent: agent, Command: "input", Life: 1} }
	got := figure(logs, map[string]*sent{"p-1": input("p-1"), "p-2": input("p-2"), "p-3": input("p-3")}, began.Add(time.Minute))
	idle := pause{from: began.Add(12 * time.Second), to: began.Add(32 * time.Second)}
	worked := pause{agent: agent, from: began.Add(9 * time.Second), to: began.Add(12 * time.Second)}
	if want := (figures{lost: 1, doubled: 1, turns: 1, cluster: idle, agent: worked, long: []pause{idle}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
