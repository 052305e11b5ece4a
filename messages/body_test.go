package messages

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// headers returns headers from name, value, name, value …
func headers(nv ...string) Header {
	return func(name string) string {
		for i := 0; i < len(nv); i += 2 {
			if nv[i] == name {
				return nv[i+1]
			}
		}
		return ""
	}
}

func packed(v any) string {
	b, err := msgpack.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type bodyCase struct {
	name   string
	header Header
	body   string
	code   Code   // code of the refusal
	want   string // part of its message
}

func (tc bodyCase) headers() Header {
	if tc.header == nil {
		return headers()
	}
	return tc.header
}

func (tc bodyCase) checkRefusal(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error, want %s", tc.name, tc.code)
		return
	}
	e := AsError(err)
	if e.Code != tc.code || !strings.Contains(e.Message, tc.want) || len(e.Message) > MaxMessage {
		t.Errorf("%s: got %s %q, want %s … %s", tc.name, e.Code, e.Message, tc.code, tc.want)
	}
	if strings.ContainsFunc(e.Message, func(r rune) bool { return r < ' ' && r != '\n' }) {
		t.Errorf("%s: got control characters in %q", tc.name, e.Message)
	}
}

func TestParseInputReads(t *testing.T) { // A102
	deadline := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text := func(s string) Input { return Input{Content: TextContent(s)} }
	json := headers("Content-Type", "application/json; charset=utf-8")
	for _, tc := range []struct {
		name   string
		header Header
		body   string
		want   Input
	}{
		{"plain text", headers(), "hello\n wörld", text("hello\n wörld")},
		{"text that looks like a list", headers(), `["a"]`, text(`["a"]`)},
		{"a space before the brace", headers(), ` {"content":"x"}`, text(` {"content":"x"}`)},
		{"JSON as plain text", headers("Content-Type", "text/plain; charset=utf-8"), `{"content":"x"}`, text(`{"content":"x"}`)},
		{"a brace as plain text", headers("Content-Type", "Text/Plain"), "{", text("{")},
		{"Thaana", headers(), "ދިވެހި", text("ދިވެހި")},
		{"N'Ko", headers(), "ߒߞߏ", text("ߒߞߏ")},
		{"JSON by its first byte", headers(), `{"content":"x"}`, text("x")},
		{"JSON by type", json, ` {"type":"input","content":"x"}`, text("x")},
		{"vendor JSON", headers("Content-Type", "application/vnd.x+json"), `{"content":"x"}`, text("x")},
		{"msgpack by its first byte", headers(), packed(map[string]any{"content": "x"}), text("x")},
		{"msgpack by type", headers("Content-Type", "application/msgpack"), packed(map[string]any{"type": "input", "content": "x"}), text("x")},
		{"msgpack map16", headers(), "\xde\x00\x01\xa7content\xa1x", text("x")},
		{"msgpack map32", headers(), "\xdf\x00\x00\x00\x01\xa7content\xa1x", text("x")},
		{"parts", headers(), `{"content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x.test/a.png","detail":"low"}},{"type":"image_url","image_url":"https://x.test/b.png"}]}`,
			Input{Content: Content{{Type: "text", Text: "see"}, {Type: "image_url", ImageURL: "https://x.test/a.png", Detail: "low"}, {Type: "image_url", ImageURL: "https://x.test/b.png"}}}},
		{"an image alone", headers(), `{"content":[{"type":"image_url","image_url":"https://x.test/b.png"}]}`, Input{Content: Content{{Type: "image_url", ImageURL: "https://x.test/b.png"}}}},
		{"every field", headers("Reprise-Id", "h", "Reprise-Reply", "h", "Reprise-Deadline", "2020-01-01T00:00:00Z"),
			`{"agent":"assistant/a1","tenant":"default","kind":"assistant","key":"a1","id":"b","policy":"reject","content":"x","metadata":{"n":12345678901234567890.50},"deadline":"2026-01-02T05:04:05+02:00","reply":"r.s","options":{"max_steps":3}}`,
			Input{ID: "b", Policy: PolicyReject, Content: TextContent("x"), Metadata: []byte(`{"n":12345678901234567890.50}`), Deadline: &deadline, Reply: "r.s", Options: InputOptions{MaxSteps: 3}}},
		{"fields by header", headers("Reprise-Id", "h", "Nats-Msg-Id", "m", "Reprise-Reply", "r", "Reprise-Deadline", "2026-01-02T05:04:05+02:00"), "x",
			Input{ID: "h", Content: TextContent("x"), Deadline: &deadline, Reply: "r"}},
		{"id of the message", headers("Nats-Msg-Id", "m"), `{"content":"x"}`, Input{ID: "m", Content: TextContent("x")}},
		{"escape sequences in a text", headers(), "\x1b[2Jx", text("\x1b[2Jx")},
		{"the largest text", headers(), strings.Repeat("a", 8<<20), text(strings.Repeat("a", 8<<20))},
		{"deepest JSON", headers(), `{"content":"x","metadata":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
			Input{Content: TextContent("x"), Metadata: []byte(strings.Repeat("[", 63) + strings.Repeat("]", 63))}},
	} {
		got, err := ParseInput(testAgent, tc.header, []byte(tc.body))
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %+v, error %v\nwant %+v", tc.name, got, err, tc.want)
		}
	}
}

// malformed returns bodies that are refused as inputs and as commands.
func malformed() []bodyCase {
	json, mp := headers("Content-Type", "application/json"), headers("Content-Type", "application/msgpack")
	in := func(v any) string { return packed(map[string]any{"content": "x", "type": "input", "v": v}) }
	deep := strings.Repeat(`{"a":`, 100000)
	return []bodyCase{
		{"empty", nil, "", BadInput, "empty"},
		{"empty JSON", json, "", BadInput, "empty"},
		{"binary garbage", nil, "\xff\xfe\x00\x01", BadInput, ""},
		{"an opening brace alone", nil, "{", BadInput, "cannot be read"},
		{"JSON cut off", nil, `{"content":"x"`, BadInput, "text/plain"},
		{"bytes after JSON", nil, `{"content":"x"}{}`, BadInput, "cannot be read"},
		{"JSON list", json, `["x"]`, BadInput, "must be an object"},
		{"JSON text", json, `"x"`, BadInput, "must be an object"},
		{"JSON with invalid UTF-8", nil, "{\"content\":\"\xff\"}", BadInput, "UTF-8"},
		{"deep JSON", nil, `{"content":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, BadInput, "deeper than 64"},
		{"very deep JSON", nil, deep[:MaxBody/2], BadInput, "deeper than 64"},
		{"other content type", headers("Content-Type", "image/png"), "x", BadInput, `"image/png"`},
		{"msgpack list by type", mp, "\x91\xa1x", BadInput, "no map"},
		{"msgpack cut off", nil, "\x81\xa7content", BadInput, "cut off"},
		{"bytes after msgpack", nil, "\x81\xa7content\xa1x\xc0", BadInput, "1 bytes follow"},
		{"msgpack with number keys", nil, "\x81\x01\x02", BadInput, "no map with text keys"},
		{"msgpack reserved byte", nil, "\x81\xa1a\xc1", BadInput, "0xc1"},
		{"deep msgpack", mp, strings.Repeat("\x91", MaxBody), BadInput, "deeper than 64"},
		{"huge map", nil, "\xdf\xff\xff\xff\xff", BadInput, "cut off"},
		{"huge map16", nil, "\xde\xff\xff", BadInput, "cut off"},
		{"huge list", nil, "\x81\xa1a\xdd\xff\xff\xff\xff", BadInput, "cut off"},
		{"huge text", nil, "\x81\xa1a\xdb\xff\xff\xff\xff", BadInput, "cut off"},
		{"huge binary", nil, "\x81\xa1a\xc6\xff\xff\xff\xff", BadInput, "cut off"},
		{"huge extension", nil, "\x81\xa1a\xc9\xff\xff\xff\xff\x01", BadInput, "cut off"},
		{"unknown extension", nil, "\x81\xa1a\xd4\x2a\x00", BadInput, "no map"},
		{"malformed time", nil, "\x81\xa1a\xd4\xff\x00", BadInput, "no map"},
		{"msgpack NaN", nil, "\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", BadInput, "what JSON cannot"},
		{"msgpack text with invalid UTF-8", nil, in("\xff"), BadInput, "no UTF-8"},
		{"msgpack name with invalid UTF-8", nil, in(map[string]any{"\xff": 1}), BadInput, "no UTF-8"},
		{"msgpack binary", nil, in([]any{[]byte("x")}), BadInput, "binary"},
		{"another tenant", nil, `{"type":"input","content":"x","tenant":"acme"}`, BadInput, `tenant "acme"`},
		{"another kind", nil, `{"type":"input","content":"x","kind":"other"}`, BadInput, `kind "other"`},
		{"another key", nil, `{"type":"input","content":"x","key":"a2"}`, BadInput, `key "a2"`},
		{"another agent", nil, `{"type":"input","content":"x","agent":"acme/assistant/a1"}`, BadInput, `tenant "acme"`},
		{"another tenant beside the right agent", nil, `{"type":"input","content":"x","agent":"assistant/a1","tenant":"acme"}`, BadInput, `tenant "acme"`},
		{"a bad agent", nil, `{"type":"input","content":"x","agent":"a.b/c"}`, BadAddress, "'.'"},
		{"a long bad agent", nil, `{"type":"input","content":"x","agent":"` + strings.Repeat("/", 100000) + `"}`, BadAddress, "write kind/key"},
		{"an unknown type", nil, `{"type":"approve\u001b[2J","content":"x"}`, UnknownCommand, `\x1b`},
		{"a type that is not a string", nil, `{"type":5}`, BadInput, "must be a string"},
	}
}

func TestParseInputRefuses(t *testing.T) { // A102
	cases := append(malformed(), []bodyCase{
		{"whitespace", nil, " \n\t", BadInput, "empty"},
		{"no content", nil, `{"id":"x"}`, BadInput, "empty"},
		{"null", headers("Content-Type", "application/json"), `null`, BadInput, "empty"},
		{"null content", nil, `{"content":null}`, BadInput, "empty"},
		{"blank content", nil, `{"content":"  "}`, BadInput, "empty"},
		{"no parts", nil, `{"content":[]}`, BadInput, "empty"},
		{"blank part", nil, `{"content":[{"type":"text"}]}`, BadInput, "empty"},
		{"content that is a number", nil, `{"content":5}`, BadInput, "content: write a string"},
		{"unknown part", nil, `{"content":[{"type":"audio"}]}`, BadInput, `type "audio"`},
		{"image without address", nil, `{"content":[{"type":"image_url"}]}`, BadInput, "image_url"},
		{"image of a number", nil, `{"content":[{"type":"image_url","image_url":5}]}`, BadInput, "image_url"},
		{"image without url", nil, `{"content":[{"type":"image_url","image_url":{}}]}`, BadInput, "empty"},
		{"a command", nil, `{"type":"abort"}`, UnknownCommand, "ctl subject"},
		{"misspelled policy", nil, `{"content":"x","policy":"rejct"}`, BadInput, `policy "rejct"`},
		{"negative max_steps", nil, `{"content":"x","options":{"max_steps":-1}}`, BadInput, "positive"},
		{"max_steps as text", nil, `{"content":"x","options":{"max_steps":"1"}}`, BadInput, "max_steps"},
		{"huge max_steps", nil, `{"content":"x","options":{"max_steps":1e99}}`, BadInput, "max_steps"},
		{"bad deadline", nil, `{"content":"x","deadline":"tomorrow"}`, BadInput, "tomorrow"},
		{"bad deadline header", headers("Reprise-Deadline", "tomorrow"), "x", BadInput, "RFC 3339"},
		{"long id", nil, `{"content":"x","id":"` + strings.Repeat("i", MaxID+1) + `"}`, BadInput, "257 bytes"},
		{"id with a newline", headers("Reprise-Id", "a\nb"), "x", BadInput, "control characters"},
		{"id with DEL", nil, "{\"content\":\"x\",\"id\":\"\x7f\"}", BadInput, "control characters"},
		{"id with a C1 control", nil, `{"content":"x","id":"\u009b2J"}`, BadInput, "control characters"},
		{"id with invalid UTF-8", headers("Nats-Msg-Id", "\xff"), "x", BadInput, "UTF-8"},
	}...)
	for _, tc := range cases {
		in, err := ParseInput(testAgent, tc.headers(), []byte(tc.body))
		tc.checkRefusal(t, err)
		if !reflect.DeepEqual(in, Input{}) {
			t.Errorf("%s: got input %+v with the error, want none", tc.name, in)
		}
	}
}

func TestParseCommandReads(t *testing.T) {
	for _, tc := range []struct {
		name   string
		header Header
		body   string
		want   Command
	}{
		{"interrupt", headers(), `{"type":"interrupt","id":"c","reason":"stop"}`, Interrupt{ID: "c", Reason: "stop"}},
		{"abort", headers("Reprise-Id", "h"), `{"type":"abort"}`, Abort{ID: "h"}},
		{"resume", headers("Nats-Msg-Id", "m"), `{"type":"resume","turn":"t2","max_steps":40}`, Resume{ID: "m", Turn: "t2", LimitOverrides: LimitOverrides{MaxSteps: 40}}},
		{"decide", headers("Reprise-Id", "h", "Nats-Msg-Id", "m"), `{"type":"decide","id":"c","call":"c1","outcome":"completed","result":"ok"}`, Decide{ID: "c", Call: "c1", Outcome: OutcomeCompleted, Result: "ok"}},
		{"decide retry", headers(), `{"type":"decide","call":"c1","outcome":"retry"}`, Decide{Call: "c1", Outcome: OutcomeRetry}},
		{"raised limits", headers(), `{"type":"resume","max_tokens":9,"max_cost":0.5,"max_duration":"90s","agent_limits":{"max_cost":7}}`,
			Resume{LimitOverrides: LimitOverrides{MaxTokens: 9, MaxCost: 0.5, MaxDuration: Span(90 * time.Second)}, AgentLimits: LimitOverrides{MaxCost: 7}}},
		{"clear", headers(), `{"type":"clear","reason":"anew"}`, Clear{Reason: "anew"}},
		{"cancel an input", headers(), `{"type":"cancel","id":"w","input":"u1"}`, Cancel{ID: "w", Input: "u1"}},
		{"cancel all", headers(), `{"type":"cancel","all":true}`, Cancel{All: true}},
		{"approve", headers(), `{"type":"approve","call":"c1","args_hash":"ab","remember":true}`, Approve{Call: "c1", ArgsHash: "ab", Remember: true}},
		{"deny", headers(), `{"type":"deny","call":"c1"}`, Deny{Call: "c1"}},
		{"deny with an empty text", headers(), `{"type":"deny","call":"c1","text":""}`, Deny{Call: "c1", Text: new(string)}},
		{"forget", headers(), `{"type":"forget","tool":"refund"}`, Forget{Tool: "refund"}},
		{"set_state", headers(), `{"type":"set_state","patch": {"a":null}}`, SetState{Patch: []byte(`{"a":null}`)}},
		{"msgpack", headers(), packed(map[string]any{"type": "set_state", "patch": map[string]any{"n": uint64(1<<64 - 1)}}), SetState{Patch: []byte(`{"n":18446744073709551615}`)}},
	} {
		got, err := ParseCommand(testAgent, tc.header, []byte(tc.body))
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %#v, error %v, want %#v", tc.name, got, err, tc.want)
			continue
		}
	}
}

func TestParseCommandRefuses(t *testing.T) { // A102
	cases := append(malformed(), []bodyCase{
		{"too large", nil, strings.Repeat("a", MaxBody+1), TooLarge, "393217 bytes"},
		{"deep msgpack, 1 MB", headers("Content-Type", "application/msgpack"), strings.Repeat("\x91", 1<<20), TooLarge, ""},
		{"plain text", nil, "abort", BadInput, `"type"`},
		{"JSON as plain text", headers("Content-Type", "text/plain"), `{"type":"abort"}`, BadInput, `"type"`},
		{"no type", nil, `{"id":"x"}`, UnknownCommand, `""`},
		{"null", headers("Content-Type", "application/json"), `null`, UnknownCommand, ""},
		{"an input", nil, `{"type":"input","content":"x"}`, UnknownCommand, "in subject"},
		{"a command of a later version", nil, `{"type":"merge","call":"c1"}`, UnknownCommand, "interrupt, abort, clear, cancel, compact, resume, approve, deny, forget, decide, set_state"},
		{"approve without a call", nil, `{"type":"approve"}`, BadInput, "approve names no call"},
		{"deny without a call", nil, `{"type":"deny","text":"no"}`, BadInput, "deny names no call"},
		{"forget without a tool", nil, `{"type":"forget"}`, BadInput, "names no tool"},
		{"cancel without a target", nil, `{"type":"cancel"}`, BadInput, `"all" to true`},
		{"cancel one and all", nil, `{"type":"cancel","all":true,"input":"i"}`, BadInput, `"all" to true`},
		{"cancel an input and a timer", nil, `{"type":"cancel","timer":"t","input":"i"}`, BadInput, `"all" to true`},
		{"negative max_cost", nil, `{"type":"resume","max_cost":-3}`, BadInput, "max_cost"},
		{"negative limit of the agent", nil, `{"type":"resume","agent_limits":{"max_tokens":-3}}`, BadInput, "agent_limits.max_tokens"},
		{"a number for a duration", nil, `{"type":"resume","max_duration":3}`, BadInput, "written as text"},
		{"an invalid duration", nil, `{"type":"resume","max_duration":"soon"}`, BadInput, "30s or 10m"},
		{"reason of the wrong type", nil, `{"type":"abort","reason":5}`, BadInput, "reason"},
		{"decide without a call", nil, `{"type":"decide","outcome":"failed"}`, BadInput, "names no call"},
		{"decide with a misspelled outcome", nil, `{"type":"decide","call":"c1","outcome":"complete"}`, BadInput, `"complete"`},
		{"negative max_steps", nil, `{"type":"resume","max_steps":-3}`, BadInput, "positive"},
		{"no patch", nil, `{"type":"set_state"}`, BadInput, "merge patch"},
		{"patch that is a list", nil, `{"type":"set_state","patch":[1]}`, BadInput, "merge patch"},
		{"patch that is null", nil, `{"type":"set_state","patch":null}`, BadInput, "merge patch"},
		{"long id", headers("Reprise-Id", strings.Repeat("i", MaxID+1)), `{"type":"abort"}`, BadInput, "257 bytes"},
		{"id with a newline", nil, `{"type":"abort","id":"a\nb"}`, BadInput, "control characters"},
		{"a field in another spelling", nil, `{"type":"approve","call":"c","Args_Hash":""}`, BadInput, `no field "Args_Hash"`},
		{"a field twice", nil, `{"type":"approve","call":"a","call":"b"}`, BadInput, `"call" twice`},
		{"an unknown nested field", nil, `{"type":"resume","agent_limits":{"Max_Tokens":5}}`, BadInput, `no field "Max_Tokens"`},
		{"a nested field twice", nil, `{"type":"resume","agent_limits":{"max_tokens":5,"max_tokens":7}}`, BadInput, `"max_tokens" twice`},
		{"a field twice in msgpack", headers("Content-Type", "application/msgpack"), "\x83\xa4type\xa5abort\xa4turn\xa2t4\xa4turn\xa0", BadInput, `"turn" comes twice`},
		{"a cost that rounds to zero", nil, `{"type":"resume","max_cost":1e-10}`, BadInput, "rounds to nothing"},
		{"a duration that rounds to zero", nil, `{"type":"resume","agent_limits":{"max_duration":"999us"}}`, BadInput, "agent_limits.max_duration is 999µs: write at least 1ms"},
		{"an unknown field", nil, `{"type":"approve","call":"a","argshash":"x"}`, BadInput, `no field "argshash"`},
		{"long reason", nil, `{"type":"interrupt","reason":"` + strings.Repeat("r", maxReason+1) + `"}`, TooLarge, "4097 bytes"},
		{"long denial", nil, `{"type":"deny","call":"c","text":"` + strings.Repeat("t", MaxDenial+1) + `"}`, TooLarge, "8193 bytes"},
		{"long tool", nil, `{"type":"forget","tool":"` + strings.Repeat("t", maxReason+1) + `"}`, TooLarge, "4097 bytes"},
		{"long input", nil, `{"type":"cancel","input":"` + strings.Repeat("i", maxReason+1) + `"}`, TooLarge, "4097 bytes"},
		{"long call", nil, `{"type":"approve","call":"` + strings.Repeat("c", maxReason+1) + `"}`, TooLarge, "4097 bytes"},
	}...)
	for _, tc := range cases {
		got, err := ParseCommand(testAgent, tc.headers(), []byte(tc.body))
		tc.checkRefusal(t, err)
		if got != nil {
			t.Errorf("%s: got command %+v with the error, want none", tc.name, got)
		}
	}
}

// Commands and inputs are unpacked as they were packed, and WithID changes only the id.
func TestCommandsAndInputsSurviveTheWire(t *testing.T) {
	for _, c := range []Command{Input{}, Interrupt{}, Abort{}, Clear{}, Cancel{}, Compact{}, Resume{}, Approve{}, Deny{}, Forget{}, Decide{}, SetState{}} {
		v := reflect.New(reflect.TypeOf(c))
		fill(v.Elem(), "x")
		b, err := Pack(v.Elem().Interface())
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(c))
		if err := UnpackKnown(b, back.Interface()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back.Interface(), v.Interface()) {
			t.Errorf("%T: got %+v, want %+v", c, back.Elem(), v.Elem())
		}
		if again := WithID(c, "n"); IDOf(again) != "n" || again.CommandType() != c.CommandType() {
			t.Errorf("%T with the id n: got %+v", c, again)
		}
		if c := back.Elem().Interface().(Command); IDOf(c) == "" || c.CommandType() == "" {
			t.Errorf("%T: got id %q and type %q, want neither empty", c, IDOf(c), c.CommandType())
		}
	}
}

func TestStreamInputID(t *testing.T) {
	at := time.UnixMilli(1767322800123)
	stored, zone := time.Unix(1767322900, 5), time.FixedZone("", 3600)
	id := StreamInputID(at, 42, stored)
	if want := "in:1767322800123:42:1767322900000000005"; id != want || id != StreamInputID(at.In(zone), 42, stored.In(zone)) {
		t.Errorf("id: got %s, want %s", id, want)
	}
	if id == StreamInputID(at, 43, stored) || id == StreamInputID(at.Add(time.Second), 42, stored) || id == StreamInputID(at, 42, stored.Add(1)) {
		t.Error("got the same id for two messages, want different ones")
	}
}

func TestErrorsAreBounded(t *testing.T) {
	e := Refuse(BadInput, "%s: write less", strings.Repeat("ü", 100000))
	if len(e.Message) > MaxMessage || !strings.HasSuffix(e.Message, "write less") || !bytes.HasPrefix([]byte(e.Message), []byte("ü")) {
		t.Errorf("message: got %d bytes, want at most %d, with both ends kept: %s", len(e.Message), MaxMessage, e.Message)
	}
}

func TestCodes(t *testing.T) {
	for c := range codes {
		if s := c.Status(); !slices.Contains([]int{400, 401, 403, 404, 409, 429, 500}, s) {
			t.Errorf("status of %s: got %d, which the agent protocol does not know", c, s)
		}
	}
	if Internal.Status() != 500 || Code("newer").Status() != 500 {
		t.Errorf("status: got %d for an internal error, %d for an unknown code, want 500", Internal.Status(), Code("newer").Status())
	}
	for kind, want := range map[string]Code{"rate_limit": ModelRateLimit, "network": Internal, "": Internal} {
		if got := (TurnFailed{Kind: ModelFailure(kind)}).Code(); got != want {
			t.Errorf("code of a turn that failed with %q: got %s, want %s", kind, got, want)
		}
	}
}
