package export_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/eventlog/export/redact"
	"github.com/reprise-dev/reprise/messages"
)

const (
	email = "ann.lee@example.com"
	card  = "4111111111111111"
)

// personal is an agent with an address and a card number in every place that holds text.
func personal(t *testing.T) stored {
	t.Helper()
	var s stored
	hash := s.define(`{"kind":"support","model":"demo/demo","instructions":"Write to ` + email + `","tools":[{"name":"refund","description":"asks ` + email + `"}]}`)
	args := `{"card":` + card + `,"to":{"mail":"` + email + `"},"nested":"{\"mail\":\"ann.lee\u0040example.com\"}","list":["` + card + `"],"order":7}`
	output := s.keep(`{"mail":"` + email + `","rows":[1,2]}`)
	raw := s.keep(`{"type":"web_search","id":"ws_1","query":"who is ` + email + `"}`)
	text := email
	s.frame(messages.Cause{Type: "input", ID: email, By: email, Digest: "00112233aabbccdd", Reason: "as " + email + " said"},
		messages.AgentCreated{Agent: ann.Full(), By: "in"},
		messages.AgentConfigured{Definition: hash, Model: "demo/demo"},
		messages.InputAccepted{Input: email, Content: messages.TextContent("I am " + email + ", card " + card), Metadata: json.RawMessage(`{"` + email + `":"x"}`)},
		messages.TurnStarted{Turn: "t1", Inputs: []string{email}, Definition: hash},
		messages.ModelRequested{Turn: "t1", Step: 1, Call: "m1", Definition: hash, Instructions: strings.Repeat("ab", 32), Request: strings.Repeat("cd", 32), Inputs: []string{email}})
	s.frame(messages.Cause{Type: messages.CauseEffect},
		messages.ModelCompleted{Turn: "t1", Step: 1, Call: "m1", Items: []messages.Item{
			messages.Text(messages.RoleAssistant, "Dear "+email),
			{Type: messages.ItemCall, CallID: "c1", Name: "refund", Arguments: args},
			{Type: "web_search", RawBlob: raw},
			{Type: "web_search", Raw: json.RawMessage(`{"type":"web_search","q":"` + email + `"}`)},
		}},
		messages.ToolRequested{Turn: "t1", Step: 1, Call: "c1", Tool: "refund", Arguments: args},
		messages.ApprovalRequested{Turn: "t1", Call: "c1", Tool: "refund", Arguments: args, ArgsHash: messages.HashArguments(args)},
		messages.TurnPaused{Turn: "t1", Reason: "approval", Calls: []messages.CallID{"c1"}},
		messages.ChildDecided{Call: "c1", ArgsHash: messages.HashArguments(args), Text: &text, Person: &messages.Person{Name: email}},
		messages.ToolCompleted{Turn: "t1", Call: "c1", Blob: output},
		messages.StatePatched{Patch: json.RawMessage(`{"mail":"` + email + `"}`)},
		messages.TurnCompleted{Turn: "t1", Inputs: []string{email}, Output: "Done, " + email})
	return s
}

