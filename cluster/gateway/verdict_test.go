package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

func TestVerdicts(t *testing.T) { // A41, A102
	const yes, always, no, never = `{"call":"c","args_hash":"h"}`, `{"call":"c","args_hash":"h","remember":true}`, `{"call":"c","args_hash":"h"}`, `{"call":"c","args_hash":"h","remember":true}`
	text := func(s string) string { return `{"call":"c","args_hash":"h","text":` + s + `}` }
	for answer, want := range map[string]string{
		"yes": "approve " + yes, " Y\n": "approve " + yes, "APPROVE": "approve " + yes, "always": "approve " + always,
		"no": "deny " + no, "N": "deny " + no, "deny": "deny " + no, "never": "deny " + never,
		"no: too much": "deny " + text(`"too much"`), "deny:a: b": "deny " + text(`"a: b"`), "no:": "deny " + text(`""`),
		"never: not here":                           `deny {"call":"c","args_hash":"h","text":"not here","remember":true}`,
		`{"decision":"approve"}`:                    "approve " + yes,
		`{"decision":"approve","remember":true}`:    "approve " + always,
		` {"decision":"deny","text":""}`:            "deny " + text(`""`),
		`{"decision":"deny","text":" as it is "}`:   "deny " + text(`" as it is "`),
		`{"prompt":"yes"}`:                          "approve " + yes,
		`{"prompt":" no: later ","attachments":[]}`: "deny " + text(`"later"`),
		`{"prompt":"yes","decision":"deny"}`:        "",
		`{"decision":"approve","text":"but"}`:       "",
		`{"decision":"Approve"}`:                    "",
		`{"decision":"approve"} {}`:                 "",
		`{"decision":"deny","remember":"yes"}`:      "",
		`{"prompt":{"decision":"approve"}}`:         "",
		"":                                          "",
		"yes, please":                               "",
		"yes: but":                                  "",
		"always: yes":                               "",
		"maybe":                                     "",
		"{}":                                        "",
		"[]":                                        "",
		"null":                                      "",
		"yes\xff":                                   "",
		"no:" + strings.Repeat("a", messages.MaxBody): "",
	} {
		v, ok := parseVerdict([]byte(answer))
		got := ""
		if ok {
			c := messages.WithID(v.command(messages.Approval{Call: "c", ArgsHash: "h"}), "")
			b, _ := json.Marshal(c)
			got = c.CommandType() + " " + strings.Replace(string(b), `"id":"",`, "", 1)
		}
		if got != want {
			t.Errorf("%.40q: %s, want %s", answer, got, want)
		}
	}
}

// The same arguments of the same call are decided once, whoever decides; asked
// about with others it is another question.
func TestVerdictsAboutOneCallShareAnID(t *testing.T) { // A44
	p := messages.Approval{Agent: till, Turn: "t2", Call: "c", ArgsHash: "h", N: 3}
	one := verdict{approve: true}.command(p).CommandID()
	q := p
	q.N, q.Reason = 9, "other"
	if got := (verdict{}).command(q).CommandID(); got != one {
		t.Errorf("two verdicts have the ids %s and %s", one, got)
	}
	for _, other := range []messages.Approval{
		{Agent: messages.AgentID{Tenant: "x", Kind: "support", Key: "till"}, Turn: "t2", Call: "c", ArgsHash: "h"},
		{Agent: till, Turn: "t3", Call: "c", ArgsHash: "h"}, {Agent: till, Turn: "t2", Call: "d", ArgsHash: "h"}, {Agent: till, Turn: "t2", Call: "c", ArgsHash: "i"},
	} {
		if (verdict{}).command(other).CommandID() == one {
			t.Errorf("%+v shares the id", other)
		}
	}
	if len(one) > messages.MaxID {
		t.Errorf("the id has %d bytes", len(one))
	}
}

func FuzzVerdict(f *testing.F) {
	for _, s := range []string{"yes", "no: x", "never", `{"decision":"deny","text":"x","remember":true}`, `{"prompt":"no:"}`, "\xff", "{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, ok := parseVerdict(data)
		if !ok {
			return
		}
		if v.approve && v.text != nil {
			t.Fatalf("%q approves with a text", data)
		}
		said := strings.ToLower(string(data))
		if v.approve && !strings.Contains(said, "y") && !strings.Contains(said, `\u00`) && !strings.Contains(said, "approve") {
			t.Fatalf("%q approves", data) // every word that does has a y, but approve
		}
		if v.command(messages.Approval{Agent: till, Call: "c"}).CommandID() == "" {
			t.Fatal("a decision without an id")
		}
	})
}
