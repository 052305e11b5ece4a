package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// reader fills a Config from the tree and notes what does not fit.
type reader struct {
	*collector
	env    func(string) (string, bool)
	lines  []string
	config *Config
	places map[string]place
	models []use
	costs  []costly
	asked  []asking // agents that are tools
	served []asking // MCP servers that agents have tools of
	// lenient leaves unset variables empty: the provider is not used.
	lenient bool
	// unset reports whether a variable was left empty since it was set to false.
	unset bool
}

// root reads the whole file. Agents come first: they say which providers are used
// and which models need a price.
func (r *reader) root(n *node) {
	if n.kind != mapping {
		r.add(n.at, "begin with agents: and one agent below it", "the file holds %s where fields are expected", n.kind)
		return
	}
	r.fields(n, &fileKeys, "the file", map[string]func(*node){
		"agents":    r.agents,
		"tools":     r.tools,
		"providers": func(*node) {},
		"mcp":       func(*node) {},
		"prices":    func(*node) {},

		"encryption": r.encryption,
		"retain_to":  r.retainTo,
		"telemetry":  r.telemetry,
	})
	if agents := n.get("agents"); agents == nil {
		r.add(n.at, "add agents: with one agent below it", "there are no agents")
	} else if agents.kind == empty || agents.kind == mapping && len(agents.fields) == 0 {
		r.add(agents.at, "add one, such as assistant: {model: openai/gpt-5.5}", "there are no agents")
	}
	r.agentsAsked()
	r.servers(n.get("mcp"))
	r.providers(n.get("providers"))
	r.prices(n.get("prices"))
}

// fields passes each field of a mapping to its reader. A field is known if it has a reader and
// is a key of the section.
func (r *reader) fields(n *node, of *section, owner string, readers map[string]func(*node)) {
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(readers)), func(name string) bool { return !of.has(name) })
	r.entries(n, owner, func(f field) {
		if slices.Contains(known, f.name) {
			readers[f.name](f.value)
			return
		}
		name := shown(f.name)
		if Nearest(f.name, known) != "" {
			name = strconv.Quote(f.name)
		}
		do := meant(f.name, known, "fields of "+owner)
		if section := elsewhere(f.name, known); section != "" {
			do = section
		}
		r.add(f.at, do, "unknown field %s", name)
	})
}

// elsewhere is where a field belongs that people look for beside known ones.
func elsewhere(name string, known []string) string {
	switch {
	case slices.Contains(known, "settings") && slices.Contains(settings, name):
		return "move it below settings:"
	case slices.Contains(known, "settings") && slices.Contains(limits, name):
		return "move it below budget: {turn: …}, or below budget: {agent: …} for all turns together"
	case slices.Contains(known, "compact") && (name == "at_tokens" || name == "keep"):
		return "move it below compact:"
	case slices.Contains(known, "turn") && slices.Contains(limits, name):
		return "write it below turn:, or below agent: for all turns together"
	case name == "max_steps" && slices.Contains(known, "max_tokens"):
		return "write max_steps beside budget: it counts the model calls of a turn"
	}
	return ""
}

// entries calls each for all fields of a mapping; nothing at all counts as an
// empty one.
func (r *reader) entries(n *node, owner string, each func(field)) {
	switch n.kind {
	case mapping:
		for _, f := range n.fields {
			each(f)
		}
	case empty, noted:
	default:
		r.add(n.at, "write name: value lines below it", "%s must hold fields, not %s", owner, n.kind)
	}
}

// text is a text with its variables replaced; false if it is none, which is
// then noted.
func (r *reader) text(n *node, name string) (string, bool) {
	switch n.kind {
	case text:
		return r.expand(n, name)
	case noted:
	case empty:
		r.add(n.at, "write a value, or remove the line", "%s has no value", name)
	case boolean, integer, number:
		r.add(n.at, "put it in quotes if it is meant so", "%s must be text, not %s", name, n.kind)
	default:
		r.add(n.at, "write one value", "%s must be text, not %s", name, n.kind)
	}
	return "", false
}

func (r *reader) expand(n *node, name string) (string, bool) {
	e := expand(n.text, r.env)
	if e.broken {
		r.add(r.find(n.at, "${"), "write ${NAME} or ${NAME:-default}; a plain ${ is written $${", "%s has a ${ that is no variable", name)
		return "", false
	}
	if r.lenient {
		r.unset = r.unset || len(e.unset) > 0
		return e.value, true
	}
	for _, v := range e.unset {
		r.add(r.find(n.at, "${"+v), "set it, or write ${"+v+":-default}; a plain ${ is written $${", "the variable %s is not set", v)
	}
	return e.value, len(e.unset) == 0
}

// find is where part is in the file, from at on; at itself if nowhere.
func (r *reader) find(at place, part string) place {
	if found, ok := r.seek(at, part); ok {
		return found
	}
	return at
}

