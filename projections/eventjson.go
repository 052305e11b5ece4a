package projections

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// EventJSON is one event as `reprise events -o json` shows it, one object a
// line. Its names are promises. Data names a payload that is too large for the log
// as "blob":{"sha256","size"}, and leaves its field ("output", "text") empty.
type EventJSON struct {
	N messages.EventNumber `json:"n"`
	// Seq is the log's own number of the frame: a hint, copies renumber.
	Seq uint64 `json:"seq"`
	// Frame is the id of the frame that holds the event.
	Frame messages.FrameID `json:"frame"`
	Type  string           `json:"type"`
	Turn  messages.TurnID  `json:"turn,omitempty"`
	Step  int              `json:"step,omitempty"`
	At    time.Time        `json:"at"`
	// Person is whose command recorded it. Nil: none is named, as for effects.
	Person *messages.Person `json:"person,omitempty"`
	// Data are the fields of the event: see the reference of events.
	Data json.RawMessage `json:"data"`
}

// NewEventJSON describes event number n of a frame, without its person. It always
// encodes: data that JSON cannot hold is replaced by {"unreadable": why}.
func NewEventJSON(n messages.EventNumber, seq uint64, frame messages.FrameID, at time.Time, ev messages.Event) EventJSON {
	data, err := json.Marshal(ev)
	if err != nil {
		data, _ = json.Marshal(map[string]string{"unreadable": err.Error()}) // a string encodes
	}
	return EventJSON{N: n, Seq: seq, Frame: frame, Type: ev.EventType(), Turn: messages.TurnOf(ev), Step: messages.StepOf(ev), At: at.UTC(), Data: data}
}

// Append appends the event as its JSON object, as json.Marshal would write it.
func (e EventJSON) Append(b []byte) []byte {
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, uint64(e.N), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = appendText(append(b, `,"frame":`...), string(e.Frame))
	b = appendText(append(b, `,"type":`...), e.Type)
	if e.Turn != "" {
		b = appendText(append(b, `,"turn":`...), string(e.Turn))
	}
	if e.Step != 0 {
		b = strconv.AppendInt(append(b, `,"step":`...), int64(e.Step), 10)
	}
	b = append(b, `,"at":"`...)
	b = append(e.At.UTC().AppendFormat(b, time.RFC3339Nano), '"')
	if e.Person != nil {
		who, _ := json.Marshal(e.Person) // texts encode
		b = append(append(b, `,"person":`...), who...)
	}
	return append(append(append(b, `,"data":`...), e.Data...), '}')
}

// appendText appends a JSON string; names made here need no escaping.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < '-' || c > 'z' || c == '\\' || c == '<' || c == '>' {
			quoted, _ := json.Marshal(s) // a string encodes
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
