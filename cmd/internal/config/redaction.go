package config

import (
	"regexp"

	"github.com/reprise-dev/reprise/eventlog/export/redact"
)

// LoadRedaction reads a file of redaction rules: patterns and paths by their names. Its error is
// [Problems].
func LoadRedaction(path string) (rules []redact.Rule, err error) {
	data, err := read(path, "give the path of a file of rules, or a regular expression that does not end in .yaml")
	if err != nil {
		return nil, err
	}
	c := &collector{file: path}
	root := parseYAML(c, data)
	if root == nil {
		return nil, c.err()
	}
	r := &reader{collector: c, lines: splitLines(data)}
	const example = "write patterns: {email: '[\\w.]+@[\\w.]+'} or paths: {card: tool.requested.arguments.card}"
	if root.kind != mapping {
		r.add(root.at, example, "the file holds %s where fields are expected", root.kind)
		return nil, c.err()
	}
	each := func(add func(at place, name, value string)) func(*node) {
		return func(n *node) {
			r.entries(n, "rules", func(f field) {
				if f.value.kind != text {
					r.add(f.value.at, "put it in single quotes", "the rule %s must be text, not %s", shown(f.name), f.value.kind)
					return
				}
				add(f.value.at, f.name, f.value.text)
			})
		}
	}
	r.fields(root, &redactionKeys, "the file", map[string]func(*node){
		"patterns": each(func(at place, name, value string) {
			pattern, err := regexp.Compile(value)
			if err != nil {
				r.add(at, "write a regular expression in the syntax of Go (RE2)", "the pattern of %s cannot be read: %v", shown(name), err)
				return
			}
			rules = append(rules, redact.Rule{Name: name, Pattern: pattern})
		}),
		"paths": each(func(_ place, name, value string) { rules = append(rules, redact.Rule{Name: name, Path: value}) }),
	})
	if len(rules) == 0 && len(c.found) == 0 {
		r.add(root.at, example, "the file has no rules")
	}
	if len(c.found) == 0 {
		if _, err := redact.New(rules); err != nil {
			r.add(root.at, "", "%v", err)
		}
	}
	return rules, c.err()
}
