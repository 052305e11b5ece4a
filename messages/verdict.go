package messages

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Verdict is what a person says of a call that waits for approval.
type Verdict struct {
	// Approve lets the call run; false denies it.
	Approve bool
	// Text is what the model reads of a denial. Nil: DeniedText.
	Text *string
	// Remember says that it holds for later calls of the tool, too.
	Remember bool
}

// HowToAnswer tells a person of the words that ParseVerdict reads.
const HowToAnswer = `yes or no; "no: " and a text gives the agent that text to read; always or never decides for later calls of the tool, too`

// verdictWords are the verdicts as a person writes them. Of a denial, a colon and a
// text may follow.
var verdictWords = map[string]Verdict{
	"yes": {Approve: true}, "y": {Approve: true}, "approve": {Approve: true},
	"always": {Approve: true, Remember: true},
	"no":     {}, "n": {}, "deny": {},
	"never": {Remember: true},
}

// ParseVerdict reads a person's answer: a word, as HowToAnswer tells, or JSON
// such as {"decision":"deny","text":"too much","remember":true}, either alone or
// as the prompt of the agent protocol's envelope. What is not plainly one of
// these is refused, and so is the text of a denial beyond MaxDenial.
func ParseVerdict(answer string) (Verdict, error) {
	answer = strings.TrimSpace(answer)
	var v Verdict
	var err error
	switch {
	case len(answer) > MaxBody:
		err = Refuse(TooLarge, "the answer has %d bytes: the limit is %d", len(answer), MaxBody)
	case !utf8.ValidString(answer):
		err = Refuse(BadInput, "the answer is no text: it holds bytes that are no UTF-8")
	case strings.HasPrefix(answer, "{"):
		v, err = parseVerdictJSON(answer)
	default:
		v, err = parseVerdictWord(answer)
	}
	if err == nil {
		err = Bounded(Deny{Text: v.Text})
	}
	if err != nil {
		return Verdict{}, err
	}
	return v, nil
}

func parseVerdictWord(answer string) (Verdict, error) {
	word, text, more := strings.Cut(answer, ":")
	v, ok := verdictWords[strings.ToLower(strings.TrimSpace(word))]
	switch {
	case !ok:
		return v, Refuse(BadInput, "%q is no answer: write %s", answer, HowToAnswer)
	case more && v.Approve:
		return v, Refuse(BadInput, "%q is no answer: a text goes only with a denial", answer)
	case more:
		text = strings.TrimSpace(text)
		v.Text = &text
	}
	return v, nil
}

func parseVerdictJSON(answer string) (Verdict, error) {
	fields, err := strictObject([]byte(answer))
	if err != nil {
		return Verdict{}, Refuse(BadInput, "the answer is no JSON object that can be read: %v", err)
	}
	if prompt, ok := fields["prompt"]; ok && fields["decision"] == nil { // beside it the protocol may have more
		var word string
		if json.Unmarshal(prompt, &word) != nil {
			return Verdict{}, errNoDecision
		}
		return parseVerdictWord(strings.TrimSpace(word))
	}
	var body struct {
		Decision string  `json:"decision"`
		Text     *string `json:"text"`
		Remember bool    `json:"remember"`
	}
	for name, value := range map[string]any{"decision": &body.Decision, "text": &body.Text, "remember": &body.Remember} {
		if fields[name] != nil && json.Unmarshal(fields[name], value) != nil {
			return Verdict{}, errNoDecision
		}
		delete(fields, name)
	}
	switch {
	case len(fields) > 0:
	case body.Decision == "approve" && body.Text == nil:
		return Verdict{Approve: true, Remember: body.Remember}, nil
	case body.Decision == "deny":
		return Verdict{Text: body.Text, Remember: body.Remember}, nil
	}
	return Verdict{}, errNoDecision
}

var errNoDecision = Refuse(BadInput, `an answer in JSON is {"decision":"approve"} or {"decision":"deny","text":"…"}, either with "remember":true if it holds for later calls of the tool, too`)

// Command is the decision that v means about a call that waits, bound to the
// turn, the call and the arguments that p shows. It has no id yet.
func (v Verdict) Command(p Approval) Command {
	if v.Approve {
		return Approve{Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Remember: v.Remember}
	}
	return Deny{Turn: p.Turn, Call: p.Call, ArgsHash: p.ArgsHash, Text: v.Text, Remember: v.Remember}
}
