package demo

import (
	"fmt"
	"regexp"
	"strings"
)

// used stands in for what an argument has taken out of a text.
const used = "\x00"

var (
	quoted   = regexp.MustCompile("\"([^\"\x00]*)\"|“([^”\x00]*)”|«([^»\x00]*)»|`([^`\x00]*)`|(?:^|[\\s=:,(])'([^'\x00]*)'")
	numeric  = regexp.MustCompile(`(?:^|[^\pL\pN_.#-]|#)(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?:[^\pL\pN_]|$)`)
	zoned    = regexp.MustCompile(`\b([A-Z][A-Za-z]+/[A-Z][A-Za-z_/]+|UTC|GMT)\b`)
	place    = regexp.MustCompile(`\bin ([A-Z][\pL'-]+(?: [A-Z][\pL'-]+)*)`)
	opening  = regexp.MustCompile(`(?i)^(?:[\s:,.\x00–-]|\b(?:the tool|tool|with|for|about|please|now|saying|that|and|then|to|of)\b)+`)
	closing  = regexp.MustCompile(`(?i)(?:[\s:,;.!?\x00]|\b(?:please|and|then|thanks|with|the|use|using|call|run|tool)\b)+$`)
	politely = regexp.MustCompile(`(?i)^(?:[\s,:]|\b(?:please|can|could|would|you|use|call|run|the|tool|i|want|need|to)\b)+`)
	yes      = regexp.MustCompile(`(?i)\b(?:true|yes)\b`)
	no       = regexp.MustCompile(`(?i)\b(?:false|no)\b`)
)

// filler fills a tool's arguments from a text.
type filler struct {
	kit    kit
	text   string // what nothing has taken yet
	after  int    // where the tool's name ends, if it stands in the text
	values map[string]any
}

// fill is the tool's arguments out of a text, as JSON, and the required ones
// that the text does not tell. named is where the tool's name ends in it.
func fill(k kit, text string, named []int) (string, []property) {
	if object, ok := objectIn(text); ok {
		return object, nil
	}
	f := &filler{kit: k, text: strings.ReplaceAll(text, used, " "), values: map[string]any{}}
	if named != nil {
		f.take(named[0], named[1])
		f.after = named[1]
	}
	f.each(f.pair)
	f.each(f.beside)
	f.each(f.fixed)
	f.each(f.counted)
	f.each(f.quotedText)
	f.each(f.zone)
	f.each(f.list)
	f.each(f.remainder)
	f.each(f.fallback)
	var missing []property
	for _, p := range k.properties {
		if _, ok := f.values[p.name]; !ok && p.required {
			missing = append(missing, p)
		}
	}
	return f.json(), missing
}

// each tries a rule on every argument that has no value: required ones first.
func (f *filler) each(rule func(property) (any, bool)) {
	for _, required := range []bool{true, false} {
		for _, p := range f.kit.properties {
			if _, ok := f.values[p.name]; ok || p.required != required {
				continue
			}
			if v, ok := rule(p); ok {
				f.values[p.name] = v
			}
		}
	}
}

// take marks a part of the text as used, at its place.
func (f *filler) take(start, end int) {
	f.text = f.text[:start] + strings.Repeat(used, end-start) + f.text[end:]
}

// key matches an argument's name as people write it.
func (p property) key() string {
	var words []string
	for _, w := range p.words {
		words = append(words, regexp.QuoteMeta(w))
	}
	if len(words) == 0 {
		return `$.^`
	}
	return `\b` + strings.Join(words, `[ _-]?`) + `\b`
}

// pair reads "key=value" and "key: value".
func (f *filler) pair(p property) (any, bool) {
	value := `("[^"]*"|'[^']*'|“[^”]*”|[^\s,;]+)`
	if p.kind == "string" && len(p.enum) == 0 {
		value = `("[^"]*"|'[^']*'|“[^”]*”|[^,;\n]+)`
	}
	for _, sign := range []string{`\s*=\s*("[^"]*"|'[^']*'|“[^”]*”|[^\s,;]+)`, `\s*:\s+` + value} {
		m := regexp.MustCompile(`(?i)` + p.key() + sign).FindStringSubmatchIndex(f.text)
		if m == nil {
			continue
		}
		end := f.untilNextKey(m[2], m[3])
		if v, ok := p.value(strings.TrimRight(f.text[m[2]:end], " .!?"+used)); ok {
			f.take(m[0], end)
			return v, true
		}
	}
	return nil, false
}

// untilNextKey ends a value where another argument's key begins.
func (f *filler) untilNextKey(start, end int) int {
	for _, p := range f.kit.properties {
		if m := regexp.MustCompile(`(?i)\s(?:and\s+)?` + p.key() + `\s*[:=]`).FindStringIndex(f.text[start:end]); m != nil {
			end = start + m[0]
		}
	}
	return end
}

