package messages

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// encoded returns what write has an encoder write, which names fields as frames do.
func encoded(t *testing.T, write func(*msgpack.Encoder) error) []byte {
	t.Helper()
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.SetCustomStructTag("json")
	e.UseCompactInts(true)
	if err := write(e); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestStructsAsTheLibraryWrites holds that structs are encoded byte for byte as the library
// does it, which does not know a struct type that is made here of the same fields.
func TestStructsAsTheLibraryWrites(t *testing.T) {
	values := []any{Cause{}, Cause{Type: "input", By: "ada"}, Usage{}, Usage{Input: 1, Cached: 2}, Part{Type: "text"}, Item{Type: "message"}}
	for _, ev := range samples() {
		values = append(values, ev, reflect.Zero(reflect.TypeOf(ev)).Interface())
	}
	for _, v := range values {
		typ := reflect.TypeOf(v)
		fields := reflect.VisibleFields(typ)
		if len(fields) != typ.NumField() {
			continue // it embeds a struct
		}
		same := reflect.ValueOf(v).Convert(reflect.StructOf(fields))
		got := encoded(t, func(e *msgpack.Encoder) error { return e.Encode(v) })
		want := encoded(t, func(e *msgpack.Encoder) error { return e.EncodeValue(same) })
		if !bytes.Equal(got, want) {
			t.Errorf("%T %+v\nis   %x\nwant %x", v, v, got, want)
		}
	}
}

// TestFramesAreEncodedInPlace holds that the frames of a turn are encoded with few objects: the
// library alone needs 92.
func TestFramesAreEncodedInPlace(t *testing.T) {
	turn := ordinaryTurn()
	n := testing.AllocsPerRun(100, func() {
		for _, f := range turn {
			if _, err := EncodeFrame(testAgent, f); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n > 40 { // 18, and more where the race detector empties pools
		t.Errorf("the frames of a turn take %v objects", n)
	}
}
