package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// odd has fields of all kinds, and of kinds that no event has.
type odd struct {
	Text    string            `json:"text"`
	Int     int               `json:"int"`
	Small   int8              `json:"small"`
	Uint    uint64            `json:"uint"`
	Yes     bool              `json:"yes"`
	Float   float64           `json:"float"`
	Bytes   []byte            `json:"bytes"`
	Raw     json.RawMessage   `json:"raw"`
	Texts   []string          `json:"texts"`
	Many    []CallID          `json:"many"`
	Map     map[string]string `json:"map"`
	Any     any               `json:"any"`
	At      time.Time         `json:"at"`
	Agent   AgentID           `json:"agent"`
	Binary  ownBytes          `json:"binary"`
	Deep    *odd              `json:"deep"`
	Deeper  []odd             `json:"deeper"`
	Points  []*Item           `json:"points"`
	Array   [3]byte           `json:"array"`
	Unnamed string
	Never   string `json:"-"`
	hidden  string
}

// ownBytes keeps what it was given, in its own way.
type ownBytes struct{ text string }

func (b ownBytes) MarshalBinary() ([]byte, error)     { return []byte(b.text), nil }
func (b *ownBytes) UnmarshalBinary(data []byte) error { b.text = string(data); return nil }

func anOdd() odd {
	return odd{
		Text: "text", Int: -70000, Small: -5, Uint: math.MaxUint64, Yes: true, Float: 1.5, Bytes: []byte{1}, Raw: json.RawMessage(`{}`),
		Texts: []string{"a", ""}, Many: []CallID{"b"}, Map: map[string]string{"k": "v"}, Any: "x", At: time.Unix(1, 2), Agent: testAgent, Binary: ownBytes{"b"},
		Deep: &odd{Text: "deep", Texts: []string{}, Many: []CallID{}, Bytes: []byte{}}, Deeper: []odd{{}, {Int: math.MinInt64}}, Points: []*Item{nil, {Role: "r"}},
		Array: [3]byte{1, 2, 3}, Unnamed: "u", hidden: "",
	}
}

// readBoth reads b into two new values of type t: as we do, and as the library does.
func readBoth(t reflect.Type, b []byte, strict bool) (ours, theirs any, ourErr, theirErr error) {
	us, them := reflect.New(t), reflect.New(t)
	r := readerOf(b)
	defer r.release()
	r.strict = strict
	ourErr = readingOf(t)(r, us.Elem())
	d := decoder(b)
	defer msgpack.PutDecoder(d)
	d.DisallowUnknownFields(strict)
	defer func() {
		if recover() != nil { // the library does so for a nil that is to be an agent
			theirs, theirErr = ours, ourErr
		}
	}()
	ours = us.Elem().Interface()
	theirErr = d.Decode(them.Interface())
	return ours, them.Elem().Interface(), ourErr, theirErr
}

func sameRead(t *testing.T, of reflect.Type, b []byte) {
	t.Helper()
	for _, strict := range []bool{false, true} {
		ours, theirs, ourErr, theirErr := readBoth(of, b, strict)
		if (ourErr == nil) != (theirErr == nil) {
			t.Fatalf("%v of %x: error %v, the library's %v", of, b, ourErr, theirErr)
		}
		if ourErr == nil && !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("%v of %x:\n got %+v\nwant %+v", of, b, ours, theirs)
		}
	}
}

func TestReaderReadsWhatTheLibraryReads(t *testing.T) {
	values := []any{anOdd(), odd{}, sampleFrame(AgentActivated{}).Cause}
	for _, ev := range samples() {
		values = append(values, ev, reflect.Zero(reflect.TypeOf(ev)).Interface())
	}
	for _, v := range values {
		of := reflect.TypeOf(v)
		for _, form := range forms(t, v) {
			sameRead(t, of, form)
			sameRead(t, of, append([]byte{0x81, 0xa1, 'x'}, form...)) // a field it does not have
		}
		for i := range of.NumField() { // every field with values that are not its own
			for _, other := range []any{nil, "text", []byte("bytes"), -1, 300, uint64(math.MaxUint64), 1.5, true, []any{}, []any{"a", nil}, map[string]any{}, map[string]any{"type": "x"}, time.Unix(3, 4)} {
				name, _, _ := bytes.Cut([]byte(of.Field(i).Tag.Get("json")), []byte(","))
				b, err := msgpack.Marshal(map[string]any{string(name): other})
				if err != nil {
					t.Fatal(err)
				}
				sameRead(t, of, b)
			}
		}
	}
}

