package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// plan is what a message asks for: calls, and what stands in the way of others.
type plan struct {
	calls []intent
	needs []string
}

var (
	negated  = regexp.MustCompile(`(?i)\b(?:don't|don’t|do not|without|never|not|no)(?:\s+(?:use|using|call|calling|run|running|the|a|any)){0,3}\s*$`)
	boundary = regexp.MustCompile(`(?i)[.!?;](?:\s|$)|\n|,?\s+(?:and\s+)?then\s|,?\s+and\s+(?:what|how|tell me|calculate|compute|add|multiply|subtract|divide)\b|,?\s+and\s+(?:\d+\s*[-+*/^x×÷])`)
	aboutIt  = regexp.MustCompile(`(?i)\b(?:which|what|list|your|any|available|have)\b[^.?!]*\btools?\b|\bwhat (?:can|could) you do\b|^\s*help\b|\bwhat (?:does|do|is|are)\b[^.?!]*\b(?:do|for)\s*\?|\bwho are you\b`)
	askTime  = regexp.MustCompile(`(?i)\bwhat(?:'s|’s|s)?(?:\s+is)?\s+(?:the\s+)?(?:current\s+|local\s+)?(?:time|date|day)\b|\b(?:current|local)\s+(?:time|date)\b|\btime is it\b|\btoday(?:'s|’s)?\s+date\b|\btell me the (?:time|date)\b|\bwhat day is\b`)
)

// span is a part of a message.
type span struct{ start, end int }

func (s span) covers(start, end int) bool { return s.start <= start && end <= s.end }

// mentioned is a tool that a message names.
type mentioned struct {
	kit  kit
	at   span // the name
	part span // what belongs to it
}

// understand makes a plan of a message.
func understand(text string, tools []kit) plan {
	var p plan
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], " ")
	named := mentions(text, tools)
	if aboutIt.MatchString(text) && !strings.Contains(text, "{") {
		named = nil
	}
	sums := 0
	for _, e := range expressions(text) {
		inside := slices.ContainsFunc(named, func(m mentioned) bool { return m.part.covers(e.start, e.end) && !m.kit.isCalculator() })
		if !inside {
			sums++
			p.compute(e, text[e.start:e.end], tools)
		}
	}
	for _, m := range named {
		if m.kit.isCalculator() && sums > 0 {
			continue // it was named for the arithmetic above
		}
		p.call(m.kit, text[m.part.start:m.part.end], []int{m.at.start - m.part.start, m.at.end - m.part.start})
	}
	p.clock(text, named, tools)
	if len(p.calls)+len(p.needs)+len(named) == 0 && !aboutIt.MatchString(text) {
		if k, ok := described(text, tools); ok {
			p.call(k, text, nil)
		}
	}
	p.calls = p.calls[:min(len(p.calls), maxCalls)]
	return p
}

func (k kit) isCalculator() bool {
	_, ok := k.calculates()
	return ok
}

// compute asks a tool for the value of an expression.
func (p *plan) compute(e found, phrase string, tools []kit) {
	for _, k := range tools {
		if argument, ok := k.calculates(); ok {
			arguments, err := json.Marshal(map[string]string{argument: e.expression})
			if err == nil { // texts always have a form
				p.add(intent{k.name, string(arguments), phrase})
			}
			return
		}
	}
	if m := simple.FindStringSubmatch(e.expression); m != nil {
		for _, k := range tools {
			if k.operates(m[2]) {
				arguments, missing := fill(k, m[1]+" "+m[3], nil)
				if missing == nil {
					p.add(intent{k.name, arguments, phrase})
					return
				}
			}
		}
	}
	p.needs = append(p.needs, fmt.Sprintf("I read “%s” as %s, but I have no calculator: no tool that I am given takes an expression.", phrase, e.expression))
}

// simple is an expression of two numbers.
var simple = regexp.MustCompile(`^\(?(-?[\d.]+) ([-+*/%^]) (-?[\d.]+)\)?$`)

// call asks for a tool with arguments from a text, or says what they lack.
func (p *plan) call(k kit, text string, named []int) {
	arguments, missing := fill(k, text, named)
	if missing == nil {
		p.add(intent{tool: k.name, arguments: arguments})
		return
	}
	var lacks, example []string
	for _, m := range missing {
		kind := m.kind
		if len(m.enum) > 0 {
			kind = "one of " + strings.Trim(fmt.Sprint(m.enum), "[]")
		}
		lacks = append(lacks, strings.TrimSpace(m.name+" ("+kind+")"))
		example = append(example, m.name+"=…")
	}
	p.needs = append(p.needs, fmt.Sprintf("To call %s I still need %s: name the tool and write %s, or give all arguments as a JSON object.",
		k.name, strings.Join(lacks, " and "), strings.Join(example, ", ")))
}

