package demo

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/providers"
)

const (
	maxQuote  = 300  // characters of a message that is quoted
	maxResult = 4000 // characters of a result that is quoted
)

// who is what the model says of itself.
const who = "I am the offline demo model: I follow rules and know nothing of the world. Set OPENAI_API_KEY for a real model."

// answer is the reply when there is nothing left to call: what came of the calls, or what
// the newest message said.
func (v view) answer(tools []providers.ToolSpec) string {
	var p plan
	for _, text := range v.open {
		p.understand(text, tools)
	}
	var parts []string
	for _, c := range v.calls {
		parts = append(parts, c.told(p.calls))
	}
	parts = append(parts, p.lacking...)
	if len(parts) == 0 {
		said := "You have not said anything new."
		if len(v.open) > 0 {
			said = fmt.Sprintf("You said: “%s”.", short(strings.TrimSpace(v.open[len(v.open)-1]), maxQuote))
		}
		parts = []string{who, said, able(tools)}
	}
	separator := " "
	if strings.Contains(strings.Join(parts, ""), "\n") {
		separator = "\n\n"
	}
	return strings.Join(parts, separator)
}

var isNumber = regexp.MustCompile(`^-?[\d.,]+(?:e[-+]?\d+)?$`)

// told is a call's result in a sentence.
func (c call) told(plans []intent) string {
	output := strings.TrimSpace(c.output)
	for _, i := range plans {
		if i.phrase != "" && i.tool == c.name && i.arguments == c.arguments && isNumber.MatchString(output) {
			return fmt.Sprintf("%s is %s.", i.phrase, output)
		}
	}
	switch output = short(output, maxResult); {
	case output == "":
		return c.name + " says nothing."
	case strings.Contains(output, "\n"):
		return fmt.Sprintf("%s says:\n%s", c.name, output)
	case strings.ContainsAny(output[len(output)-1:], ".!?"):
		return fmt.Sprintf("%s says: %s", c.name, output)
	}
	return fmt.Sprintf("%s says: %s.", c.name, output)
}

// able lists what the model can do with the tools it is given.
func able(tools []providers.ToolSpec) string {
	if len(tools) == 0 {
		return "I am given no tools."
	}
	var all []string
	for _, t := range tools {
		all = append(all, fmt.Sprintf("%s (%s)", t.Name, strings.TrimRight(short(t.Description, 80), ".")))
	}
	return "I can call these tools: " + strings.Join(all, ", ") + "."
}

// short is a text of at most n characters, and how many are left out.
func short(s string, n int) string {
	count := utf8.RuneCountInString(s)
	if count <= n {
		return s
	}
	return fmt.Sprintf("%s… (%d more characters)", string([]rune(s)[:n]), count-n)
}
