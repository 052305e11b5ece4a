package messages

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// encoded returns the bytes that write writes to an encoder with the field names of frames.
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

// Structs are encoded to the same bytes as by the library's own encoder. The test calls that
// encoder with a new struct type of the same fields, for which no encoder is registered.
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
			t.Errorf("%T %+v\ngot  %x\nwant %x", v, v, got, want)
		}
	}
}

// The frames of a turn are encoded with few allocations. The library alone needs 92.
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
		t.Errorf("allocations for the frames of a turn: got %v, want at most 40", n)
	}
}

// A pointer to a zero time, such as the deadline 0001-01-01T00:00:00Z of an input, is not stored as
// nil, which means no deadline.
func TestZeroTimesAreKept(t *testing.T) {
	in := Input{ID: "u1", Content: TextContent("hi"), Deadline: new(time.Time)}
	packed, err := PackCommand(in)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := UnpackCommand(in.CommandType(), packed); err != nil || !reflect.DeepEqual(got, in) {
		t.Errorf("command: got %+v, error %v, want %+v", got, err, in)
	}
	f := sampleFrame(TimerSet{Timer: "later", Input: &in}, ChildWaiting{Waiting: []Wait{{ExpiresAt: new(time.Time)}}})
	b, err := EncodeFrame(testAgent, f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeFrame(testAgent, b); err != nil || !reflect.DeepEqual(got.Events, f.Events) {
		t.Errorf("frame: got %+v, error %v, want %+v", got, err, f.Events)
	}
}