// add appends a call that is not planned yet.
func (p *plan) add(i intent) {
	if !slices.ContainsFunc(p.calls, func(c intent) bool { return c.tool == i.tool && c.arguments == i.arguments }) {
		p.calls = append(p.calls, i)
	}
}

// clock answers a question for the time by a tool that tells it.
func (p *plan) clock(text string, named []mentioned, tools []kit) {
	at := askTime.FindStringIndex(text)
	if at == nil || slices.ContainsFunc(named, func(m mentioned) bool { return m.kit.tells() || m.part.covers(at[0], at[1]) }) {
		return
	}
	for _, k := range tools {
		if k.tells() {
			p.call(k, text[at[0]:], nil)
			return
		}
	}
	p.needs = append(p.needs, "You ask for the time, but I have no clock: no tool that I am given tells it.")
}

// mentions are the tools that a message names, in its order, each with the
// part of the message that belongs to it: its clause, up to the next name.
func mentions(text string, tools []kit) []mentioned {
	hidden := hide(text)
	var all []mentioned
	for _, k := range tools {
		for _, m := range k.mention.FindAllStringIndex(hidden, -1) {
			if !negated.MatchString(hidden[:m[0]]) {
				all = append(all, mentioned{kit: k, at: span{m[0], m[1]}})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b mentioned) int {
		if a.at.start != b.at.start {
			return a.at.start - b.at.start
		}
		return b.at.end - a.at.end // the longer name
	})
	all = apart(all)
	divide(all, boundary.FindAllStringIndex(hidden, -1), len(text))
	return all
}

// divide gives each name its part of a text that is cut at cuts.
func divide(all []mentioned, cuts [][]int, length int) {
	for i := range all {
		m := &all[i]
		m.part = span{0, length}
		for _, c := range cuts {
			if c[1] <= m.at.start {
				m.part.start = c[1]
			} else if c[0] >= m.at.end {
				m.part.end = c[0]
				break
			}
		}
		if i > 0 {
			m.part.start = max(m.part.start, all[i-1].part.end)
		}
		if i+1 < len(all) {
			m.part.end = min(m.part.end, all[i+1].at.start)
		}
	}
}

// apart drops a name inside another one, and a tool named again in its own
// arguments: "echo echo" is one call.
func apart(all []mentioned) []mentioned {
	var kept []mentioned
	for _, m := range all {
		if n := len(kept); n > 0 && (m.at.start < kept[n-1].at.end || m.kit.name == kept[n-1].kit.name && m.at.start-kept[n-1].at.end < 2) {
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

// hide blanks what stands in quotes and braces, so that nothing in there is
// taken for the name of a tool or the end of a clause.
func hide(text string) string {
	b := []byte(text)
	blank := func(start, end int) {
		for i := start; i < end; i++ {
			b[i] = '_'
		}
	}
	for _, m := range quoted.FindAllStringIndex(text, -1) {
		blank(m[0]+1, m[1]-1)
	}
	if object, ok := objectIn(text); ok {
		at := strings.Index(text, object)
		blank(at, at+len(object))
	}
	return string(b)
}

// described is the tool whose name and description share the most words with
// a message, if they are enough to be no accident.
func described(text string, tools []kit) (kit, bool) {
	said := stems(text)
	best, top := 0, -1
	for i, k := range tools {
		inName, score := 0, 0
		for s := range stems(strings.Join(k.words, " ") + " " + k.description) {
			if said[s] {
				score++
				if stems(strings.Join(k.words, " "))[s] {
					inName++
				}
			}
		}
		if (score >= 3 || score >= 2 && inName > 0) && score > best {
			best, top = score, i
		}
	}
	if top < 0 {
		return kit{}, false
	}
	return tools[top], true
}

var (
	common   = strings.Fields("the and for with from this that you your what how who why when where which are was were has have had can could would should will does did not any all its his her our out get set give tell make please about into onto than then them they there here just some such one two use using tool")
	lettered = regexp.MustCompile(`[\pL']{3,}`)
)

// stems are the telling words of a text, without their endings.
func stems(text string) map[string]bool {
	all := map[string]bool{}
	for _, w := range lettered.FindAllString(strings.ToLower(text), -1) {
		if slices.Contains(common, w) {
			continue
		}
		for _, ending := range []string{"ing", "ed", "es", "s", "e"} {
			if len(w) > len(ending)+3 && strings.HasSuffix(w, ending) {
				w = strings.TrimSuffix(w, ending)
				break
			}
		}
		all[w] = true
	}
	return all
}
