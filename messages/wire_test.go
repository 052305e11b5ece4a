package messages

import (
	"bytes"
	"reflect"
	"testing"
)

func TestCommandsCrossTheWire(t *testing.T) {
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
			t.Errorf("%s came as %+v, %v; sent %+v", name, got, err, c)
		}
		empty := reflect.New(typ).Elem().Interface().(Command)
		if b, err = PackCommand(empty); err != nil {
			t.Fatal(err)
		}
		if got, err := UnpackCommand(name, b); err != nil || !reflect.DeepEqual(got, empty) {
			t.Errorf("%s came as %+v, %v; sent nothing", name, got, err)
		}
	}
	if _, err := UnpackCommand("dance", nil); err == nil {
		t.Error("a command of no type was read")
	}
}

func TestEnvelopeComesAsItWasSent(t *testing.T) {
	e := &Envelope{To: "partition-7-12", From: "ask$1", Node: "n1", Type: "deliver", Body: []byte{1, 2, 3}}
	b, err := EncodeEnvelope(e)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeEnvelope(b); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzEnvelope(f *testing.F) {
	b, _ := EncodeEnvelope(&Envelope{To: "a", From: "b", Node: "c", Type: "input", Body: []byte{0x80}})
	f.Add(b)
	f.Add([]byte{0x81, 0xa1, 't', 0xc0})
	f.Add(bytes.Repeat([]byte{0x81}, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEnvelope(b)
		if err != nil {
			return
		}
		_, _ = UnpackCommand(e.Type, e.Body)
		if e.To == "" || e.Type == "" {
			t.Errorf("%+v", e)
		}
	})
}

// What a newer node adds is left out, but not of a command: that might mean something else
// without it.
func TestFieldsOfANewerVersion(t *testing.T) {
	newer := struct {
		To   string `json:"t"`
		Type string `json:"y"`
		More int    `json:"zz"`
	}{"partition-7-12", "deliver", 1}
	b, err := Pack(&newer)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeEnvelope(b); err != nil || got.To != newer.To || got.Type != newer.Type {
		t.Errorf("the envelope is %+v, %v", got, err)
	}
	if c, err := UnpackCommand("interrupt", b); err == nil {
		t.Errorf("it was read as %+v", c)
	}
}
