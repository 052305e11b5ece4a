package messages

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// strange has fields of kinds that no event has.
type strange struct {
	Map   map[string]string `json:"map"`
	Any   any               `json:"any"`
	List  []strange         `json:"list"`
	Array [3]byte           `json:"array"`
}

// readers are all ways in which bytes from elsewhere are decoded.
func readers() map[string]func([]byte) error {
	return map[string]func([]byte) error{
		"frame":   func(b []byte) error { _, err := DecodeFrame(testAgent, sealed(b)); return err },
		"event":   func(b []byte) error { _, err := decodeEvent("model.completed", 1, b); return err },
		"unpack":  func(b []byte) error { return Unpack(b, new(strange)) },
		"known":   func(b []byte) error { return UnpackKnown(b, new(strange)) },
		"command": func(b []byte) error { _, err := UnpackCommand("report", b); return err },
		"input": func(b []byte) error {
			_, err := ParseInput(testAgent, headers("Content-Type", "application/msgpack"), b)
			return err
		},
	}
}

// The library recurses, and reserves what a length asks for: nothing of that reaches it.
func TestBombsAreRefused(t *testing.T) { // A102
	bombs := map[string][]byte{
		"lists in lists": bytes.Repeat([]byte{0x91}, 1<<20),
		"maps in maps":   bytes.Repeat([]byte{0x81, 0xa1, 'x'}, 1<<20),
		"too deep":       append([]byte{0x81, 0xa1, 'x'}, append(bytes.Repeat([]byte{0x91}, codec.MaxDepth), 0xc0)...),
	}
	for _, code := range []byte{0xc6, 0xc9, 0xdb, 0xdd, 0xdf} { // of bytes, ext, text, list, map
		length := []byte{code, 0x7f, 0xff, 0xff, 0xff, 0x01}
		bombs["length behind "+string(rune(code))] = length
		bombs["length in a field behind "+string(rune(code))] = append([]byte{0x81, 0xa3, 'm', 'a', 'p'}, length...)
	}
	for reader, read := range readers() {
		for name, b := range bombs {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := read(b); err == nil {
				t.Errorf("%s: %s was read", reader, name)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
				t.Errorf("%s: %s took %d bytes", reader, name, took)
			}
		}
	}
}

// The library's DecodeMapLen reads a map from inside an extension, whose bytes nothing has checked.
func TestExtensionsAreNoMaps(t *testing.T) {
	frame := mustEncode(t, sampleFrame(StatePatched{}))
	cause, err := Pack(&Cause{Type: "input"})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"frame": append(extension(len(frame)), frame[:len(frame)-sumSize]...), // sealed adds the sum
		"cause": slices.Concat([]byte{0x82, 0xa1, 'c'}, extension(len(cause)), cause),
	} {
		if f, err := DecodeFrame(testAgent, sealed(b)); err == nil || !strings.Contains(err.Error(), "map") {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

// extension returns the head of an extension of n bytes.
func extension(n int) []byte { return []byte{0xc8, byte(n >> 8), byte(n), 5} }

// The library panics for nil where a time is to be.
func TestPanicsOfTheLibraryAreErrors(t *testing.T) {
	b, err := msgpack.Marshal(map[string]any{"set": nil})
	if err != nil {
		t.Fatal(err)
	}
	want := samples()["timer.set"]
	good, err := Pack(want)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := decodeEvent("timer.set", 1, b); err == nil {
			t.Error("nil was read as a time")
		}
		if got, err := decodeEvent("timer.set", 1, good); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after a panic: %+v, %v", got, err)
		}
	}
}

// What was read is its own: the bytes may be used again.
func TestReadKeepsNoBytes(t *testing.T) {
	for name, ev := range samples() {
		b, err := Pack(ev)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEvent(name, 1, b)
		if clear(b); err != nil || !reflect.DeepEqual(got, ev) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	f := sampleFrame(EncryptedEvent{Type: "agent.activated", Version: 1, Data: []byte("sealed")})
	f.KeyID, f.encryptedCause = "key", []byte("cause")
	b := mustEncode(t, f)
	got, err := DecodeFrame(testAgent, b)
	if clear(b); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%+v, %v", got, errors.Unwrap(err))
	}
}

// Every field of a cause is read.
func TestCauseIsRead(t *testing.T) {
	f := sampleFrame(StatePatched{})
	fill(reflect.ValueOf(&f.Cause).Elem(), "x")
	if got, err := DecodeFrame(testAgent, mustEncode(t, f)); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%+v, %v", got, err)
	}
}
