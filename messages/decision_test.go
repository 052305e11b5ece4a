package messages

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestDecisions(t *testing.T) { // A41, A102
	const plain, remembered = `{"id":"","call":"c","turn":"t2","args_hash":"h"}`, `{"id":"","call":"c","turn":"t2","args_hash":"h","remember":true}`
	text := func(s string) string { return `deny {"id":"","call":"c","turn":"t2","args_hash":"h","text":` + s + `}` }
	for answer, want := range map[string]string{
		"yes": "approve " + plain, " Y\n": "approve " + plain, "APPROVE": "approve " + plain, "always": "approve " + remembered,
		"no": "deny " + plain, "N": "deny " + plain, "deny": "deny " + plain, "never": "deny " + remembered,
		"no: too much": text(`"too much"`), "deny:a: b": text(`"a: b"`), "no:": text(`""`),
		"never: not here":                           `deny {"id":"","call":"c","turn":"t2","args_hash":"h","text":"not here","remember":true}`,
		`{"decision":"approve"}`:                    "approve " + plain,
		`{"decision":"approve","remember":true}`:    "approve " + remembered,
		` {"decision":"deny","text":""}`:            text(`""`),
		`{"decision":"deny","text":" as it is "}`:   text(`" as it is "`),
		`{"prompt":"yes"}`:                          "approve " + plain,
		`{"prompt":" no: later ","attachments":[]}`: text(`"later"`),
		"no:" + strings.Repeat("a", MaxDenial):      text(`"` + strings.Repeat("a", MaxDenial) + `"`),
		`{"prompt":"yes","decision":"deny"}`:        "bad_input an answer in JSON",
		`{"decision":"approve","text":"but"}`:       "bad_input an answer in JSON",
		`{"decision":"Approve"}`:                    "bad_input an answer in JSON",
		`{"Decision":"approve"}`:                    "bad_input an answer in JSON",
		`{"decision":"approve","unless":"dear"}`:    "bad_input an answer in JSON",
		`{"decision":"approve"} {}`:                 "bad_input the answer is no JSON object that can be read: more follows",
		`{"decision":"deny","decision":"approve"}`:  `bad_input the answer is no JSON object that can be read: it names "decision" twice`,
		`{"decision":"deny","remember":"yes"}`:      "bad_input an answer in JSON",
		`{"decision":"deny","text":{}}`:             "bad_input an answer in JSON",
		`{"prompt":{"decision":"approve"}}`:         "bad_input an answer in JSON",
		`{"decision":"approve"`:                     "bad_input the answer is no JSON object",
		"":                                          `bad_input "" is no answer: write yes or no`,
		"yes, please":                               `bad_input "yes, please" is no answer: write yes or no`,
		"yes: but":                                  `bad_input "yes: but" is no answer: a text goes only with a denial`,
		"always: yes":                               `bad_input "always: yes" is no answer: a text`,
		"{}":                                        "bad_input an answer in JSON",
		"[]":                                        `bad_input "[]" is no answer`,
		"null":                                      `bad_input "null" is no answer`,
		"yes\xff":                                   "bad_input the answer is no text",
		"no:" + strings.Repeat("a", MaxDenial+1):    "too_large the text of the denial has 8193 bytes: the limit is 8192",
		"no:" + strings.Repeat("a", MaxBody):        "too_large the answer has",
	} {
		v, err := ParseDecision(answer)
		var got string
		var refused *Error
		switch {
		case err == nil:
			c := v.Command(Approval{Turn: "t2", Call: "c", ArgsHash: "h", N: 7})
			b, _ := json.Marshal(c)
			got = c.CommandType() + " " + string(b)
		case errors.As(err, &refused) && v == Decision{}:
			got = string(refused.Code) + " " + refused.Message
		}
		if got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%.40q: got %.200s, want %.200s", answer, got, want)
		}
	}
}

// Only yes, y, approve and always approve a call.
func FuzzDecision(f *testing.F) {
	for _, s := range []string{"yes", "no: x", "never", `{"decision":"deny","text":"x","remember":true}`, `{"decision":"approve"}`, `{"prompt":"Y"}`, `{"prompt":"no:"}`, "\xff", "{"} {
		f.Add(s)
	}
	yes := []string{"yes", "y", "approve", "always"}
	f.Fuzz(func(t *testing.T, answer string) {
		v, err := ParseDecision(answer)
		if err != nil {
			if v != (Decision{}) {
				t.Fatalf("%q: got decision %+v with the error, want none", answer, v)
			}
			return
		}
		if v.Approve && v.Text != nil {
			t.Fatalf("%q: got an approval with a text", answer)
		}
		word := strings.ToLower(strings.TrimSpace(answer))
		var body map[string]any
		if json.Unmarshal([]byte(answer), &body) == nil {
			word, _ = body["decision"].(string)
			if prompt, ok := body["prompt"].(string); ok {
				word = strings.ToLower(strings.TrimSpace(prompt))
			}
		}
		if v.Approve && !slices.Contains(yes, word) {
			t.Fatalf("%q: got an approval, want none", answer)
		}
		if v.Text != nil && len(*v.Text) > MaxDenial {
			t.Fatalf("text: got %d bytes, want at most %d", len(*v.Text), MaxDenial)
		}
	})
}
