package projections

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// EventJSON is one event as `reprise events -o json` shows it, one object a
// line. Its names are promises.
type EventJSON struct {
	N messages.EventNumber `json:"n"`
	// Seq is the log's own number of the frame: a hint, copies renumber.
	Seq   uint64           `json:"seq"`
	Frame messages.FrameID `json:"frame"`
	Type  string           `json:"type"`
	Turn  messages.TurnID  `json:"turn,omitempty"`
	Step  int              `json:"step,omitempty"`
	At    time.Time        `json:"at"`
	Data  json.RawMessage  `json:"data"`
}

// NewEventJSON describes event number n of a frame. It always encodes: data
// that JSON cannot hold is replaced by {"unreadable": why}.
func NewEventJSON(n messages.EventNumber, seq uint64, frame messages.FrameID, at time.Time, ev messages.Event) EventJSON {
	data, err := json.Marshal(ev)
	if err != nil {
		data, _ = json.Marshal(map[string]string{"unreadable": err.Error()}) // a string encodes
	}
	turn, step := placeOf(ev)
	return EventJSON{N: n, Seq: seq, Frame: frame, Type: ev.EventType(), Turn: turn, Step: step, At: at.UTC(), Data: data}
}

// placeOf is the turn and step that an event names, by the names of its
// fields, so that new events need no line here.
func placeOf(ev messages.Event) (turn messages.TurnID, step int) {
	v := reflect.Indirect(reflect.ValueOf(ev))
	if v.Kind() != reflect.Struct {
		return "", 0
	}
	if f := v.FieldByName("Turn"); f.IsValid() {
		turn, _ = f.Interface().(messages.TurnID)
	}
	if f := v.FieldByName("Step"); f.IsValid() {
		step, _ = f.Interface().(int)
	}
	return turn, step
}
