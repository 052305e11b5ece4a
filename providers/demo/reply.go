package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages"
)

const (
	maxQuote  = 300  // characters of a message that is quoted
	maxResult = 4000 // characters of a result that is quoted
)

// todo is what the newest messages ask for and no call has been made for.
func (v view) todo(tools []kit) []intent {
	var p plan
	for _, text := range v.open[v.fresh:] {
		for _, c := range understand(text, tools).calls {
			p.add(c)
		}
	}
	p.calls = slices.DeleteFunc(p.calls, func(i intent) bool {
		return slices.ContainsFunc(v.calls, func(c call) bool { return c.name == i.tool && c.arguments == i.arguments })
	})
	return p.calls[:min(len(p.calls), maxCalls)]
}

// answer is the reply when there is nothing left to call.
func (v view) answer(tools []kit) string {
	var parts []string
	var all plan
	for i, text := range v.open {
		p := understand(text, tools)
		all.calls = append(all.calls, p.calls...)
		all.needs = append(all.needs, p.needs...)
		if len(p.calls)+len(p.needs) == 0 && i == len(v.open)-1 {
			all.needs = append(all.needs, v.talk(text, tools))
		}
	}
	for _, c := range v.calls {
		parts = append(parts, c.told(all.calls, tools))
	}
	parts = append(parts, v.unmade(all.calls)...)
	parts = append(parts, all.needs...)
	if len(parts) == 0 {
		parts = append(parts, v.silent(tools))
	}
	separator := " "
	for _, p := range parts {
		if strings.Contains(p, "\n") {
			separator = "\n\n"
		}
	}
	return strings.Join(parts, separator)
}

// unmade tells of the calls that would be made if tools could be called.
func (v view) unmade(plans []intent) []string {
	var parts []string
	for _, i := range plans {
		made := slices.ContainsFunc(v.calls, func(c call) bool { return c.name == i.tool && c.arguments == i.arguments })
		if v.barred && !made {
			parts = append(parts, fmt.Sprintf("I would call %s with %s, but this request lets me call no tool.", i.tool, i.arguments))
		}
	}
	return parts
}

var aNumber = regexp.MustCompile(`^-?[\d.,]+(?:e[-+]?\d+)?$`)

// told is a call's result in a sentence.
func (c call) told(plans []intent, tools []kit) string {
	output := strings.TrimSpace(c.output)
	for _, k := range tools {
		argument, computes := k.calculates()
		arithmetic := computes && k.name == c.name
		phrase := ""
		for _, i := range plans {
			if i.tool == c.name && i.arguments == c.arguments && i.phrase != "" {
				phrase, arithmetic = spoken(i.phrase), true
			}
		}
		if !arithmetic {
			continue
		}
		if phrase == "" {
			phrase = textArgument(c.arguments, argument)
		}
		switch {
		case phrase == "":
		case aNumber.MatchString(output):
			return fmt.Sprintf("%s is %s.", capital(phrase), output)
		default:
			return ended(fmt.Sprintf("I could not work out %s: %s", phrase, short(output, maxResult)))
		}
	}
	switch output = short(output, maxResult); {
	case output == "":
		return fmt.Sprintf("%s answered with nothing.", c.name)
	case failed.MatchString(output):
		return ended(fmt.Sprintf("%s failed: %s", c.name, output))
	case strings.Contains(output, "\n"):
		return fmt.Sprintf("%s says:\n%s", c.name, output)
	}
	return ended(fmt.Sprintf("%s says: %s", c.name, output))
}

// failed matches the results that the runtime and its tools write of failures.
var failed = regexp.MustCompile(`(?i)^(?:error\b|failed\b|panic\b|exit code \d|the arguments do not fit|the program (?:was stopped|cannot be started|ended by)|timed out\b|denied\b|no tool (?:is )?named|not run:|stopped while|unknown tool)`)

// spoken is an expression's phrase so that "is" can follow: an order such as
// "add 3 and 4" becomes a gerund.
func spoken(phrase string) string {
	first, rest, _ := strings.Cut(phrase, " ")
	switch f := strings.ToLower(first); f {
	case "add", "subtract":
		return f + "ing " + rest
	case "divide", "take":
		return f[:len(f)-1] + "ing " + rest
	case "multiply":
		return f + "ing " + rest
	case "sum", "product", "difference", "quotient", "remainder", "square", "cube", "root":
		return "the " + phrase
	}
	return phrase
}

