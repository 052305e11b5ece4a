package codec

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// inner and outer have fields of each kind that is decoded here, and of some that are not.
type inner struct {
	Text  string     `json:"text"`
	Below []*outer   `json:"below"`
	At    *time.Time `json:"at"`
}

type outer struct {
	inner `json:",inline"`
	Yes   bool              `json:"yes"`
	Small int8              `json:"small"`
	Int   int64             `json:"int"`
	Uint  uint64            `json:"uint"`
	Float float64           `json:"float"`
	Half  float32           `json:"half"`
	Bytes []byte            `json:"bytes"`
	Texts []string          `json:"texts"`
	Lists [][]int           `json:"lists"`
	Map   map[string]string `json:"map"`
	Any   any               `json:"any"`
	Array [3]byte           `json:"array"`
	Ptr   *string           `json:"ptr"`
	Named inner             `json:"named"`
}

// one returns a map of one field.
func one(t *testing.T, name string, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	if err := e.Encode(map[string]any{name: v}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Values are decoded as the library decodes them, whatever field they are in, or refused as it does. A
// struct is no list, which the library allows.
func TestValuesAsTheLibraryReads(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	values := []any{
		nil, true, false, "", "x", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 300), strings.Repeat("x", 70000),
		[]byte{}, []byte("b"), bytes.Repeat([]byte{1}, 300), bytes.Repeat([]byte{1}, 70000),
		0, 127, -1, -32, int8(-100), uint8(200), int16(-300), uint16(60000), int32(-70000), uint32(4e9), int64(math.MinInt64), uint64(math.MaxUint64),
		float32(1.5), 2.25, at, at.Add(1 << 60), []string{}, []string{"a", "b"}, make([]string, 300), [][]int{{1, -2}, {}, nil}, make([]int, 70000),
		map[string]string{}, map[string]string{"text": "t", "unknown": "u"}, map[string]any{"text": "t", "below": []any{map[string]any{"yes": true}, nil}}, manyKeys(20),
	}
	for _, v := range values {
		for i := range fieldsOf(reflect.TypeFor[outer]()) {
			name := fieldsOf(reflect.TypeFor[outer]())[i].name
			if name == "named" && reflect.DeepEqual(v, []string{}) {
				continue
			}
			b := one(t, name, v)
			var got, want outer
			wrong := Unmarshal(b, &got, false)
			d := msgpack.NewDecoder(bytes.NewReader(b))
			d.SetCustomStructTag("json")
			unfit := decodeSafely(d, &want)
			if (wrong == nil) != (unfit == nil) {
				t.Errorf("%s of %.40v: got error %v, the library has %v", name, v, wrong, unfit)
			}
			if want.At != nil {
				*want.At = want.At.UTC()
			}
			if wrong == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %.40v:\ngot  %+.200v\nwant %+.200v", name, v, got, want)
			}
		}
	}
}

// decodeSafely decodes, and reports a panic as an error.
func decodeSafely(d *msgpack.Decoder, v any) (err error) {
	defer func() {
		if recover() != nil {
			err = errTooDeep
		}
	}()
	return d.Decode(v)
}

// A field that a struct does not have is passed over, whatever it holds, or refused.
func TestUnknownFields(t *testing.T) {
	for _, v := range []any{nil, 1, "x", []any{1, []any{"y"}}, map[string]any{"a": map[string]any{"b": 1.5}}, time.Unix(1, 1)} {
		b := append([]byte{0x82}, one(t, "other", v)[1:]...)
		b = append(b, one(t, "text", "t")[1:]...)
		var got inner
		if err := Unmarshal(b, &got, false); err != nil || got.Text != "t" {
			t.Errorf("%v: got %+v, error %v", v, got, err)
		}
		if err := Unmarshal(b, &got, true); err == nil || !strings.Contains(err.Error(), `"other"`) {
			t.Errorf("%v: got error %v, want one about the field", v, err)
		}
	}
}

// Memory for a list is taken as its values come: a list of structs takes no more than a multiple of
// its bytes.
func TestLongListsAreGrown(t *testing.T) {
	const n = 1 << 16
	b := append([]byte{0x81, 0xa5}, "below"...)
	b = append(b, 0xdd, 0, 1, 0, 0)
	b = append(b, bytes.Repeat([]byte{0xc0}, n)...)
	var got inner
	if err := Unmarshal(b, &got, true); err != nil || len(got.Below) != n || cap(got.Below) > 2*n {
		t.Errorf("got %d of %d, error %v, want %d", len(got.Below), cap(got.Below), err, n)
	}
}

// TestStrictOnce checks that a value which is read strictly leaves the next one as it is: sources are
// used again.
func TestStrictOnce(t *testing.T) {
	type known struct {
		A string `json:"a"`
	}
	more, err := Marshal(&struct {
		A string `json:"a"`
		B int    `json:"b"`
	}{"a", 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // a pool may forget what it was given
		if err := Unmarshal(more, new(known), true); err == nil {
			t.Fatal("a strict read: got no error, want one")
		}
		read := func(s *Source) error { return s.Value(reflect.ValueOf(new(known)).Elem()) }
		if err := Decode(more, read); err != nil {
			t.Fatalf("a read behind a strict one: %v", err)
		}
	}
}
