package client

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Lines are the same however they were cut into messages.
func TestJoiner(t *testing.T) {
	text := []byte("one\n\n{\"two\":2}\nthree\nrest")
	for size := 1; size <= len(text); size++ {
		var j joiner
		var lines []string
		for piece := range slices.Chunk(text, size) {
			j.add(bytes.Clone(piece), func(line json.RawMessage) bool {
				lines = append(lines, string(line))
				return true
			})
		}
		if want := []string{"one", "", `{"two":2}`, "three"}; !slices.Equal(lines, want) || string(j.begun) != "rest" {
			t.Errorf("in messages of %d bytes: %q and %q", size, lines, j.begun)
		}
	}
	var j joiner
	if more := j.add([]byte("a\nb\n"), func(json.RawMessage) bool { return false }); more {
		t.Error("it continues though no more are wanted")
	}
}

// A line costs memory in proportion to its length, however many messages it takes.
func TestJoinerOfLargeLines(t *testing.T) { // A36
	const pieces, size = 512, 64 << 10
	piece := bytes.Repeat([]byte("x"), size)
	var j joiner
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pieces {
		j.add(piece, nil)
	}
	got := 0
	j.add([]byte("\n"), func(line json.RawMessage) bool {
		got = len(line)
		return true
	})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; got != pieces*size || used > 12*pieces*size {
		t.Errorf("a line of %d bytes took %d", got, used)
	}
}

// A part that was lost on its way is noticed, also if it was the first or the last;
// what has no number is no part, and an endpoint that says how many there are is believed.
func TestReceived(t *testing.T) {
	for _, c := range []struct {
		heard []string // the number of a part, or =n: n were sent
		lost  bool
	}{
		{[]string{"1", "2", "3"}, false},
		{[]string{"", "1", "", "2"}, false},
		{[]string{"", ""}, false},
		{[]string{"=0", "1", "=1", "2", "=1"}, false},
		{[]string{"2"}, true},
		{[]string{"1", "3"}, true},
		{[]string{"1", "1"}, true},
		{[]string{"=1"}, true},
		{[]string{"1", "2", "=3"}, true},
	} {
		var got received
		var err error
		for _, text := range c.heard {
			h := nats.Header{}
			if sent, is := strings.CutPrefix(text, "="); is {
				h.Set(messages.HeaderAlive, sent)
			} else if text != "" {
				h.Set(messages.HeaderPart, text)
			}
			if err = got.take(h); err != nil {
				break
			}
		}
		if (err != nil) != c.lost || c.lost && (messages.AsError(err).Code != messages.Unavailable || !isLost(err)) {
			t.Errorf("%q: %v", c.heard, err)
		}
	}
}

// A chunk is taken apart alike however its sender writes it.
func TestChunkOf(t *testing.T) {
	for _, c := range []struct{ message, kind, data string }{
		{`{"type":"status","data":"ack"}`, "status", `"ack"`},
		{`{"type":"response","data":"a\"}"}`, "response", `"a\"}"`},
		{`{"type":"reprise.events","data":[{"data":{}}]}`, "reprise.events", `[{"data":{}}]`},
		{`{"type":"query","id":"1","data":{}}`, "query", `{}`},
		{`{ "type": "query", "data": {} }`, "query", `{}`},
		{`{"data":"ack","type":"status"}`, "status", `"ack"`},
		{`{"type":"a\"b","data":1}`, `a"b`, `1`},
		{`{"type":"status"}`, "status", ``},
	} {
		if kind, data, err := chunkOf([]byte(c.message)); kind != c.kind || string(data) != c.data || err != nil {
			t.Errorf("%s: %q with %s, %v", c.message, kind, data, err)
		}
	}
	if _, _, err := chunkOf([]byte(`hello`)); err == nil {
		t.Error("what is no JSON is taken for a chunk")
	}
}
