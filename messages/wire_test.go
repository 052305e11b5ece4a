package messages

import (
	"bytes"
	"reflect"
	"testing"
)

// Every command is unpacked as it was packed, with all fields set and with none.
func TestPackedCommandsRoundTrip(t *testing.T) {
	for _, zero := range Commands() {
		name, typ := zero.CommandType(), reflect.TypeOf(zero)
		v := reflect.New(typ).Elem()
		fill(v, name)
		c := v.Interface().(Command)
		b, err := PackCommand(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := UnpackCommand(name, b)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: got %+v, error %v, want %+v", name, got, err, c)
		}
		empty := reflect.New(typ).Elem().Interface().(Command)
		if b, err = PackCommand(empty); err != nil {
			t.Fatal(err)
		}
		if got, err := UnpackCommand(name, b); err != nil || !reflect.DeepEqual(got, empty) {
			t.Errorf("%s without fields: got %+v, error %v, want %+v", name, got, err, empty)
		}
	}
	if _, err := UnpackCommand("dance", nil); err == nil {
		t.Error("unknown command: got no error, want one")
	}
}

func FuzzUnpackCommand(f *testing.F) {
	f.Add("input", []byte{0x80})
	f.Add("report", []byte{0x81, 0xa1, 't', 0xc0})
	f.Add("task", bytes.Repeat([]byte{0x81}, 100))
	f.Fuzz(func(t *testing.T, commandType string, b []byte) {
		if c, err := UnpackCommand(commandType, b); err == nil && c.CommandType() != commandType {
			t.Errorf("type: got %q, want %q", c.CommandType(), commandType)
		}
	})
}

// An unknown field of a newer version is ignored, except in a command, whose meaning might depend
// on it.
func TestFieldsOfANewerVersion(t *testing.T) {
	newer := struct {
		ID   string `json:"id"`
		More int    `json:"zz"`
	}{"c1", 1}
	b, err := Pack(&newer)
	if err != nil {
		t.Fatal(err)
	}
	var known Interrupt
	if err := UnpackKnown(b, &known); err != nil || known.ID != newer.ID {
		t.Errorf("known fields: got %+v, error %v", known, err)
	}
	if c, err := UnpackCommand("interrupt", b); err == nil {
		t.Errorf("command with an unknown field: got %+v, want an error", c)
	}
}
