package projections

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// patched returns the state after the patches.
func patched(patches ...string) string {
	var s State
	for i, p := range patches {
		s.Apply(messages.EventNumber(i+1), messages.StatePatched{Patch: json.RawMessage(p)})
	}
	return string(s.JSON())
}

// The cases are those of RFC 7396, appendix A. The first patch sets the target.
func TestMergePatchRFC7396(t *testing.T) {
	for _, tc := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		if got := patched(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%s merged with %s: got %s, want %s", tc[0], tc[1], got, tc[2])
		}
	}
}

func TestState(t *testing.T) {
	for _, tc := range []struct{ name, got, want string }{
		{"begins empty", patched(), `{}`},
		{"numbers keep their digits", patched(`{"b":12345678901234567890.10,"a":1e400,"c":-0.0}`), `{"a":1e400,"b":12345678901234567890.10,"c":-0.0}`},
		{"nulls in lists stay", patched(`{"a":[null,{"b":null}]}`), `{"a":[null,{"b":null}]}`},
		{"keys are sorted, spaces removed, HTML not escaped", patched(` { "b" : "<&>" , "a" : {"z":1,"y":2} } `), `{"a":{"y":2,"z":1},"b":"<&>"}`},
		{"invalid JSON changes nothing", patched(`{"a":1}`, `{"a":`, ``, `{} {}`), `{"a":1}`},
		{"an object replaces another value", patched(`{"a":1}`, `{"a":{"b":{"c":null,"d":2}}}`), `{"a":{"b":{"d":2}}}`},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, tc.got, tc.want)
		}
	}
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	if got := patched(deep, deep); got != deep {
		t.Errorf("deep patch: got %d bytes, want it unchanged", len(got))
	}
}

func FuzzState(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"b":null,"c":[]}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		once := patched(a, b)
		if !json.Valid([]byte(once)) {
			t.Fatalf("state: got %s, want valid JSON", once)
		}
		if again := patched(a, b, b); again != once {
			t.Fatalf("patch applied twice: got %s, want %s", again, once)
		}
	})
}
