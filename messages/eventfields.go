package messages

import "reflect"

// fieldOf returns the index of the field of t with that name and kind; -1: none.
func fieldOf(t reflect.Type, name string, kind reflect.Kind) int {
	if f, ok := t.FieldByName(name); ok && len(f.Index) == 1 && f.Type.Kind() == kind {
		return f.Index[0]
	}
	return -1
}

// textIn returns the text in field i of the struct v; empty if i is -1.
func textIn(v reflect.Value, i int) string {
	if i < 0 {
		return ""
	}
	return v.Field(i).String()
}

// Fields are the turn and the call that an event names, beside the traits of its type. Either is
// empty if it names none.
type Fields struct {
	Traits Trait
	Turn   TurnID
	Call   CallID
}

// FieldsOf returns the fields of an event. An encrypted one has only its traits.
func FieldsOf(ev Event) Fields {
	e, v := structOf(ev)
	if e == nil {
		return Fields{Traits: TraitsOf(ev.EventType())}
	}
	return Fields{e.traits, TurnID(textIn(v, e.turn)), CallID(textIn(v, e.call))}
}

// structOf returns the entry of an event's type, and the event as its struct; nil for a type
// that this version does not know, and for an encrypted event.
func structOf(ev Event) (*eventEntry, reflect.Value) {
	e, v := eventsByType[ev.EventType()], reflect.ValueOf(ev)
	if e == nil || v.Type() != e.typ {
		return nil, reflect.Value{}
	}
	return e, v
}

// Is reports whether the event has the trait, or one of several.
func (f Fields) Is(traits Trait) bool { return f.Traits&traits != 0 }

// TurnOf returns the turn that an event names; empty if it names none.
func TurnOf(ev Event) TurnID { return FieldsOf(ev).Turn }

// StepOf returns the step of the turn that an event names; 0 if it names none.
func StepOf(ev Event) int {
	if e, v := structOf(ev); e != nil && e.step >= 0 {
		return int(v.Field(e.step).Int())
	}
	return 0
}

// CallOf returns the call that an event names; empty if it names none.
func CallOf(ev Event) CallID { return FieldsOf(ev).Call }

// ModelOf returns the model that an event names; empty if it names none.
func ModelOf(ev Event) string {
	if e, v := structOf(ev); e != nil {
		return textIn(v, e.model)
	}
	return ""
}

// DefinitionOf returns the hash of the definition that an event names; empty if it names none.
func DefinitionOf(ev Event) Digest {
	if e, v := structOf(ev); e != nil {
		return Digest(textIn(v, e.definition))
	}
	return ""
}

// KindOf returns the kind of the failure that an event reports; empty if it reports none.
func KindOf(ev Event) string {
	if e, v := structOf(ev); e != nil {
		return textIn(v, e.kind)
	}
	return ""
}

// DispositionOf returns the disposition of the input that an event accepts; empty if it accepts
// none.
func DispositionOf(ev Event) Disposition {
	if e, v := structOf(ev); e != nil {
		return Disposition(textIn(v, e.disposition))
	}
	return ""
}

// InputsOf returns the inputs that an event names.
func InputsOf(ev Event) []string {
	e, v := structOf(ev)
	switch {
	case e == nil:
	case e.input >= 0 && v.Field(e.input).Len() > 0:
		return []string{v.Field(e.input).String()}
	case e.inputs >= 0:
		return v.Field(e.inputs).Interface().([]string)
	}
	return nil
}

// Ended returns the inputs that ev is the terminal event of; false if it is none. A
// turn that continues a failed one ends without inputs of its own.
func Ended(ev Event) (inputs []string, ends bool) {
	if !Is(ev.EventType(), EndsInput) {
		return nil, false
	}
	return InputsOf(ev), true
}