// redacted returns the file of an agent under rules.
func redacted(t *testing.T, s stored, o export.Options) []byte {
	t.Helper()
	as, err := o.Redactor.Begin(ann)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := export.NewWriter(&file, export.Head{Agent: as.Full(), Blobs: o.Blobs, Redacted: o.Redactor.Names()})
	if err != nil {
		t.Fatal(err)
	}
	missing, err := export.Copy(context.Background(), s, w, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(missing, o.Redactor.Counts()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func redactor(t *testing.T, rules ...redact.Rule) *redact.Redactor {
	t.Helper()
	r, err := redact.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holds reports whether a file holds a text, in its lines, or in what is in base64 there.
func holds(file []byte, text string) bool {
	if bytes.Contains(file, []byte(text)) {
		return true
	}
	for _, m := range regexp.MustCompile(`"(?:frame|data)":"([A-Za-z0-9+/=]+)"`).FindAllSubmatch(file, -1) {
		if b, err := base64.StdEncoding.DecodeString(string(m[1])); err == nil && bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}

// What rules find is in no place of the file, and the structure of the events is that of the log.
func TestRedaction(t *testing.T) { // A83
	s := personal(t)
	plain := func() []byte {
		var file bytes.Buffer
		w, _ := export.NewWriter(&file, export.Head{Agent: ann.Full()})
		if _, err := export.Copy(context.Background(), s, w, export.Options{Blobs: true}); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}()
	if !holds(plain, email) || !holds(plain, card) {
		t.Fatal("what is to be redacted is not found without rules: the test shows nothing")
	}
	emails := redact.Rule{Name: "email", Pattern: regexp.MustCompile(`[\w.]+@[\w.]+\w`)}
	for name, rules := range map[string][]redact.Rule{
		"patterns": {emails, {Name: "card", Pattern: regexp.MustCompile(`\d{16}`)}},
		"path":     {emails, {Name: "card", Path: "tool.requested.arguments.card"}},
		"paths":    {{Name: "email", Path: "tool.completed.output.mail"}, {Name: "card", Path: "*.list"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := redactor(t, rules...)
			file := redacted(t, personal(t), export.Options{Blobs: true, Redactor: r})
			for _, secret := range []string{email, "ann.lee", card, `ann.lee\u0040`, string(messages.DigestOf(s.blobs[messages.BlobsOf(s.frames[1].Events[5])[0].SHA256]))} {
				if holds(file, secret) {
					t.Errorf("the file holds %q", secret)
				}
			}
			if un := r.Unmatched(); len(un) > 0 {
				t.Errorf("rules %q found nothing", un)
			}
			structure(t, only(t, file), s)
		})
	}
	if holds(plain, "email:") {
		t.Error("the source was changed")
	}
}

// structure checks that a redacted agent has the events of the source, which fit together.
func structure(t *testing.T, a *export.Agent, s stored) {
	t.Helper()
	var got, want []string
	for i, f := range a.Frames {
		if f.ID != s.frames[i].ID || f.First != s.frames[i].First || !f.Time.Equal(s.frames[i].Time) {
			t.Errorf("frame %d: got %+v", i, f)
		}
		for j, ev := range f.Events {
			got, want = append(got, ev.EventType()), append(want, s.frames[i].Events[j].EventType())
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got events %q, want %q", got, want)
	}
	first, second := a.Frames[0].Events, a.Frames[1].Events
	input := first[2].(messages.InputAccepted).Input
	if input == email || first[3].(messages.TurnStarted).Inputs[0] != input || first[4].(messages.ModelRequested).Inputs[0] != input || second[7].(messages.TurnCompleted).Inputs[0] != input || a.Frames[0].Cause.ID != input {
		t.Errorf("the id of the input is %q, and another one elsewhere", input)
	}
	if digest := a.Frames[0].Cause.Digest; len(digest) != 16 || digest == s.frames[0].Cause.Digest {
		t.Errorf("the digest of the input is %q, which is of what was redacted", digest)
	}
	hash := messages.Digest(first[1].(messages.AgentConfigured).Definition)
	if a.Definitions[hash] == nil || first[3].(messages.TurnStarted).Definition != string(hash) || strings.Contains(string(a.Definitions[hash]), email) || !strings.Contains(string(a.Definitions[hash]), `"name":"refund"`) {
		t.Errorf("definition %s: got %s", hash, a.Definitions[hash])
	}
	if m := first[4].(messages.ModelRequested); m.Request == strings.Repeat("cd", 32) || len(m.Request) != 64 {
		t.Errorf("the hash of the request is %q, which is of what was redacted", m.Request)
	}
	args, asked := second[1].(messages.ToolRequested).Arguments, second[2].(messages.ApprovalRequested)
	if asked.ArgsHash != messages.HashArguments(args) || asked.Arguments != args || second[0].(messages.ModelCompleted).Items[1].Arguments != args || second[4].(messages.ChildDecided).ArgsHash != asked.ArgsHash {
		t.Errorf("the hash of the arguments is %s, of %s", asked.ArgsHash, asked.Arguments)
	}
	var fields struct {
		Card, Nested string
		Order        int
		To           struct{ Mail string }
	}
	if err := json.Unmarshal([]byte(args), &fields); err != nil || fields.Order != 7 || !strings.HasPrefix(fields.Card, "[card:") || !strings.HasPrefix(fields.To.Mail, "[email:") || !json.Valid([]byte(fields.Nested)) {
		t.Errorf("got arguments %s, error %v", args, err)
	}
	for _, ev := range second {
		for _, b := range messages.BlobsOf(ev) {
			if data := a.Blobs[b.SHA256]; messages.DigestOf(data) != b.SHA256 || int64(len(data)) != b.Size || !json.Valid(data) || !strings.Contains(string(data), fields.To.Mail) {
				t.Errorf("blob %s: got %q, want it redacted with %s", b.SHA256, data, fields.To.Mail)
			}
		}
	}
	if p := second[3].(messages.TurnPaused); p.Reason != "approval" || p.Calls[0] != "c1" {
		t.Errorf("got %+v", p)
	}
}

// What rules find is in no trace context and in nothing that names or changes a fork, also where it is
// the only thing that they find.
func TestRedactionOfTracesAndForks(t *testing.T) {
	emails := redact.Rule{Name: "email", Pattern: regexp.MustCompile(`[\w.]+@[\w.]+\w`)}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	trace := messages.TraceContext(parent + " user=" + email)
	instructions := "Write to " + email
	set := messages.ForkChanges{Instructions: &instructions}
	for name, ev := range map[string]messages.Event{
		"trace of a frame": messages.AgentCleared{},
		"trace of a turn":  messages.TurnStarted{Turn: "t1", Trace: trace},
		"fork requested":   messages.ForkRequested{Fork: "default/support/" + email, At: 1, Begin: email, Set: set},
		"fork":             messages.AgentForked{Agent: ann.Full(), Parent: "default/support/bo", Set: set},
	} {
		t.Run(name, func(t *testing.T) {
			var s stored
			s.frame(messages.Cause{Type: "input"}, ev)
			if name == "trace of a frame" {
				s.frames[0].Trace = trace
			}
			file := redacted(t, s, export.Options{Redactor: redactor(t, emails)})
			if holds(file, email) {
				t.Errorf("the file holds %s: %s", email, file)
			}
			switch ev := only(t, file).Frames[0].Events[0].(type) {
			case messages.TurnStarted:
				if ev.Trace != parent {
					t.Errorf("got the trace context %q", ev.Trace)
				}
			case messages.ForkRequested:
				if _, err := messages.ParseAgentID(ev.Fork); err != nil || !strings.HasPrefix(*ev.Set.Instructions, "Write to [email:") {
					t.Errorf("got %+v with %q: %v", ev, *ev.Set.Instructions, err)
				}
			}
		})
	}
}

// Without blobs nothing of them is named but their size.
func TestRedactionWithoutBlobs(t *testing.T) {
	s := personal(t)
	b := messages.BlobsOf(s.frames[1].Events[5])[0]
	file := redacted(t, s, export.Options{Redactor: redactor(t, redact.Rule{Name: "email", Pattern: regexp.MustCompile(`[\w.]+@[\w.]+\w`)})})
	a := only(t, file)
	if got := messages.BlobsOf(a.Frames[1].Events[5])[0]; len(a.Blobs) > 0 || got.Size != b.Size || len(got.SHA256) != len(b.SHA256) || holds(file, string(b.SHA256)) {
		t.Errorf("got %d blobs, %+v", len(a.Blobs), got)
	}
}

// A rule that finds nothing is named, and one that finds something is counted.
func TestUnmatched(t *testing.T) {
	r := redactor(t, redact.Rule{Name: "iban", Pattern: regexp.MustCompile(`DE\d{20}`)}, redact.Rule{Name: "typo", Path: "tool.requested.arguments.cart"},
		redact.Rule{Name: "card", Path: "tool.requested.arguments.card"}, redact.Rule{Name: "tool", Path: "tool.requested.tool"})
	redacted(t, personal(t), export.Options{Blobs: true, Redactor: r})
	if got := r.Unmatched(); !reflect.DeepEqual(got, []string{"iban", "typo", "tool"}) || r.Counts()["card"] == 0 {
		t.Errorf("got %q, counts %v", got, r.Counts())
	}
}

// A short value of a path is replaced where it stands alone under the same name, and nowhere else.
func TestShortValues(t *testing.T) {
	var s stored
	s.frame(messages.Cause{}, messages.ToolRequested{Call: "c1", Arguments: `{"pin":77,"count":77,"vip":true}`}, messages.ToolCompleted{Call: "c1", Output: `{"pin":"77","text":"77 rows"}`})
	r := redactor(t, redact.Rule{Name: "pin", Path: "tool.requested.arguments.pin"})
	a := only(t, redacted(t, s, export.Options{Redactor: r}))
	args, output := a.Frames[0].Events[0].(messages.ToolRequested).Arguments, a.Frames[0].Events[1].(messages.ToolCompleted).Output
	pin := regexp.MustCompile(`\[pin:[0-9a-f]{12}\]`).FindString(args)
	if pin == "" || args != `{"pin":"`+pin+`","count":77,"vip":true}` || output != `{"pin":"`+pin+`","text":"77 rows"}` {
		t.Errorf("got %s and %s", args, output)
	}
}

// Rules that overlap replace all that either finds, and an address is redacted as a whole file is.
func TestOverlapsAndAddresses(t *testing.T) {
	var s stored
	s.frame(messages.Cause{}, messages.AgentCreated{Agent: ann.Full()}, messages.InputAccepted{Input: "u1", Content: messages.TextContent("xanny support/ann, abcdef")})
	r := redactor(t, redact.Rule{Name: "a", Pattern: regexp.MustCompile(`abcd`)}, redact.Rule{Name: "b", Pattern: regexp.MustCompile(`cdef`)}, redact.Rule{Name: "who", Pattern: regexp.MustCompile(`\bann\b`)})
	a := only(t, redacted(t, s, export.Options{Redactor: r}))
	id, err := messages.ParseAgentID(a.Head.Agent)
	if err != nil || !strings.HasPrefix(id.Key, "who-") || a.Frames[0].Events[0].(messages.AgentCreated).Agent != a.Head.Agent {
		t.Errorf("got agent %s, %+v", a.Head.Agent, a.Frames[0].Events[0])
	}
	text := a.Frames[0].Events[1].(messages.InputAccepted).Content.Text()
	if !regexp.MustCompile(`^xanny support/\[who:[0-9a-f]{12}\], \[a:[0-9a-f]{12}\]$`).MatchString(text) {
		t.Errorf("got %q", text)
	}
	whole := redactor(t, redact.Rule{Name: "all", Pattern: regexp.MustCompile(`support/ann`)})
	if _, err := whole.Begin(ann); err == nil || !strings.Contains(err.Error(), "over several parts") {
		t.Errorf("got %v", err)
	}
}

// Rules that cannot be meant are refused.
func TestRules(t *testing.T) {
	word := regexp.MustCompile(`x`)
	for want, rules := range map[string][]redact.Rule{
		"a name has":               {{Name: "a b", Pattern: word}},
		"two rules":                {{Name: "a", Pattern: word}, {Name: "a", Path: "cause.by"}},
		"one of them":              {{Name: "a"}},
		"empty text":               {{Name: "a", Pattern: regexp.MustCompile(`x*`)}},
		"an empty part":            {{Name: "a", Path: "tool..x"}},
		"is no type of event":      {{Name: "a", Path: "tool.requestd.arguments"}},
		"names no field":           {{Name: "a", Path: "tool.requested"}},
		"there are no rules":       nil,
		`"cause" names no field`:   {{Name: "a", Path: "cause"}},
		`"*" names no field`:       {{Name: "a", Path: "*"}},
		`"nothing" names no field`: {{Name: "a", Path: "nothing"}},
	} {
		if _, err := redact.New(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", rules, err, want)
		}
	}
}

// The structure of any log survives a rule that finds something in every text.
func TestRedactionOfAnything(t *testing.T) {
	for seed := range uint64(100) {
		var s stored
		s.frames = anyLog(t, newRand(seed), 4)
		before := make([][]byte, len(s.frames))
		for i, f := range s.frames {
			before[i], _ = messages.EncodeFrame(ann, f)
		}
		r := redactor(t, redact.Rule{Name: "all", Pattern: regexp.MustCompile(`\S`)}, redact.Rule{Name: "path", Path: "*.arguments"})
		as, err := r.Begin(messages.AgentID{Tenant: "default", Kind: "support", Key: "ann"})
		if err == nil {
			t.Fatalf("got %s, want a refusal: the rule finds the parts of the address", as)
		}
		w, err := export.NewWriter(&bytes.Buffer{}, export.Head{Agent: ann.Full()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := export.Copy(context.Background(), s, w, export.Options{Redactor: r}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, f := range s.frames {
			if after, err := messages.EncodeFrame(ann, f); err != nil || !bytes.Equal(after, before[i]) {
				t.Fatal(errors.Join(err, errors.New("the frame of the source was changed")))
			}
		}
	}
}
