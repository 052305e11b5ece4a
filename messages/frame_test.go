package messages

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

func mustEncode(t testing.TB, f *Frame) []byte {
	t.Helper()
	b, err := EncodeFrame(testAgent, f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryEventRoundTrips(t *testing.T) {
	for name, ev := range samples() {
		want := sampleFrame(ev)
		got, err := DecodeFrame(testAgent, mustEncode(t, want))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
		zero := reflect.Zero(reflect.TypeOf(ev)).Interface().(Event)
		if got, err := DecodeFrame(testAgent, mustEncode(t, sampleFrame(zero))); err != nil || !reflect.DeepEqual(got.Events[0], zero) {
			t.Errorf("%s with no field set: got %+v, error %v", name, got, err)
		}
	}
}

func TestEveryEventIsJSON(t *testing.T) {
	for name, ev := range samples() {
		raw, err := json.Marshal(ev)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		back := reflect.New(reflect.TypeOf(ev))
		if err := json.Unmarshal(raw, back.Interface()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty raw field is left out of JSON, both in a new event and in a decoded one.
func TestEmptyRawFieldsAreJSON(t *testing.T) {
	empty := json.RawMessage{}
	for _, ev := range []Event{
		StatePatched{Patch: empty}, InputAccepted{Metadata: empty},
		ModelCompleted{Items: []Item{{Type: ItemReasoning, Raw: empty}}},
	} {
		f, err := DecodeFrame(testAgent, mustEncode(t, sampleFrame(ev)))
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range []Event{ev, f.Events[0]} {
			if raw, err := json.Marshal(ev); err != nil {
				t.Errorf("%#v: %v", ev, err)
			} else if strings.Contains(string(raw), "patch") || strings.Contains(string(raw), "raw") || strings.Contains(string(raw), "metadata") {
				t.Errorf("got %s, want no empty field", raw)
			}
		}
	}
}

func TestDecodedTimesAreUTC(t *testing.T) {
	was := time.Local
	time.Local = time.FixedZone("somewhere", 3600)
	defer func() { time.Local = was }()
	at := testTime.In(time.Local)
	f, err := DecodeFrame(testAgent, mustEncode(t, sampleFrame(InputAccepted{Deadline: &at}, ModelFailed{RetryAt: &at})))
	if err != nil {
		t.Fatal(err)
	}
	if d := f.Events[0].(InputAccepted).Deadline; *d != testTime {
		t.Errorf("deadline: got %v, want %v", d, testTime)
	}
	if r := f.Events[1].(ModelFailed).RetryAt; *r != testTime {
		t.Errorf("retry at: got %v, want %v", r, testTime)
	}
	if f.Time != testTime {
		t.Errorf("frame time: got %v, want %v", f.Time, testTime)
	}
	for name, ev := range samples() { // their times are UTC
		if f, err := DecodeFrame(testAgent, mustEncode(t, sampleFrame(ev))); err != nil || !reflect.DeepEqual(f.Events[0], ev) {
			t.Errorf("%s: got %+v, error %v, want %+v", name, f.Events[0], err, ev)
		}
	}
}

func TestFrameWithoutOptionalEntries(t *testing.T) {
	want := &Frame{ID: "x", First: 1, Time: testTime, Events: []Event{AgentCreated{Agent: "default/assistant/a1"}, StatePatched{}}}
	got, err := DecodeFrame(testAgent, mustEncode(t, want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, error %v, want %+v", got, err, want)
	}
	if got.Last() != 2 {
		t.Errorf("last event: got %d, want 2", got.Last())
	}
}

func TestEncodeFrameRefuses(t *testing.T) {
	for name, f := range map[string]*Frame{
		"no event":      {First: 1},
		"no number":     {Events: []Event{StatePatched{}}},
		"bad digest":    {First: 1, Events: []Event{StatePatched{}}, Prev: "x", PrevDigest: "xyz"},
		"unknown event": {First: 1, Events: []Event{unknownEvent{}}},
	} {
		if b, err := EncodeFrame(testAgent, f); err == nil {
			t.Errorf("%s: got %x, want an error", name, b)
		}
	}
}

type unknownEvent struct{}

func (unknownEvent) EventType() string { return "alien.landed" }

func refused(t *testing.T, what string, a AgentID, b []byte) error {
	t.Helper()
	f, err := DecodeFrame(a, b)
	if err == nil || f != nil {
		t.Fatalf("%s: got frame %+v, error %v, want an error alone", what, f, err)
	}
	return err
}

func TestDamagedFramesAreRefused(t *testing.T) { // A29
	for _, f := range ordinaryTurn()[:2] {
		b := mustEncode(t, f)
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			refused(t, fmt.Sprintf("bit %d flipped", i), testAgent, b)
			b[i/8] ^= 1 << (i % 8)
		}
		for i := range b {
			refused(t, fmt.Sprintf("cut to %d bytes", i), testAgent, b[:i])
		}
		refused(t, "a byte follows", testAgent, append(b[:len(b):len(b)], 0))
		refused(t, "frame twice", testAgent, append(b[:len(b):len(b)], b...))
	}
}

func TestAnotherAgentsFrameIsRefused(t *testing.T) { // A29
	b := mustEncode(t, sampleFrame(StatePatched{}))
	for _, other := range []AgentID{{"default", "assistant", "a2"}, {"default", "assistan", "ta1"}, {"other", "assistant", "a1"}, {}} {
		if err := refused(t, other.Full(), other, b); !strings.Contains(err.Error(), "another agent's") {
			t.Errorf("frame read for %s: got error %v, want another agent's", other, err)
		}
	}
}

// withChecksum appends a valid checksum to the entries of a map, so that a test fails for
// another reason than the checksum.
func withChecksum(body []byte) []byte {
	b := append(append([]byte{}, body...), sumEntry...)
	return binary.BigEndian.AppendUint32(b, checksum(testAgent, b[:len(body)]))
}

// forged returns a frame with the given entries, in order, and a valid checksum.
func forged(entries ...any) []byte {
	b := []byte{0x80 | byte(len(entries)/2+1)}
	for _, e := range entries {
		raw, err := msgpack.Marshal(e)
		if err != nil {
			panic(err)
		}
		b = append(b, raw...)
	}
	return withChecksum(b)
}

func oneEvent(name string, version int, data any) []any {
	return []any{[]any{name, version, data}}
}

func TestForgedFrames(t *testing.T) { // A29
	patch := map[string]any{"patch": []byte("{}")}
	for _, tc := range []struct {
		name  string
		bytes []byte
		newer bool
		want  string
	}{
		{"newer format", forged("f", 2, "n", 1), true, "format 2"},
		{"format 0", forged("f", 0, "n", 1), false, "format 0"},
		{"newer schema", forged("f", 1, "n", 1, "ev", oneEvent("state.patched", 2, patch)), true, "schema version 2"},
		{"schema 0", forged("f", 1, "n", 1, "ev", oneEvent("state.patched", 0, patch)), false, "begin at 1"},
		{"negative schema", forged("f", 1, "n", 1, "ev", oneEvent("state.patched", -1, patch)), false, "begin at 1"},
		{"unknown event", forged("f", 1, "n", 1, "ev", oneEvent("agent.merged", 1, patch)), true, "agent.merged"},
		{"no events", forged("f", 1, "n", 1, "ev", []any{}), false, "no events"},
		{"nil events", forged("f", 1, "n", 1, "ev", nil), false, "no events"},
		{"no number", forged("f", 1, "ev", oneEvent("state.patched", 1, patch)), false, "no number"},
		{"numbers that wrap", forged("f", 1, "n", uint64(math.MaxUint64), "ev", append(oneEvent("state.patched", 1, patch), oneEvent("state.patched", 1, patch)...)), false, "has no number"},
		{"no format", forged("n", 1, "ev", oneEvent("state.patched", 1, patch)), false, "no format"},
		{"encrypted without a key", forged("f", 1, "n", 1, "ev", oneEvent("state.patched", 1, []byte{1})), false, "no key"},
		{"event of two fields", forged("f", 1, "n", 1, "ev", []any{[]any{"state.patched", 1}}), false, "event 0"},
		{"event data of the wrong type", forged("f", 1, "n", 1, "ev", oneEvent("turn.started", 1, map[string]any{"turn": []any{}})), false, "event 0"},
		{"number as text", forged("f", 1, "n", "1"), false, `entry "n"`},
		{"key that is no text", forged(1, 1), false, "frame"},
		{"no map", withChecksum([]byte{0x01}), false, ""},
		{"too deep", withChecksum(append([]byte{0x82, 0xa1, 'x'}, append(bytes.Repeat([]byte{0x91}, 70), 0xc0)...)), false, "nested deeper"},
	} {
		err := refused(t, tc.name, testAgent, tc.bytes)
		if errors.Is(err, ErrNewer) != tc.newer || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %q, newer %t, want %q, newer %t", tc.name, err, errors.Is(err, ErrNewer), tc.want, tc.newer)
		}
	}
	f, err := DecodeFrame(testAgent, forged("f", 1, "n", 1, "later", map[string]any{"a": 1}, "ev", oneEvent("state.patched", 1, patch)))
	if err != nil || len(f.Events) != 1 {
		t.Errorf("frame with an unknown entry: got error %v, want the entry skipped", err)
	}
}

// testUpcast is an event of this test with two upcasts from older schema versions.
type testUpcast struct {
	Sum  int             `json:"sum"`
	Raw  json.RawMessage `json:"raw"`
	When *time.Time      `json:"when"`
}

func (testUpcast) EventType() string { return "test.lifted" }

func TestUpcasting(t *testing.T) { // A84
	eventsByType["test.lifted"] = event[testUpcast](0,
		func(m map[string]any) (map[string]any, error) {
			if m["bad"] != nil {
				return nil, errors.New("invalid data")
			}
			m["second"] = m["first"]
			return m, nil
		},
		func(m map[string]any) (map[string]any, error) {
			var first, second int64
			fmt.Sscan(fmt.Sprint(m["first"], " ", m["second"]), &first, &second)
			m["sum"] = first + second
			return m, nil
		})
	defer delete(eventsByType, "test.lifted")
	read := func(version int, data map[string]any) (*Frame, error) {
		return DecodeFrame(testAgent, forged("f", 1, "n", 1, "ev", oneEvent("test.lifted", version, data)))
	}
	for version, data := range map[int]map[string]any{
		1: {"first": 21, "raw": []byte("[1]"), "when": testTime},
		2: {"first": 20, "second": 22, "raw": []byte("[1]"), "when": testTime},
		3: {"sum": 42, "raw": []byte("[1]"), "when": testTime},
	} {
		f, err := read(version, data)
		if err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if got := f.Events[0].(testUpcast); got.Sum != 42 || string(got.Raw) != "[1]" || !got.When.Equal(testTime) {
			t.Errorf("version %d: got %+v, want the sum 42", version, got)
		}
	}
	if _, err := read(1, map[string]any{"bad": 1}); err == nil || errors.Is(err, ErrNewer) {
		t.Errorf("failed upcast: got error %v, want one that is not ErrNewer", err)
	}
	if _, err := read(4, nil); !errors.Is(err, ErrNewer) {
		t.Errorf("version 4: got error %v, want %v", err, ErrNewer)
	}
	f, err := DecodeFrame(testAgent, mustEncode(t, sampleFrame(testUpcast{Sum: 1})))
	if err != nil || f.Events[0].(testUpcast).Sum != 1 {
		t.Errorf("written event: got error %v, want the newest version", err)
	}
}