func textArgument(arguments, name string) string {
	var all map[string]any
	if json.Unmarshal([]byte(arguments), &all) != nil {
		return ""
	}
	text, _ := all[name].(string)
	return text
}

var (
	askBefore = regexp.MustCompile(`(?i)\b(?:what|which|everything)\b[^.?!]*\b(?:i|my|me)\b[^.?!]*\b(?:say|said|ask|asked|tell|told|write|wrote|written|mention|mentioned|messages?|questions?)\b|\brepeat (?:what|everything|my)\b|\bmy (?:last|previous|first|earlier) (?:message|question|words)\b`)
	askNotes  = regexp.MustCompile(`(?i)\binterrupt|\babort|\bcut off\b|\bdid (?:you|i|someone|anyone) stop|\bwere you stopped\b|\bwhat happened\b|\bdeveloper notes?\b|\bany notes?\b`)
	question  = regexp.MustCompile(`(?i)\?\s*$|^\s*(?:what|who|where|when|which|whose|how|do you (?:know|remember)|can you remember|tell me)\b`)
	mine      = regexp.MustCompile(`(?i)\b(?:my|me|i|i'm|we|our)\b`)
)

// talk answers a message that asks for no call.
func (v view) talk(text string, tools []kit) string {
	switch {
	case askNotes.MatchString(text):
		if len(v.notes) == 0 {
			return "I see no note from the runtime in this conversation: nothing was interrupted that I know of."
		}
		return "The runtime told me: " + quotes(v.notes)
	case askBefore.MatchString(text):
		if len(v.said) == 0 {
			return "This is the first thing you say to me."
		}
		return "Before this you said: " + quotes(v.said)
	case question.MatchString(text) && mine.MatchString(text):
		if found := v.recall(text); len(found) > 0 {
			return "You told me: " + quotes(found)
		}
	case aboutIt.MatchString(text):
		return who + " " + able(tools)
	}
	if strings.TrimSpace(text) == "" {
		return who + " Your message is empty. " + able(tools)
	}
	return fmt.Sprintf("%s You said: “%s”. %s", who, short(strings.TrimSpace(text), maxQuote), able(tools))
}

// who is what the model says of itself.
const who = "I am the offline demo model: I follow rules and know nothing of the world. Set OPENAI_API_KEY for a real model."

// silent answers when no user has said anything new.
func (v view) silent(tools []kit) string {
	if v.last.Type == messages.ItemMessage && v.last.Role == messages.RoleDeveloper {
		return "The runtime told me: " + quotes(v.notes[len(v.notes)-1:])
	}
	return who + " You have not said anything new. " + able(tools)
}

// able lists what the model can do with the tools it is given.
func able(tools []kit) string {
	if len(tools) == 0 {
		return "I can repeat what was said here; I am given no tools."
	}
	var all []string
	for _, k := range tools {
		if k.description == "" {
			all = append(all, k.name)
			continue
		}
		all = append(all, fmt.Sprintf("%s (%s)", k.name, strings.TrimRight(short(k.description, 80), ".")))
	}
	return "I can call these tools: " + strings.Join(all, ", ") + "."
}

// recall is what users said earlier, other than questions, that shares a
// telling word with a question: the best ones, in order.
func (v view) recall(text string) []string {
	asked, best := stems(text), 1
	scores := make([]int, len(v.said))
	for i, s := range v.said {
		if question.MatchString(s) {
			continue
		}
		for w := range stems(s) {
			if asked[w] {
				scores[i]++
			}
		}
		best = max(best, scores[i])
	}
	var found []string
	for i, s := range v.said {
		if scores[i] == best {
			found = append(found, s)
		}
	}
	return found
}

// quotes are texts in quotation marks, the newest twenty.
func quotes(texts []string) string {
	dropped := max(0, len(texts)-20)
	var all []string
	if dropped > 0 {
		all = append(all, fmt.Sprintf("(%d earlier ones)", dropped))
	}
	for _, t := range texts[dropped:] {
		all = append(all, "“"+short(strings.TrimSpace(t), maxQuote)+"”")
	}
	return strings.Join(all, ", then ") + "."
}

// short is a text of at most n characters, and how many are left out.
func short(s string, n int) string {
	count := utf8.RuneCountInString(s)
	if count <= n {
		return s
	}
	return fmt.Sprintf("%s… (%d more characters)", string([]rune(s)[:n]), count-n)
}

// capital is s with its first letter in upper case.
func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

// ended is s with a full stop, unless something ends it already.
func ended(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