// beside reads "order 7", "order is broken" and "300 cents": a value next to
// its argument's name.
func (f *filler) beside(p property) (any, bool) {
	ways := []string{p.key() + `\s+(?:is\s+|of\s+|number\s+|#\s*)?(-?\d[\d.,]*)`, `(?:^|\s)(-?\d[\d.,]*)\s+` + p.key()}
	if p.kind == "string" {
		ways = []string{p.key() + `\s+(?:number\s+|#\s*)?([\w.-]*\d[\w.-]*)`, p.key() + `\s+is\s+([^\s,;]+)`, p.key() + `\s+("[^"]*"|'[^']*'|“[^”]*”)`}
	}
	for _, way := range ways {
		if m := regexp.MustCompile(`(?i)` + way).FindStringSubmatchIndex(f.text); m != nil {
			if v, ok := p.value(strings.TrimRight(f.text[m[2]:m[3]], ".,!?")); ok {
				f.take(m[0], m[1])
				return v, true
			}
		}
	}
	return nil, false
}

// fixed reads words of an enumeration, and booleans.
func (f *filler) fixed(p property) (any, bool) {
	for _, e := range p.enum {
		m := regexp.MustCompile(`(?i)(?:^|\b|\s)` + regexp.QuoteMeta(fmt.Sprint(e)) + `(?:\b|\s|$)`).FindStringIndex(f.text)
		if m != nil {
			f.take(m[0], m[1])
			return e, true
		}
	}
	if p.kind != "boolean" {
		return nil, false
	}
	if m := regexp.MustCompile(`(?i)(\b(?:no|not|without)\s+)?` + p.key()).FindStringSubmatchIndex(f.text); m != nil {
		f.take(m[0], m[1])
		return m[2] < 0, true
	}
	switch {
	case !p.required:
		return nil, false
	case yes.MatchString(f.text):
		return true, true
	case no.MatchString(f.text):
		return false, true
	}
	return nil, false
}

// counted gives numbers to numeric arguments, in order.
func (f *filler) counted(p property) (any, bool) {
	if p.kind != "number" && p.kind != "integer" || len(p.enum) > 0 {
		return nil, false
	}
	for at := 0; ; {
		m := numeric.FindStringSubmatchIndex(f.text[at:])
		if m == nil {
			return nil, false
		}
		start, end := at+m[2], at+m[3]
		if v, ok := p.value(f.text[start:end]); ok {
			f.take(start, end)
			return v, true
		}
		at = end
	}
}

// quotedText gives quoted strings to textual arguments, in order.
func (f *filler) quotedText(p property) (any, bool) {
	if p.kind != "string" && p.kind != "" || len(p.enum) > 0 {
		return nil, false
	}
	m := quoted.FindStringSubmatchIndex(f.text)
	if m == nil {
		return nil, false
	}
	i := 2
	for m[i] < 0 {
		i += 2
	}
	v := f.text[m[i]:m[i+1]]
	f.take(m[0], m[1])
	return v, true
}

// zone reads a time zone, or the place after "in".
func (f *filler) zone(p property) (any, bool) {
	if !p.zone() {
		return nil, false
	}
	for _, way := range []*regexp.Regexp{zoned, place} {
		if m := way.FindStringSubmatchIndex(f.text); m != nil {
			v := f.text[m[2]:m[3]]
			f.take(m[0], m[1])
			return v, true
		}
	}
	return nil, false
}

// list gives a required array what is left: its quoted strings, its numbers,
// or its words between commas.
func (f *filler) list(p property) (any, bool) {
	if p.kind != "array" || !p.required {
		return nil, false
	}
	item, all := property{kind: p.items, required: true}, []any{}
	for _, rule := range []func(property) (any, bool){f.quotedText, f.counted} {
		for v, ok := rule(item); ok; v, ok = rule(item) {
			all = append(all, v)
		}
	}
	if len(all) == 0 && (p.items == "string" || p.items == "") {
		for _, part := range regexp.MustCompile(`\s*,\s*(?:and\s+)?|\s+and\s+`).Split(f.rest(), -1) {
			if part != "" {
				all = append(all, part)
			}
		}
	}
	return all, len(all) > 0
}

// remainder gives a required text the words after the tool's name, or those
// before it if there are none.
func (f *filler) remainder(p property) (any, bool) {
	if p.kind != "string" && p.kind != "" || !p.required || len(p.enum) > 0 {
		return nil, false
	}
	v := f.rest()
	f.text = ""
	return v, v != ""
}

// gap is where something was taken, with the words that led to it.
var gap = regexp.MustCompile(`(?i)(?:(?:\s+(?:in|for|and|with|of|at|on|to))?\s*\x00+)+\s*`)

func (f *filler) rest() string {
	if f.after > len(f.text) {
		return ""
	}
	tidy := func(s string) string {
		s = gap.ReplaceAllString(s, " ")
		return strings.TrimSpace(closing.ReplaceAllString(opening.ReplaceAllString(s, ""), ""))
	}
	if s := tidy(f.text[f.after:]); s != "" {
		return s
	}
	return politely.ReplaceAllString(tidy(f.text[:f.after]), "")
}

// fallback gives a required argument what its schema offers.
func (f *filler) fallback(p property) (any, bool) {
	if !p.required {
		return nil, false
	}
	switch {
	case len(p.fallback) > 0:
		return p.fallback, true
	case len(p.enum) == 1:
		return p.enum[0], true
	case p.kind == "object":
		return map[string]any{}, true
	}
	return nil, false
}