// forms are ways to write the same value.
func forms(t *testing.T, v any) (forms [][]byte) {
	t.Helper()
	for _, compact := range []bool{false, true} {
		for _, array := range []bool{false, true} {
			var buf bytes.Buffer
			e := msgpack.NewEncoder(&buf)
			e.SetCustomStructTag("json")
			e.UseCompactInts(compact)
			e.UseArrayEncodedStructs(array)
			if err := e.Encode(v); err != nil {
				t.Fatal(err)
			}
			forms = append(forms, buf.Bytes())
		}
	}
	return append(forms, []byte{0xc0}, []byte{0x80}, []byte{0x90})
}

func TestReaderReadsNumbers(t *testing.T) {
	for bit := range 64 {
		for _, near := range []int64{-1, 0, 1} {
			n := int64(1)<<bit + near
			for _, v := range []any{n, -n, uint64(n)} {
				for _, compact := range []bool{false, true} {
					var buf bytes.Buffer
					e := msgpack.NewEncoder(&buf)
					e.UseCompactInts(compact)
					if err := e.EncodeMulti(v); err != nil {
						t.Fatal(err)
					}
					sameRead(t, reflect.TypeFor[int64](), buf.Bytes())
					sameRead(t, reflect.TypeFor[uint64](), buf.Bytes())
				}
			}
		}
	}
}

func TestReaderReadsLongValues(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 1<<16 - 1, 1 << 16} {
		v := odd{Text: string(bytes.Repeat([]byte("a"), n)), Bytes: make([]byte, n), Texts: make([]string, n), Deeper: make([]odd, min(n, 300))}
		b, err := encode(&v)
		if err != nil {
			t.Fatal(err)
		}
		sameRead(t, reflect.TypeFor[odd](), b)
	}
}

func TestReaderSkips(t *testing.T) {
	for _, ev := range samples() {
		b, err := encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		r := readerOf(append(bytes.Clone(b), 0xc3))
		if got := r.skip(); !bytes.Equal(got, b) {
			t.Errorf("skipped %x of %x", got, b)
		}
		if is, ok := r.yes(); !is || !ok {
			t.Error("lost its place")
		}
	}
}

// A text that was read keeps what it was when its reader reads others.
func TestReaderRemembersTexts(t *testing.T) {
	r := readerOf(nil)
	defer r.release()
	var texts []string
	for i := range 500 {
		b := []byte("text " + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		texts = append(texts, r.remembered(b))
		clear(b)
	}
	for i, text := range texts {
		if want := "text " + string(rune('a'+i%26)) + string(rune('a'+i/26)); text != want {
			t.Fatalf("text %d is %q, not %q", i, text, want)
		}
	}
}

// What was read is its own: the bytes may be used again.
func TestReadKeepsNoBytes(t *testing.T) {
	for _, v := range samples() {
		b, err := encode(v)
		if err != nil {
			t.Fatal(err)
		}
		got, want := reflect.New(reflect.TypeOf(v)), reflect.New(reflect.TypeOf(v))
		if err := errors.Join(readWhole(b, got), readWhole(bytes.Clone(b), want)); err != nil {
			t.Fatal(err)
		}
		if clear(b); !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%T: %+v", v, got.Interface())
		}
	}
	f := sampleFrame(SealedEvent{Type: "agent.activated", Version: 1, Data: []byte("sealed")})
	f.KeyID, f.cause = "key", []byte("cause")
	b, err := encodeFrame(testAgent, f, sealedFormat)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeFrame(testAgent, b)
	if clear(b); err != nil || string(got.cause) != "cause" || string(got.Events[0].(SealedEvent).Data) != "sealed" || got.KeyID != "key" {
		t.Errorf("%+v, %v", got, err)
	}
}

func readWhole(b []byte, v reflect.Value) error {
	r := readerOf(b)
	defer r.release()
	return readingOf(v.Elem().Type())(r, v.Elem())
}

// Whatever the bytes are, they are read as the library reads them.
func FuzzReader(f *testing.F) {
	for _, ev := range samples() {
		b, err := encode(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkMsgpack(b) != nil {
			return
		}
		for _, v := range []any{odd{}, ModelCompleted{}, InputAccepted{}, TimerSet{}, Cause{}} {
			sameRead(t, reflect.TypeOf(v), b)
		}
	})
}
