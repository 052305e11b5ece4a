package demo

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/reprise-dev/reprise/providers"
)

// kit is a tool as the demo model knows it.
type kit struct {
	name, description string
	words             []string // of the name, in lower case
	mention           *regexp.Regexp
	properties        []property // in the order of the schema
}

// property is one argument.
type property struct {
	name     string
	words    []string
	kind     string // the JSON type; empty if the schema has none
	items    string // the type of an array's items
	enum     []any
	fallback json.RawMessage // default or const
	required bool
}

// kits reads the tools of a request. A schema that cannot be read has no
// properties.
func kits(specs []providers.ToolSpec) []kit {
	var all []kit
	for _, s := range specs {
		k := kit{name: s.Name, description: s.Description, words: split(s.Name), properties: properties(s.Parameters)}
		k.mention = mention(k.words)
		all = append(all, k)
	}
	return all
}

// split is a name's words: look_up, look-up and lookUp are look and up.
func split(name string) []string {
	var spaced strings.Builder
	lower := false
	for _, r := range name {
		if lower && unicode.IsUpper(r) {
			spaced.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		spaced.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(spaced.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// mention matches a tool's name as people write it: "look up" for lookup,
// "send an email" for send_email. A name without words matches nothing.
func mention(words []string) *regexp.Regexp {
	var parts []string
	for _, w := range words {
		var letters []string
		for _, r := range w {
			letters = append(letters, regexp.QuoteMeta(string(r)))
		}
		parts = append(parts, strings.Join(letters, `[ _-]?`))
	}
	if len(parts) == 0 {
		return regexp.MustCompile(`$.^`)
	}
	return regexp.MustCompile(`(?i)\b` + strings.Join(parts, `[\s_-]*(?:(?:an?|the|some)\s+)?`) + `\b`)
}

// properties reads a schema's properties in order, required ones marked.
func properties(schema []byte) []property {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var all []property
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return all
		}
		name, _ := key.(string)
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return all
		}
		p := read(raw)
		p.name, p.words, p.required = name, split(name), slices.Contains(s.Required, name)
		all = append(all, p)
	}
	return all
}

// read is what one property's schema says.
func read(raw json.RawMessage) property {
	var s struct {
		Type    json.RawMessage   `json:"type"`
		Enum    []any             `json:"enum"`
		Const   json.RawMessage   `json:"const"`
		Default json.RawMessage   `json:"default"`
		Items   json.RawMessage   `json:"items"`
		AnyOf   []json.RawMessage `json:"anyOf"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return property{}
	}
	p := property{kind: typeOf(s.Type), enum: s.Enum, fallback: s.Default}
	if len(s.Const) > 0 {
		p.fallback = s.Const
	}
	if len(s.Items) > 0 {
		p.items = read(s.Items).kind
	}
	for _, way := range s.AnyOf {
		if of := read(way); p.kind == "" && of.kind != "null" {
			p.kind, p.items, p.enum = of.kind, of.items, of.enum
		}
	}
	return p
}

// typeOf is a schema's type: the first that is not null of several.
func typeOf(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var several []string
	if json.Unmarshal(raw, &several) != nil { // none, or no JSON schema
		return ""
	}
	for _, t := range several {
		if t != "null" {
			return t
		}
	}
	return ""
}

var (
	mathWords   = regexp.MustCompile(`(?i)\b(calculat\w*|math\w*|arithmetic|evaluat\w*|comput\w*|numeric\w*|sums?)\b`)
	noMathWords = regexp.MustCompile(`(?i)\b(regex\w*|regular|cron\w*|jq|jsonpath|xpath|quer(y|ies)|filter\w*|search\w*|facial)\b`)
	clockWords  = regexp.MustCompile(`(?i)\b(current|today'?s|local)\s+(date|time)|\bwhat time\b`)
)

// calculates is the argument that takes an expression, if the tool computes.
func (k kit) calculates() (string, bool) {
	about := strings.Join(k.words, " ") + " " + k.description
	computes := mathWords.MatchString(about)
	if noMathWords.MatchString(about) && !computes {
		return "", false
	}
	text := ""
	for _, p := range k.properties {
		if p.kind != "string" && p.kind != "" {
			if p.required {
				return "", false
			}
			continue
		}
		for _, w := range []string{"expression", "expr", "formula", "equation", "calculation"} {
			if slices.Contains(p.words, w) {
				return p.name, true
			}
		}
		if p.required && text == "" {
			text = p.name
		}
	}
	return text, computes && text != ""
}

// tells says that the tool tells the time and needs nothing but a zone.
func (k kit) tells() bool {
	clock := clockWords.MatchString(k.description)
	for _, w := range []string{"clock", "time", "now", "date", "datetime"} {
		clock = clock || slices.Contains(k.words, w)
	}
	for _, p := range k.properties {
		if p.required && !p.zone() {
			return false
		}
	}
	return clock
}

// zone says that the argument is a time zone or a place.
func (p property) zone() bool {
	for _, w := range p.words {
		if strings.HasSuffix(w, "zone") || slices.Contains([]string{"tz", "city", "location", "place"}, w) {
			return p.kind == "string"
		}
	}
	return false
}

var arithmeticNames = map[string][]string{
	"+": {"add", "sum", "plus"}, "-": {"subtract", "minus", "difference"}, "*": {"multiply", "times", "product"},
	"/": {"divide", "quotient"}, "^": {"power", "pow"}, "%": {"mod", "modulo", "remainder"},
}

// operates says that the tool takes two numbers and does what op stands for.
func (k kit) operates(op string) bool {
	for _, p := range k.properties {
		if p.kind != "number" && p.kind != "integer" {
			return false
		}
	}
	return len(k.properties) == 2 && slices.ContainsFunc(k.words, func(w string) bool { return slices.Contains(arithmeticNames[op], w) })
}
