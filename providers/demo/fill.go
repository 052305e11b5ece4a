package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/providers"
)

// property is one argument of a tool.
type property struct {
	name     string
	kind     string // the JSON type; empty if the schema has none
	enum     []any
	required bool
}

// properties reads a schema's properties in order. A schema that cannot be read has none.
func properties(schema []byte) (all []property) {
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
	for d.More() {
		key, _ := d.Token() // it was valid JSON above
		var one json.RawMessage
		if d.Decode(&one) != nil {
			return all
		}
		var of struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		}
		_ = json.Unmarshal(one, &of) // a schema that is no object allows everything
		name, _ := key.(string)
		kind, _ := of.Type.(string)
		if several, ok := of.Type.([]any); ok {
			for _, t := range several {
				if t != "null" {
					kind, _ = t.(string)
				}
			}
		}
		all = append(all, property{name, kind, of.Enum, slices.Contains(s.Required, name)})
	}
	return all
}

// filler fills the arguments of a tool from a text.
type filler struct {
	text   string // what no argument has taken yet
	values map[string]any
}

var (
	number = regexp.MustCompile(`(?:^|[\s(#$€])(-?\d+(?:\.\d+)?)(?:[\s,;:.!?)%€]|$)`)
	quoted = regexp.MustCompile(`"([^"]*)"|“([^”]*)”|(?:^|\s)'([^']*)'`)
	lead   = regexp.MustCompile(`(?i)^(?:[\s:,]|\b(?:tool|with|for|of|to|please)\b)+`)
	trail  = regexp.MustCompile(`(?i)(?:[\s:,]|\b(?:please|with|use|using|call|the)\b)+$`)
)

// fill returns the tool's arguments out of the text after its name, or before it if nothing
// comes after, as JSON, and the required ones that are not in there: an object is taken as it is; then come values
// beside their argument's name, then numbers and quoted texts in order, then the rest of the
// text for one that wants text.
func fill(t providers.ToolSpec, before, after string) (string, []property) {
	if start, end, ok := objectIn(after); ok {
		return after[start:end], nil
	}
	if tidy(after) == "" {
		after = before
	}
	f := filler{after, map[string]any{}}
	all := properties(t.Parameters)
	rules := []func(property) (any, bool){f.pair, f.fixed, f.counted, f.quoted, f.rest}
	var missing []property
	for i, rule := range rules {
		for _, p := range all {
			if _, ok := f.values[p.name]; ok {
				continue
			}
			if v, ok := rule(p); ok {
				f.values[p.name] = v
			} else if p.required && i == len(rules)-1 {
				missing = append(missing, p)
			}
		}
	}
	return f.json(all), missing
}

// cut takes a part out of the text.
func (f *filler) cut(at []int) { f.text = f.text[:at[0]] + " " + f.text[at[1]:] }

// pair reads "key=value", "key: value", "order 7" and "300 cents".
func (f *filler) pair(p property) (any, bool) {
	if p.name == "" {
		return nil, false
	}
	for _, way := range []*regexp.Regexp{
		nameOf(p.name, `\s*[=:]\s*("[^"]*"|'[^']*'|[^\s,;]+)`),
		nameOf(p.name, `\s+(?:is\s+|of\s+|number\s+|#)?("[^"]*"|[^\s,;]*\d[^\s,;]*)`),
		regexp.MustCompile(`(?i)(-?\d+(?:\.\d+)?)\s+` + regexp.QuoteMeta(p.name) + `\b`),
	} {
		if at := way.FindStringSubmatchIndex(f.text); at != nil {
			if v, ok := p.value(strings.Trim(f.text[at[2]:at[3]], `"'.!?`)); ok {
				f.cut(at)
				return v, true
			}
		}
	}
	return nil, false
}

// value returns a text as a value of the argument's type.
func (p property) value(s string) (any, bool) {
	for _, e := range p.enum {
		if strings.EqualFold(fmt.Sprint(e), s) {
			return e, true
		}
	}
	if len(p.enum) > 0 {
		return nil, false
	}
	var v any
	switch p.kind {
	case "string", "":
		return s, true
	case "integer":
		var n int64
		err := json.Unmarshal([]byte(s), &n)
		return n, err == nil
	case "number":
		_ = json.Unmarshal([]byte(s), &v) // what is no JSON is no number
		_, ok := v.(float64)
		return v, ok
	case "boolean":
		b := strings.EqualFold(s, "true") || strings.EqualFold(s, "yes")
		return b, b || strings.EqualFold(s, "false") || strings.EqualFold(s, "no")
	}
	return nil, false
}

// fixed reads a word of an enumeration.
func (f *filler) fixed(p property) (any, bool) {
	for _, e := range p.enum {
		if at := nameOf(fmt.Sprint(e), ``).FindStringIndex(f.text); at != nil && at[1] > at[0] {
			f.cut(at)
			return e, true
		}
	}
	return nil, false
}

// counted returns the next number for an argument that wants one.
func (f *filler) counted(p property) (any, bool) {
	at := number.FindStringSubmatchIndex(f.text)
	if at == nil || p.kind != "number" && p.kind != "integer" {
		return nil, false
	}
	v, ok := p.value(f.text[at[2]:at[3]])
	if ok {
		f.cut(at[2:4])
	}
	return v, ok
}

// quoted returns the next quoted text for a required argument.
func (f *filler) quoted(p property) (any, bool) {
	at := quoted.FindStringSubmatchIndex(f.text)
	if at == nil || !p.required || p.kind != "string" && p.kind != "" {
		return nil, false
	}
	i := 2
	for at[i] < 0 {
		i += 2
	}
	v, ok := p.value(f.text[at[i]:at[i+1]])
	if ok {
		f.cut(at)
	}
	return v, ok
}

// rest returns what is left for a required argument.
func (f *filler) rest(p property) (any, bool) {
	text := tidy(f.text)
	if !p.required || p.kind != "string" && p.kind != "" || text == "" {
		return nil, false
	}
	f.text = ""
	return p.value(text)
}

// tidy returns a text without the words that only lead to it or away from it.
func tidy(text string) string {
	return strings.Join(strings.Fields(trail.ReplaceAllString(lead.ReplaceAllString(text, ""), "")), " ")
}

// json writes the values in the order of the schema.
func (f *filler) json(all []property) string {
	var parts []string
	for _, p := range all {
		if v, ok := f.values[p.name]; ok {
			name, _ := json.Marshal(p.name)
			value, _ := json.Marshal(v) // texts and what came from JSON always have a form
			parts = append(parts, string(name)+":"+string(value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// madeUp is a value of the argument's type.
func (p property) madeUp(text string) any {
	if len(p.enum) > 0 {
		return p.enum[0]
	}
	switch p.kind {
	case "number", "integer":
		return 1
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return text
}

// objectIn finds the JSON object in a text, which begins at its first brace.
func objectIn(text string) (start, end int, ok bool) {
	start = strings.IndexByte(text, '{')
	if start < 0 {
		return 0, 0, false
	}
	d := json.NewDecoder(strings.NewReader(text[start:]))
	var object map[string]any
	err := d.Decode(&object)
	return start, start + int(d.InputOffset()), err == nil && object != nil
}
