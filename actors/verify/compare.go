package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// facts are the fields that are no decisions, by the type of their event and their path, with the
// reason why they are not compared. All others are.
var facts = map[string]map[string]string{
	messages.CompactionRequested{}.EventType(): {"not_before": "it counts from the moment of the decision, which is not recorded"},
	messages.ChildSpawned{}.EventType():        {"limits.max_duration_ms": "it is what is left at the moment of the decision, which is not recorded"},
}

// ofTexts are the fields that are hashes of texts which a redaction replaces, by the type of their
// event.
var ofTexts = map[string][]string{
	messages.ModelRequested{}.EventType():      {"instructions", "request"},
	messages.CompactionRequested{}.EventType(): {"digest"},
	messages.ApprovalRequested{}.EventType():   {"args_hash"},
}

// same compares an event of today with the recorded one. It returns nil if they are equal.
func (s *stream) same(what any, recorded, now messages.Event) *Difference {
	if recorded.EventType() != now.EventType() {
		return s.differs(what, recorded, now)
	}
	now = unnamed(recorded, now)
	if !reflect.DeepEqual(recorded, now) {
		if fields := s.compared(recorded, now); len(fields) > 0 {
			d := s.differs(what, recorded, now)
			d.Fields = fields
			d.Why = s.why(recorded, fields)
			return d
		}
	}
	return s.sameRequest(what, recorded, now)
}

// unnamed returns an event of today without what the recorded one, of the same type, does not name.
func unnamed(recorded, now messages.Event) messages.Event {
	switch was := recorded.(type) {
	case messages.CompactionRequested:
		if next := now.(messages.CompactionRequested); was.Definition == "" { // of an older version
			next.Definition = ""
			return next
		}
	case messages.AgentImported:
		if next := now.(messages.AgentImported); was.Frames == nil { // of an export, which has them in front
			next.Frames = nil
			return next
		}
	}
	return now
}

// compared returns the fields that differ, without those that a redaction may have changed.
func (s *stream) compared(recorded, now messages.Event) []Field {
	fields := fieldsOf(recorded, now)
	if len(fields) == 0 || !s.redacted() {
		return fields
	}
	return slices.DeleteFunc(fields, func(f Field) bool {
		hash := slices.Contains(ofTexts[recorded.EventType()], f.Path)
		if hash {
			s.note(redactions, 1)
		}
		return hash
	})
}

// sameRequest compares what a model is shown of the definition, which the events name by a digest.
func (s *stream) sameRequest(what any, recorded, now messages.Event) *Difference {
	switch ev := now.(type) {
	case messages.ModelRequested:
		if asked, ok := what.(turn.HooksAsked); ok && asked.Request != "" || !s.known.shown(ev.Definition) {
			return nil
		}
		parts := []string{s.current.Turn.Digest, ev.Instructions}
		if ev.ToolChoice != "" {
			parts = append(parts, ev.ToolChoice)
		}
		ev.Request = string(s.state.History.Digest(parts...))
		now = ev
	case messages.CompactionRequested:
		if !s.known.summarizes(cmp.Or(ev.Definition, s.state.Life.Definition)) {
			return nil
		}
	default:
		return nil
	}
	d := s.differs(what, recorded, now)
	d.Fields, d.Why = fieldsOf(recorded, now), s.known.text()
	return d
}

// why returns what differing fields come of, as far as it is known.
func (s *stream) why(recorded messages.Event, fields []Field) string {
	if text := s.known.text(); text != "" {
		return text
	}
	request := func(f Field) bool { return f.Path == "request" }
	if _, ok := recorded.(messages.ModelRequested); ok && len(fields) == 1 && slices.ContainsFunc(fields, request) {
		return "the definition is the recorded one: an event before this one was changed after it was recorded, or this version makes another request of the same history"
	}
	return ""
}

// differs returns the difference of the next event; an event that is nil is not there.
func (s *stream) differs(what any, recorded, now messages.Event) *Difference {
	d := &Difference{N: s.next, Cause: causeText(what, s.frame)}
	s.known.of(s.state.Life.Definition) // for the changes to be named
	if recorded != nil {
		d.Type, d.Recorded = recorded.EventType(), encode(recorded)
	}
	if now != nil {
		d.NowType, d.Now = now.EventType(), encode(now)
	}
	if d.Type != d.NowType {
		d.Why = s.known.text()
	}
	return d
}

// begins reports whether a call would begin now that has not begun.
func (d *Difference) begins() bool { return d.NowType == messages.ToolStarted{}.EventType() }

// causeText names what was decided on.
func causeText(what any, f *messages.Frame) string {
	switch what := what.(type) {
	case messages.Command:
		text := "the command " + what.CommandType()
		if id := messages.IDOf(what); id != "" {
			text += " " + strconv.Quote(id)
		}
		return text
	case turn.Recover:
		return "the takeover by another owner"
	case turn.Continue:
		return "what the agent had left to do"
	case turn.ModelAnswered:
		return "the answer of model call " + string(what.Call)
	case turn.ModelErred:
		return "the failure of model call " + string(what.Call)
	case turn.Summarized:
		return "the summary of model call " + string(what.Call)
	case turn.ToolReturned:
		return "the result of tool call " + string(what.Call)
	case turn.ToolReconciled:
		return "what the tool reports of call " + string(what.Call)
	case turn.HooksAsked:
		return "what hooks decided (" + string(what.Point) + ")"
	case turn.TimerDue:
		return "the timer " + what.Timer
	case turn.MessageStored:
		return "the delivery of message " + what.ID
	}
	return f.Cause.Type
}

// encode returns an event as JSON. One that has none is named.
func encode(ev messages.Event) json.RawMessage {
	b, err := json.Marshal(ev)
	if err != nil {
		b, _ = json.Marshal(fmt.Sprint(ev))
	}
	return b
}

// fieldsOf returns the fields that differ, sorted by path, without those that are facts.
func fieldsOf(recorded, now messages.Event) (fields []Field) {
	walk("", tree(encode(recorded)), tree(encode(now)), func(f Field) {
		if _, fact := facts[recorded.EventType()][f.Path]; !fact {
			fields = append(fields, f)
		}
	})
	return fields
}

// tree returns JSON as maps, slices and values.
func tree(b json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	_ = d.Decode(&v) // it was encoded here
	return v
}

// walk calls give with each leaf in which two trees differ.
func walk(path string, a, b any, give func(Field)) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for _, k := range union(x, y) {
				walk(below(path, k), at(x, k), at(y, k), give)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				walk(below(path, strconv.Itoa(i)), item(x, i), item(y, i), give)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		give(Field{path, leaf(a), leaf(b)})
	}
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// absent is a value that is not there.
type absent struct{}

func at(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return absent{}
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

// leaf returns a value as JSON; nil if it is not there.
func leaf(v any) json.RawMessage {
	if v == (absent{}) {
		return nil
	}
	b, _ := json.Marshal(v)
	return b
}
