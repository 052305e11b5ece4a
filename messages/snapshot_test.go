package messages

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// packable has a field of each kind that snapshots hold.
type packable struct {
	Text  string            `json:"text"`
	Bytes []byte            `json:"bytes"`
	List  []Item            `json:"list"`
	Map   map[string]Limits `json:"map"`
	Next  *packable         `json:"next"`
	Plain int
}

func samplePackable() *packable {
	return &packable{
		Text: "a", Bytes: []byte{1, 2}, List: []Item{Text(RoleUser, "hi"), {Type: ItemCall, CallID: "c1", Raw: []byte(`{}`)}},
		Map: map[string]Limits{"x": {MaxSteps: 3}}, Next: &packable{Text: "b"}, Plain: -7,
	}
}

func TestSnapshotBytes(t *testing.T) { // A27, A87
	want := samplePackable()
	b, err := EncodeSnapshot(testAgent, "turn-1", want)
	if err != nil {
		t.Fatal(err)
	}
	var got packable
	if err := DecodeSnapshot(testAgent, "turn-1", b, &got); err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("error %v\ngot  %+v\nwant %+v", err, got, want)
	}
	other := testAgent
	other.Key += "x"
	for name, err := range map[string]error{
		"another agent":  DecodeSnapshot(other, "turn-1", b, &got),
		"another name":   DecodeSnapshot(testAgent, "turn-2", b, &got),
		"cut off":        DecodeSnapshot(testAgent, "turn-1", b[:len(b)-1], &got),
		"empty":          DecodeSnapshot(testAgent, "turn-1", nil, &got),
		"another format": DecodeSnapshot(testAgent, "turn-1", withSnapshotSum(bytes.Replace(b, []byte{'f', snapshotFormat}, []byte{'f', 99}, 1)), &got),
		"another struct": DecodeSnapshot(testAgent, "turn-1", b, &struct{ Text int }{}),
		"fewer fields": DecodeSnapshot(testAgent, "turn-1", b, &struct {
			Text string `json:"text"`
		}{}),
	} {
		if err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 1
		if DecodeSnapshot(testAgent, "turn-1", damaged, &got) == nil {
			t.Errorf("flipped bit in byte %d: got no error, want one", i)
		}
	}
}

// withSnapshotSum returns the snapshot with a valid checksum.
func withSnapshotSum(b []byte) []byte {
	if len(b) < sumSize {
		return b
	}
	cut := len(b) - sumSize
	sum := snapshotSum(testAgent, "turn-1", b[:cut])
	return append(append(bytes.Clone(b[:cut]), sumEntry...), byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

// A snapshot with a valid checksum is decoded or refused. A decoded one can be encoded.
func FuzzSnapshot(f *testing.F) {
	b, err := EncodeSnapshot(testAgent, "turn-1", samplePackable())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(strings.Repeat("\x91", 200)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got packable
		if DecodeSnapshot(testAgent, "turn-1", withSnapshotSum(b), &got) != nil {
			return
		}
		if _, err := EncodeSnapshot(testAgent, "turn-1", &got); err != nil {
			t.Errorf("encode of the decoded snapshot: got error %v, want none", err)
		}
	})
}
