package messages

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// Decision is a person's decision about a call that waits for approval.
type Decision struct {
	// Approve reports whether the call may run. If not, it is denied.
	Approve bool
	// Text is what the model reads of a denial. Nil: DeniedText.
	Text *string
	// Remember reports whether it applies to later calls of the tool, too.
	Remember bool
}

// AnswerHelp describes the answers that ParseDecision reads, for a person.
const AnswerHelp = `yes or no; "no: " and a text gives the agent that text to read; always or never decides for later calls of the tool, too`

// decisionWords are the decisions as a person writes them. After a denial, a colon and a
// text may follow.
var decisionWords = map[string]Decision{
	"yes": {Approve: true}, "y": {Approve: true}, "approve": {Approve: true},
	"always": {Approve: true, Remember: true},
	"no":     {}, "n": {}, "deny": {},
	"never": {Remember: true},
}

// ParseDecision reads a person's answer: a word, see AnswerHelp, or JSON such as
// {"decision":"deny","text":"too much","remember":true}, either alone or as the prompt of
// the agent protocol's envelope. It refuses any other text, and the text of a denial over
// MaxDenial.
func ParseDecision(answer string) (Decision, error) {
	answer = strings.TrimSpace(answer)
	var v Decision
	var err error
	switch {
	case len(answer) > MaxBody:
		err = Refuse(TooLarge, "the answer has %d bytes: the limit is %d", len(answer), MaxBody)
	case !utf8.ValidString(answer):
		err = Refuse(BadInput, "the answer is no text: it holds bytes that are no UTF-8")
	case strings.HasPrefix(answer, "{"):
		v, err = parseDecisionJSON(answer)
	default:
		v, err = parseDecisionWord(answer)
	}
	if err == nil {
		err = Bounded(Deny{Text: v.Text})
	}
	if err != nil {
		return Decision{}, err
	}
	return v, nil
}

func parseDecisionWord(answer string) (Decision, error) {
	word, text, more := strings.Cut(answer, ":")
	v, ok := decisionWords[strings.ToLower(strings.TrimSpace(word))]
	switch {
	case !ok:
		return v, Refuse(BadInput, "%q is no answer: write %s", answer, AnswerHelp)
	case more && v.Approve:
		return v, Refuse(BadInput, "%q is no answer: a text goes only with a denial", answer)
	case more:
		text = strings.TrimSpace(text)
		v.Text = &text
	}
	return v, nil
}

func parseDecisionJSON(answer string) (Decision, error) {
	fields, err := codec.Object([]byte(answer))
	if err != nil {
		return Decision{}, Refuse(BadInput, "the answer is no JSON object that can be read: %v", err)
	}
	if prompt, ok := fields["prompt"]; ok && fields["decision"] == nil { // beside it the protocol may have more
		var word string
		if json.Unmarshal(prompt, &word) != nil {
			return Decision{}, errNoDecision
		}
		return parseDecisionWord(strings.TrimSpace(word))
	}
	var body struct {
		Decision string  `json:"decision"`
		Text     *string `json:"text"`
		Remember bool    `json:"remember"`
	}
	for name, value := range map[string]any{"decision": &body.Decision, "text": &body.Text, "remember": &body.Remember} {
		if fields[name] != nil && json.Unmarshal(fields[name], value) != nil {
			return Decision{}, errNoDecision
		}
		delete(fields, name)
	}
	switch {
	case len(fields) > 0:
	case body.Decision == "approve" && body.Text == nil:
		return Decision{Approve: true, Remember: body.Remember}, nil
	case body.Decision == "deny":
		return Decision{Text: body.Text, Remember: body.Remember}, nil
	}
	return Decision{}, errNoDecision
}

var errNoDecision = Refuse(BadInput, `an answer in JSON is {"decision":"approve"} or {"decision":"deny","text":"…"}, either with "remember":true if it holds for later calls of the tool, too`)

// Command returns the decision as a command about the call, bound to its turn and arguments.
// The command has no id yet.
func (v Decision) Command(p Approval) Command {
	if v.Approve {
		return Approve{Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Remember: v.Remember}
	}
	return Deny{Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Text: v.Text, Remember: v.Remember}
}