// seek is where part is in the file, from at on.
func (r *reader) seek(at place, part string) (place, bool) {
	for l := at.line; l >= 1 && l <= len(r.lines); l++ {
		line := r.lines[l-1]
		skip := 0
		if l == at.line {
			skip = byteAt(line, at.col-1)
		}
		if i := strings.Index(line[skip:], part); i >= 0 {
			return place{l, utf8.RuneCountInString(line[:skip+i]) + 1}, true
		}
	}
	return place{}, false
}

// byteAt is where the character number n of s begins.
func byteAt(s string, n int) int {
	for i := range s {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(s)
}

// digits is a value that must be a number, written as one or held by a variable;
// false if it is none, which is then noted.
func (r *reader) digits(n *node, name, want string) (string, bool) {
	variable := n.kind == text && strings.Contains(n.text, "${")
	switch {
	case n.kind == integer || n.kind == number:
		return strings.ReplaceAll(n.text, "_", ""), true
	case variable:
		return r.expand(n, name)
	case n.kind != noted:
		r.add(n.at, "write "+want, "%s must be a number, not %s", name, n.kind)
	}
	return "", false
}

// count reads a whole number from 1 to a million.
func (r *reader) count(name string, into *int) func(*node) { return r.countTo(1_000_000, name, into) }

func (r *reader) countTo(limit int64, name string, into *int) func(*node) {
	want := fmt.Sprintf("a whole number from 1 to %d", limit)
	return func(n *node) {
		s, ok := r.digits(n, name, want)
		if !ok {
			return
		}
		switch v, err := strconv.ParseInt(s, 0, 64); {
		case err != nil && !errors.Is(err, strconv.ErrRange):
			r.add(n.at, "write "+want, "%s is not a whole number", name)
		case err != nil || v < 1 || v > limit:
			r.add(n.at, "write "+want+", or remove the line for the default", "%s is out of range", name)
		default:
			*into = int(v)
		}
	}
}

// float reads a number from low to high.
func (r *reader) float(name string, low, high float64, into **float32) func(*node) {
	return r.decimal(name, low, high, func(v float64) { *into = new(float32(v)) })
}

// amount reads a number from 0 to high, in whole units of money.
func (r *reader) amount(name string, high float64, into *float64) func(*node) {
	return r.decimal(name, 0, high, func(v float64) { *into = v })
}

// decimal passes a number from low to high to set.
func (r *reader) decimal(name string, low, high float64, set func(float64)) func(*node) {
	want := fmt.Sprintf("a number from %g to ", low) + strconv.FormatFloat(high, 'f', -1, 64)
	return func(n *node) {
		s, ok := r.digits(n, name, want)
		if !ok {
			return
		}
		switch v, err := strconv.ParseFloat(s, 64); {
		case err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(v):
			r.add(n.at, "write "+want, "%s is not a number", name)
		case v < low || v > high:
			r.add(n.at, "write "+want, "%s is out of range", name)
		default:
			set(v)
		}
	}
}

// flag reads true or false, written as such or held by a variable.
func (r *reader) flag(name string, into *bool) func(*node) {
	return func(n *node) {
		s, ok := n.text, n.kind == boolean
		if n.kind == text && strings.Contains(n.text, "${") {
			if s, ok = r.expand(n, name); !ok {
				return
			}
		}
		switch {
		case ok && strings.EqualFold(s, "true"):
			*into = true
		case ok && strings.EqualFold(s, "false"):
			*into = false
		case n.kind != noted:
			r.add(n.at, "write true or false, without quotes", "%s must be true or false", name)
		}
	}
}

func (r *reader) duration(name string, into *time.Duration) func(*node) {
	return func(n *node) {
		if n.kind == integer || n.kind == number {
			r.add(n.at, "write a unit, such as 30s or 5m", "%s has no unit", name)
			return
		}
		s, ok := r.text(n, name)
		if !ok {
			return
		}
		switch d, err := time.ParseDuration(s); {
		case err != nil:
			r.add(n.at, "write a number with a unit, such as 30s or 5m", "%s is not a duration", name)
		case d <= 0:
			r.add(n.at, "write a positive one, such as 30s", "%s must be longer than nothing", name)
		default:
			*into = d
		}
	}
}

// line reads a text into a variable.
func (r *reader) line(name string, into *string) func(*node) {
	return func(n *node) {
		if s, ok := r.text(n, name); ok {
			*into = s
		}
	}
}

// list calls each for every text of a list.
func (r *reader) list(n *node, name, example string, each func(*node, string)) {
	switch n.kind {
	case list:
		for _, item := range n.items {
			if s, ok := r.text(item, "an entry of "+name); ok {
				each(item, s)
			}
		}
	case empty, noted:
	default:
		r.add(n.at, "write a list, such as "+example, "%s must be a list, not %s", name, n.kind)
	}
}

// word reads one of the words that are allowed.
func (r *reader) word(n *node, name string, words []string) (string, bool) {
	s, ok := r.text(n, name)
	if !ok || slices.Contains(words, s) {
		return s, ok
	}
	r.add(n.at, meant(s, words, "values of "+name), "unknown %s %s", name, shown(n.text))
	return "", false
}
