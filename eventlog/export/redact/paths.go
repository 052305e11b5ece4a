package redact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// The roots of paths beside the types of events.
const (
	rootCause      = "cause"
	rootDefinition = "definition"
	rootAny        = "*"
)

// pathRule is a rule with a path.
type pathRule struct {
	rule   string
	root   string // a type of event, rootCause, rootDefinition or rootAny
	fields []string
}

// parsePath reads the path of a rule.
func parsePath(rule Rule) (pathRule, error) {
	p := pathRule{rule: rule.Name}
	parts := strings.Split(rule.Path, ".")
	if slices.Contains(parts, "") {
		return p, fmt.Errorf("rule %q: the path %q has an empty part", rule.Name, rule.Path)
	}
	p.root, p.fields = parts[0], parts[1:]
	if p.root != rootCause && p.root != rootDefinition && p.root != rootAny && len(parts) > 1 {
		p.root, p.fields = parts[0]+"."+parts[1], parts[2:]
		if messages.VersionOf(p.root) == 0 {
			return p, fmt.Errorf("rule %q: %q is no type of event: begin the path with one, or with cause, definition or *", rule.Name, p.root)
		}
	}
	if len(p.fields) == 0 {
		return p, fmt.Errorf("rule %q: the path %q names no field: write one behind it, such as tool.requested.arguments.card", rule.Name, rule.Path)
	}
	return p, nil
}

// of returns the rule that names a path; empty if none does. A rule for anything names the end of a
// path.
func (r *Redactor) of(root string, path []string) string {
	for _, p := range r.paths {
		tail := path
		switch {
		case p.root == rootAny && len(path) > len(p.fields):
			tail = path[len(path)-len(p.fields):]
		case p.root != rootAny && p.root != root:
			continue
		}
		if slices.Equal(tail, p.fields) {
			return p.rule
		}
	}
	return ""
}

// Paths reports whether the values of all events must be collected before the first is redacted.
func (r *Redactor) Paths() bool { return len(r.paths) > 0 }

// collect notes the value of that name at a path of a rule.
func (r *Redactor) collect(rule, name, value string) {
	switch {
	case value == "":
	case len(value) < shortest:
		r.short[[2]string{name, value}] = rule
	default:
		if _, is := r.values[value]; is {
			return
		}
		r.values[value] = rule
		at, _ := slices.BinarySearchFunc(r.long, value, longestFirst)
		r.long = slices.Insert(r.long, at, value)
	}
}

func longestFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// Collect notes what paths name in a frame whose events hold the payloads that are stored as blobs. It
// changes nothing.
func (r *Redactor) Collect(f *messages.Frame) {
	if !r.Paths() {
		return
	}
	r.walkFrame(f, func(w *walk) { w.collecting = true })
}

// CollectDefinition notes what paths name in a definition.
func (r *Redactor) CollectDefinition(data []byte) {
	w := &walk{Redactor: r, root: rootDefinition, structured: true, collecting: true}
	w.json(string(data))
}
