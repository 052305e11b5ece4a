package messages

import (
	"fmt"
	"reflect"
)

// PackCommand returns a command as it is sent to another node.
func PackCommand(c Command) ([]byte, error) {
	p := reflect.New(reflect.TypeOf(c))
	p.Elem().Set(reflect.ValueOf(c))
	return Pack(p.Interface())
}

// UnpackCommand reads a command of that type as PackCommand has written it. A type or a
// field that this version does not know is an error, because the command might mean
// something else without it.
func UnpackCommand(commandType string, b []byte) (Command, error) {
	e := commandsByType[commandType]
	if e == nil {
		return nil, fmt.Errorf("command type %q is unknown to this version", commandType)
	}
	p := reflect.New(reflect.TypeOf(e.zero))
	if err := Unpack(b, p.Interface()); err != nil {
		return nil, fmt.Errorf("command %s: %w", commandType, err)
	}
	return p.Elem().Interface().(Command), nil
}
