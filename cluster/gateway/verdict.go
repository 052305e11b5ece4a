package gateway

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages"
)

// verdict is what a person answers to a query about a call.
type verdict struct {
	approve bool
	// text is what the model reads of a denial. Nil: the default.
	text     *string
	remember bool
}

// words are the verdicts as a person writes them. Of a denial, a colon and a
// text may follow.
var words = map[string]verdict{
	"yes": {approve: true}, "y": {approve: true}, "approve": {approve: true},
	"always": {approve: true, remember: true},
	"no":     {}, "n": {}, "deny": {},
	"never": {remember: true},
}

// howToAnswer tells a person of the words.
const howToAnswer = "Answer yes or no; \"no: \" and a text gives the agent that text to read; always or never decides for later calls of the tool, too."

// parseVerdict reads an answer: one of the words, or JSON such as
// {"decision":"deny","text":"too much","remember":true}, either alone or as the
// prompt of the protocol's envelope. What is not plainly one of these is no
// verdict.
func parseVerdict(data []byte) (verdict, bool) {
	if len(data) > messages.MaxBody || !utf8.Valid(data) {
		return verdict{}, false
	}
	text := strings.TrimSpace(string(data))
	if !strings.HasPrefix(text, "{") {
		return parseWord(text)
	}
	var body struct {
		Prompt   *string `json:"prompt"`
		Decision string  `json:"decision"`
		Text     *string `json:"text"`
		Remember bool    `json:"remember"`
	}
	if json.Unmarshal([]byte(text), &body) != nil {
		return verdict{}, false
	}
	switch {
	case body.Prompt != nil && body.Decision == "":
		return parseWord(strings.TrimSpace(*body.Prompt))
	case body.Prompt != nil:
		return verdict{}, false
	case body.Decision == "approve" && body.Text == nil:
		return verdict{approve: true, remember: body.Remember}, true
	case body.Decision == "deny":
		return verdict{text: body.Text, remember: body.Remember}, true
	}
	return verdict{}, false
}

func parseWord(s string) (verdict, bool) {
	word, text, more := strings.Cut(s, ":")
	v, ok := words[strings.ToLower(strings.TrimSpace(word))]
	if more {
		text = strings.TrimSpace(text)
		v.text, ok = &text, ok && !v.approve
	}
	return v, ok
}

// command is the verdict about a call that waits for approval. Two verdicts
// about it have the same id, so that only the first has an effect.
func (v verdict) command(p messages.Approval) messages.Command {
	name := strings.Join([]string{p.Agent.Full(), string(p.Turn), string(p.Call), p.ArgsHash}, "\x00")
	id := "query:" + string(messages.DigestOf([]byte(name)))
	if v.approve {
		return messages.Approve{ID: id, Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Remember: v.remember}
	}
	return messages.Deny{ID: id, Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Text: v.text, Remember: v.remember}
}
