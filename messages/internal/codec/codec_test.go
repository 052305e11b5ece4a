package codec

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDepthLimit(t *testing.T) { // A102
	for _, code := range []byte{0x91, 0x81} {
		nested := func(depth int) []byte { return append(bytes.Repeat([]byte{code}, depth), 0xc0) }
		if code == 0x91 {
			if err := Unmarshal(nested(MaxDepth), new(any), false); err != nil {
				t.Errorf("%d levels: got error %v, want none", MaxDepth, err)
			}
		}
		for _, depth := range []int{MaxDepth + 1, 1 << 20} {
			if err := Unmarshal(nested(depth), new(any), false); err == nil {
				t.Errorf("%d levels of 0x%02x: got no error, want one", depth, code)
			}
		}
	}
	for depth, want := range map[int]bool{MaxDepth: true, MaxDepth + 1: false} {
		if err := CheckJSONDepth([]byte(strings.Repeat(`[{"[":`, depth/2) + strings.Repeat("[", depth%2))); (err == nil) != want {
			t.Errorf("%d levels of JSON: got error %v, want accepted: %t", depth, err, want)
		}
	}
}

// CheckMsgpack accepts every kind of value that the library writes, at its exact length only.
func TestCheckMsgpack(t *testing.T) {
	for _, v := range []any{
		nil, true, 1, -1, 200, -200, 70000, -70000, uint64(1) << 63, -1 << 40, float32(1.5), 1.5, time.Unix(0, 1), time.Unix(1<<40, 1),
		"", strings.Repeat("x", 31), strings.Repeat("x", 200), strings.Repeat("x", 300), strings.Repeat("x", 70000),
		bytes.Repeat([]byte{1}, 200), bytes.Repeat([]byte{1}, 300), bytes.Repeat([]byte{1}, 70000),
		make([]int, 3), make([]int, 300), make([]int, 70000), map[string]int{"a": 1}, manyKeys(300), manyKeys(70000),
	} {
		b, err := Marshal(&struct{ V any }{v})
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckMsgpack(b); err != nil {
			t.Errorf("%.20x: got error %v, want none", b, err)
		}
		for _, wrong := range [][]byte{b[:len(b)-1], append(bytes.Clone(b), 0xc0)} {
			if CheckMsgpack(wrong) == nil {
				t.Errorf("%.20x with another length: got no error, want one", b)
			}
		}
	}
	if err := CheckMsgpack([]byte{0xc1}); err == nil {
		t.Error("0xc1: got no error, want one")
	}
}

func manyKeys(n int) map[int]bool {
	m := make(map[int]bool)
	for i := range n {
		m[i] = true
	}
	return m
}

// Unmarshal returns times in UTC at every depth, also in a struct nested in its own type.
func TestTimesAreUTC(t *testing.T) {
	was := time.Local
	time.Local = time.FixedZone("somewhere", 3600)
	defer func() { time.Local = was }()
	type node struct {
		Below []*node    `json:"below,omitempty"`
		At    *time.Time `json:"at"`
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := node{Below: []*node{{At: &at}, {Below: []*node{{At: &at}}}}}
	b, err := Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got node
	if err := Unmarshal(b, &got, true); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v, want %+v", *got.Below[0].At, err, at)
	}
}

func TestObject(t *testing.T) {
	got, err := Object([]byte(` {"a":1,"b":{"c":[2]}} `))
	if err != nil || len(got) != 2 || string(got["b"]) != `{"c":[2]}` {
		t.Errorf("got %s, error %v", got, err)
	}
	for object, want := range map[string]string{
		`{"a":1,"a":2}`: `names "a" twice`,
		`{"a":1} {}`:    "more follows",
		`{"a":`:         "EOF",
		``:              "EOF",
		`{"a":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}`: "deeper",
	} {
		if _, err := Object([]byte(object)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: got error %v, want %s", object, err, want)
		}
	}
}
