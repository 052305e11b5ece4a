package messages

import (
	"errors"
	"fmt"
	"reflect"
)

// Envelope is a message between the processes of two nodes: one msgpack map on
// the wire, as [Pack] writes it.
type Envelope struct {
	// To is the process on the node that receives it.
	To string `json:"t"`
	// From and Node are the process that is answered and the node that it is on.
	// Empty: nobody is.
	From string `json:"f,omitempty"`
	Node string `json:"n,omitempty"`
	// Type names what Body is.
	Type string `json:"y"`
	Body []byte `json:"b,omitempty"`
}

// EncodeEnvelope writes an envelope.
func EncodeEnvelope(e *Envelope) ([]byte, error) { return Pack(e) }

// DecodeEnvelope reads what EncodeEnvelope has written; nothing that b can hold
// makes it panic.
func DecodeEnvelope(b []byte) (*Envelope, error) {
	e := new(Envelope)
	if err := UnpackKnown(b, e); err != nil {
		return nil, err
	}
	if e.To == "" || e.Type == "" {
		return nil, errors.New("an envelope names a process and a type")
	}
	return e, nil
}

// PackCommand writes a command for another node of the same build or a near one.
func PackCommand(c Command) ([]byte, error) {
	p := reflect.New(reflect.TypeOf(c))
	p.Elem().Set(reflect.ValueOf(c))
	return Pack(p.Interface())
}

// UnpackCommand reads a command of that type as PackCommand has written it. A type
// or a field that this version does not know is an error: without it the command might
// mean something else.
func UnpackCommand(commandType string, b []byte) (Command, error) {
	e := commandsByType[commandType]
	if e == nil {
		return nil, fmt.Errorf("command type %q is unknown to this version", commandType)
	}
	p := reflect.New(reflect.TypeOf(e.zero))
	if err := Unpack(b, p.Interface()); err != nil {
		return nil, fmt.Errorf("command %s: %w", commandType, err)
	}
	if e.utc != nil {
		e.utc(p.Elem())
	}
	return p.Elem().Interface().(Command), nil
}
