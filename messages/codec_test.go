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

// unusual has fields of kinds that no event has.
type unusual struct {
	Map   map[string]string `json:"map"`
	Any   any               `json:"any"`
	List  []unusual         `json:"list"`
	Array [3]byte           `json:"array"`
}

// readers returns every function that decodes bytes of other processes.
func readers() map[string]func([]byte) error {
	return map[string]func([]byte) error{
		"frame":   func(b []byte) error { _, err := DecodeFrame(testAgent, withChecksum(b)); return err },
		"event":   func(b []byte) error { _, err := decodeEvent("model.completed", 1, b); return err },
		"unpack":  func(b []byte) error { return Unpack(b, new(unusual)) },
		"known":   func(b []byte) error { return UnpackKnown(b, new(unusual)) },
		"command": func(b []byte) error { _, err := UnpackCommand("report", b); return err },
		"input": func(b []byte) error {
			_, err := ParseInput(testAgent, headers("Content-Type", "application/msgpack"), b)
			return err
		},
	}
}

// Deep nesting and excessive lengths are refused before the msgpack library, which recurses and
// allocates as much as a length names, reads them.
func TestDepthAndLengthsAreLimited(t *testing.T) { // A102
	bodies := map[string][]byte{
		"lists in lists": bytes.Repeat([]byte{0x91}, 1<<20),
		"maps in maps":   bytes.Repeat([]byte{0x81, 0xa1, 'x'}, 1<<20),
		"too deep":       append([]byte{0x81, 0xa1, 'x'}, append(bytes.Repeat([]byte{0x91}, codec.MaxDepth), 0xc0)...),
	}
	for _, code := range []byte{0xc6, 0xc9, 0xdb, 0xdd, 0xdf} { // of bytes, ext, text, list, map
		length := []byte{code, 0x7f, 0xff, 0xff, 0xff, 0x01}
		bodies["length behind "+string(rune(code))] = length
		bodies["length in a field behind "+string(rune(code))] = append([]byte{0x81, 0xa3, 'm', 'a', 'p'}, length...)
	}
	for reader, read := range readers() {
		for name, b := range bodies {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := read(b); err == nil {
				t.Errorf("%s: %s: got no error, want one", reader, name)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
				t.Errorf("%s: %s: got %d bytes allocated, want at most %d", reader, name, n, 32<<20)
			}
		}
	}
}

// An extension is not read as a map, as DecodeMapLen of the library would: the bytes of an extension
// are not checked.
func TestExtensionsAreNoMaps(t *testing.T) {
	frame := mustEncode(t, sampleFrame(StatePatched{}))
	cause, err := Pack(&Cause{Type: "input"})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"frame": append(extension(len(frame)), frame[:len(frame)-sumSize]...), // withChecksum adds the sum
		"cause": slices.Concat([]byte{0x82, 0xa1, 'c'}, extension(len(cause)), cause),
	} {
		if f, err := DecodeFrame(testAgent, withChecksum(b)); err == nil || !strings.Contains(err.Error(), "map") {
			t.Errorf("%s: got %+v, error %v, want an error about the map", name, f, err)
		}
	}
}

// extension returns the header of an extension of n bytes.
func extension(n int) []byte { return []byte{0xc8, byte(n >> 8), byte(n), 5} }

// A panic of the library, as for nil in place of a time, is returned as an error, and later events
// are decoded.
func TestPanicsAreErrors(t *testing.T) {
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
			t.Error("nil as a time: got no error, want one")
		}
		if got, err := decodeEvent("timer.set", 1, good); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after a panic: got %+v, error %v, want %+v", got, err, want)
		}
	}
}

// Decoded values keep no reference to the bytes they were decoded from.
func TestDecodedValuesKeepNoBytes(t *testing.T) {
	for name, ev := range samples() {
		b, err := Pack(ev)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEvent(name, 1, b)
		if clear(b); err != nil || !reflect.DeepEqual(got, ev) {
			t.Errorf("%s: got %+v, error %v, want %+v", name, got, err, ev)
		}
	}
	f := sampleFrame(EncryptedEvent{Type: "agent.activated", Version: 1, Data: []byte("sealed")})
	f.KeyID, f.encryptedOrigin = "key", []byte("cause")
	b := mustEncode(t, f)
	got, err := DecodeFrame(testAgent, b)
	if clear(b); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("frame: got %+v, error %v, want %+v", got, errors.Unwrap(err), f)
	}
}

// Every field of a cause is decoded.
func TestCauseRoundTrips(t *testing.T) {
	f := sampleFrame(StatePatched{})
	fill(reflect.ValueOf(&f.Cause).Elem(), "x")
	if got, err := DecodeFrame(testAgent, mustEncode(t, f)); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("got %+v, error %v, want %+v", got, err, f)
	}
}
