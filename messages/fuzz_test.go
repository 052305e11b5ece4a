package messages

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// An accepted input is accepted again from its JSON, with the same fields.
func FuzzParseInput(f *testing.F) {
	for _, tc := range malformed() {
		f.Add(tc.headers()(HeaderContentType), []byte(tc.body))
	}
	f.Add("", []byte("hello"))
	f.Add("", []byte(`{"content":[{"type":"image_url","image_url":{"url":"https://x.test"}}],"metadata":{"a":1},"deadline":"2026-01-02T03:04:05Z","id":"x"}`))
	f.Add("", []byte(packed(map[string]any{"content": "x", "deadline": testTime})))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		in, err := ParseInput(testAgent, headers(HeaderContentType, contentType), body)
		if err != nil {
			if e := AsError(err); e.Code == Internal || len(e.Message) > MaxMessage {
				t.Fatalf("got error %+v, want a short refusal", e)
			}
			return
		}
		again, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > MaxBody {
			return // JSON is longer than msgpack
		}
		back, err := ParseInput(testAgent, headers(HeaderContentType, "application/json"), again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		back.Metadata, in.Metadata = nil, nil // spaces may differ
		if a, b := mustJSON(t, in), mustJSON(t, back); !bytes.Equal(a, b) {
			t.Fatalf("got  %s\nwant %s", b, a)
		}
	})
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzParseCommand(f *testing.F) {
	for _, tc := range malformed() {
		f.Add([]byte(tc.body))
	}
	for _, body := range []string{`{"type":"set_state","patch":{"a":null}}`, `{"type":"decide","call":"c","outcome":"retry"}`, `{"type":"resume","max_steps":4,"max_cost":0.5,"max_duration":"9m","agent_limits":{"max_tokens":7}}`,
		`{"type":"clear"}`, `{"type":"cancel","input":"i"}`, `{"type":"cancel","all":true}`, `{"type":"forget","tool":"t"}`,
		`{"type":"approve","call":"c","turn":"t1","args_hash":"ab","remember":true}`, `{"type":"deny","call":"c","text":""}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := ParseCommand(testAgent, headers(), body)
		if err != nil {
			if e := AsError(err); e.Code == Internal || len(e.Message) > MaxMessage {
				t.Fatalf("got error %+v, want a short refusal", e)
			}
			return
		}
		wire, err := Pack(c)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(c))
		if err := UnpackKnown(wire, back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), c) {
			t.Fatalf("got %+v, error %v, want %+v", back.Elem(), err, c)
		}
	})
}

// FuzzDecodeFrame decodes the bytes as they are and with a valid checksum. A decoded frame is
// encoded to the same bytes each time.
func FuzzDecodeFrame(f *testing.F) {
	for _, frame := range append(ordinaryTurn(), sampleFrame(samples()["input.accepted"], samples()["model.completed"])) {
		b, err := EncodeFrame(testAgent, frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-sumSize])
	}
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, withChecksum(b)} {
			frame, err := DecodeFrame(testAgent, b)
			if err != nil {
				continue
			}
			if frame.Prev == "" {
				frame.PrevDigest = "" // has a meaning only with Prev
			}
			again, err := EncodeFrame(testAgent, frame)
			if err != nil {
				t.Fatalf("%+v: %v", frame, err)
			}
			back, err := DecodeFrame(testAgent, again)
			if err != nil {
				t.Fatal(err)
			}
			third, err := EncodeFrame(testAgent, back)
			if err != nil || !bytes.Equal(again, third) {
				t.Fatalf("got  %x, error %v\nwant %x", third, err, again)
			}
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	for _, ev := range samples() {
		b, err := Pack(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(bytes.Repeat([]byte{0x91}, 1<<20))
	f.Add([]byte{0xdd, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var v any
		if err := UnpackKnown(b, &v); err == nil {
			if _, err := Pack(v); err != nil {
				t.Fatalf("%#v: %v", v, err)
			}
		}
		for _, s := range eventsByType {
			_, _ = decodeEvent(s.zero.EventType(), s.version(), b) // may fail, must not panic
		}
		var frame struct {
			Input
			List []Item `json:"list"`
		}
		_ = UnpackKnown(b, &frame) // likewise
	})
}

// A parsed query has no negative limit, and a parsed address is valid.
func FuzzParseQuery(f *testing.F) {
	for _, body := range []string{`{"view":"events","from":3,"follow":true}`, `{"view":"approvals","remembered":true}`, `{"limit":-1}`, `[]`, ``} {
		f.Add([]byte(body), "reprise.q.default.assistant.main")
	}
	f.Add([]byte(`{}`), "reprise.log.07.default.assistant.main")
	f.Add([]byte(`{}`), "reprise.inq.07.ctl.default.assistant.main")
	f.Fuzz(func(t *testing.T, body []byte, subject string) {
		if q, err := ParseQuery(body); err == nil && q.Limit < 0 {
			t.Fatalf("limit: got %d, want none below 0", q.Limit)
		} else if err != nil && AsError(err).Code == Internal {
			t.Fatalf("got error %v, want a refusal", err)
		}
		var s Subjects
		parse := map[string]func() (AgentID, error){
			"agent": func() (AgentID, error) { _, a, err := s.ParseAgent(subject); return a, err },
			"inbox": func() (AgentID, error) { _, a, err := s.ParseInbox(subject); return a, err },
			"log":   func() (AgentID, error) { return s.ParseLog(subject) },
			"name":  func() (AgentID, error) { return ParseAgentID(subject) },
		}
		for what, read := range parse {
			a, err := read()
			if err != nil {
				continue
			}
			if again, err := ParseAgentID(a.Full()); err != nil || again != a {
				t.Fatalf("%s: %q: got %q, error %v, want a valid address", what, subject, a.Full(), err)
			}
		}
	})
}
