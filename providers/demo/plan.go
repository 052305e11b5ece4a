package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/providers"
)

const (
	maxCalls = 16       // of one answer
	maxText  = 32 << 10 // bytes of a message that are read
)

// intent is a call that a message asks for.
type intent struct {
	tool, arguments string
	phrase          string // the expression as the message has it, for arithmetic
}

// plan is what messages ask for: calls, and what others lack.
type plan struct {
	calls   []intent
	lacking []string
}

var (
	// sentence ends at a mark before white space, but not in double quotes.
	sentence = regexp.MustCompile(`(?:"[^"\n]*"|[^.!?;\n"]|[.!?;]+[^\s.!?;]|")+`)
	noCall   = regexp.MustCompile(`(?i)\b(?:don't|don’t|do not|never|without)\b|\btools\b|^\s*what (?:does|can|is)\b.*\bdo\s*$`)
	askTime  = regexp.MustCompile(`(?i)\b(?:time is it|what day|the (?:current )?(?:time|date|day))\b`)
)

// understand adds what a message asks for: in each sentence one call of the tool that it
// names first, or else the value of each expression, or the time.
func (p *plan) understand(text string, tools []providers.ToolSpec) {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], " ")
	sentences := sentence.FindAllString(text, -1)
	if _, _, ok := objectIn(text); ok {
		sentences = []string{text} // marks in an object end no sentence
	}
	for _, s := range sentences {
		if noCall.MatchString(s) {
			continue
		}
		computes := slices.IndexFunc(tools, calculates)
		expressions := expressionsIn(s)
		k, start, end := named(s, tools)
		switch {
		case k >= 0 && (k != computes || len(expressions) == 0):
			p.call(tools[k], s[:start], s[end:])
		case computes >= 0 && len(expressions) > 0:
			for _, e := range expressions {
				arguments, _ := json.Marshal(map[string]string{expressionArgument: e.value}) // strings always have a form
				p.add(intent{tools[computes].Name, string(arguments), e.phrase})
			}
		case askTime.MatchString(s):
			if clock := slices.IndexFunc(tools, func(t providers.ToolSpec) bool { return t.Name == "clock" }); clock >= 0 {
				p.call(tools[clock], "", s)
			}
		}
	}
	p.calls = p.calls[:min(len(p.calls), maxCalls)]
}

// named returns the tool that a sentence names first, and where. -1: it names none.
func named(s string, tools []providers.ToolSpec) (tool, start, end int) {
	tool = -1
	for i, t := range tools {
		at := nameOf(t.Name, ``).FindStringIndex(s)
		if at != nil && at[1] > at[0] && (tool < 0 || at[0] < start || at[0] == start && at[1] > end) {
			tool, start, end = i, at[0], at[1]
		}
	}
	return tool, start, end
}

// nameOf matches a name as people write it ("send email" for send_email), and what follows.
func nameOf(name, then string) *regexp.Regexp {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' })
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	return regexp.MustCompile(`(?i)\b` + strings.Join(words, `[ _-]?`) + `\b` + then)
}

// call adds a call with arguments from the text before and after the tool's name, or what
// they lack.
func (p *plan) call(t providers.ToolSpec, before, after string) {
	arguments, missing := fill(t, before, after)
	if len(missing) == 0 {
		p.add(intent{tool: t.Name, arguments: arguments})
		return
	}
	var names []string
	for _, m := range missing {
		names = append(names, m.name+"=…")
	}
	p.lacking = append(p.lacking, fmt.Sprintf("To call %s I need more: write %s, or all arguments as a JSON object.", t.Name, strings.Join(names, ", ")))
}

// add appends a call that is not planned yet.
func (p *plan) add(i intent) {
	if !slices.ContainsFunc(p.calls, func(c intent) bool { return c.tool == i.tool && c.arguments == i.arguments }) {
		p.calls = append(p.calls, i)
	}
}

// todo is what the messages since the last call ask for.
func (v view) todo(tools []providers.ToolSpec) []intent {
	var p plan
	for _, text := range v.open[v.fresh:] {
		p.understand(text, tools)
	}
	return p.calls
}

// chosen returns the calls to make under a request's tool choice.
func (v view) chosen(choice string, tools []providers.ToolSpec) ([]intent, error) {
	switch choice {
	case "":
		return v.todo(tools), nil
	case "none":
		return nil, nil
	case "required":
	default:
		tools = slices.DeleteFunc(slices.Clone(tools), func(t providers.ToolSpec) bool { return t.Name != choice })
	}
	if len(tools) == 0 {
		return nil, &providers.Error{Kind: providers.BadRequest, Message: "tool_choice is " + strconv.Quote(choice) + ", and the request has no such tool"}
	}
	if calls := v.todo(tools); len(calls) > 0 {
		return calls, nil
	}
	return []intent{v.forced(tools)}, nil
}

// forced is a call that no message asks for: of the first tool that needs no argument, else
// of the first that the newest message has all arguments for, else of the first with made-up
// ones.
func (v view) forced(tools []providers.ToolSpec) intent {
	text := ""
	if len(v.open) > 0 {
		text = v.open[len(v.open)-1]
		text = strings.ToValidUTF8(text[:min(len(text), maxText)], " ")
	}
	for _, from := range []string{"", text} {
		for _, t := range tools {
			if _, missing := fill(t, "", from); len(missing) == 0 {
				arguments, _ := fill(t, "", text)
				return intent{tool: t.Name, arguments: arguments}
			}
		}
	}
	arguments, missing := fill(tools[0], "", text)
	all := map[string]any{}
	_ = json.Unmarshal([]byte(arguments), &all) // fill writes objects
	for _, p := range missing {
		all[p.name] = p.madeUp(text)
	}
	made, _ := json.Marshal(all) // what came from JSON goes back to it
	return intent{tool: tools[0].Name, arguments: string(made)}
}
