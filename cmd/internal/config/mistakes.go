package config

import (
	"maps"
	"slices"
	"strings"
)

// The words of a schema whose value holds further schemas.
var (
	// apart are those whose schemas alone say all about a field or an entry.
	apart = strings.Fields("properties items prefixItems additionalProperties")
	// alongside are those whose schemas apply together with others to the same value.
	alongside = strings.Fields(`$ref allOf anyOf oneOf not if then else dependentSchemas dependencies patternProperties
		contains additionalItems propertyNames unevaluatedItems unevaluatedProperties contentSchema`)
	// byName are those that hold a schema for each name.
	byName = strings.Fields("properties patternProperties dependentSchemas dependencies $defs definitions")
)

// schemaCheck finds what in the schema of a tool's parameters cannot be meant.
type schemaCheck struct {
	*reader
	tool   string
	shapes *schemas
}

func (c *schemaCheck) wrong(at place, do, what string, args ...any) {
	c.add(at, do, "%s: "+what, append([]any{c.tool}, args...)...)
}

// schema checks a schema and those below it. name is what an expression calls the value. A
// part applies together with another schema, which may declare what this one requires.
func (c *schemaCheck) schema(n *node, name string, part bool) {
	if n.kind != mapping {
		return
	}
	c.types(n, name)
	c.values(n, name)
	s := c.shapes.shape(n)
	if ref := n.get("$ref"); ref != nil && c.shapes.loop == n { // that an entry or field has the same schema is fine
		c.wrong(ref.at, "let it lead elsewhere", "the $ref of %s leads back to itself", name)
	}
	if !part {
		c.required(n, s, name)
	}
	part = part || slices.ContainsFunc(n.fields, func(f field) bool { return slices.Contains(alongside, f.name) })
	for _, f := range n.fields {
		switch {
		case f.name == "$defs", f.name == "definitions":
			c.below(f, f.name, true)
		case slices.Contains(alongside, f.name):
			c.below(f, name, true)
		case slices.Contains(apart, f.name):
			c.below(f, name, part)
		}
	}
}

// below checks the schemas that a word holds: one, a list of them, or one for each name.
func (c *schemaCheck) below(f field, name string, part bool) {
	if slices.Contains(byName, f.name) {
		for _, entry := range f.value.fields {
			c.schema(entry.value, name+"."+strings.Trim(shown(entry.name), `"`), part)
		}
		return
	}
	if f.name == "items" || f.name == "prefixItems" {
		name += "[]"
	}
	for _, one := range slices.Concat(f.value.items, []*node{f.value}) {
		c.schema(one, name, part)
	}
}

func (c *schemaCheck) types(n *node, name string) {
	types := slices.Sorted(maps.Keys(schemaTypes))
	for _, word := range typeWords(n) {
		if !slices.Contains(types, word.text) {
			c.wrong(word.at, meant(word.text, types, "types"), "%s has the type %s, which JSON schemas do not have", name, shown(word.text))
		}
	}
}

// values finds values of enum that are not of the type. Of null it is not sure:
// some generators list it where the type lacks it.
func (c *schemaCheck) values(n *node, name string) {
	types := typesOf(n)
	for _, item := range below(n, "enum") {
		if v := scalar(item); v != nil && v != any(item) && types&kindOf(v) == 0 {
			c.wrong(item.at, "change the value or the type", "%s is listed for %s, whose type allows only %s", written(v), name, shape{{{kinds: types}}})
		}
	}
}

// required finds required fields that nothing declares. A mapping below the top of which no
// field is declared may have any.
func (c *schemaCheck) required(n *node, s shape, name string) {
	names, open := s.fields()
	if s.kinds()&aMapping == 0 || open || len(names) == 0 && n != c.shapes.root {
		return
	}
	for _, item := range below(n, "required") {
		if item.kind == text && !slices.Contains(names, item.text) {
			c.wrong(item.at, meant(item.text, names, "properties"), "%s requires %s, which its properties lack", name, shown(item.text))
		}
	}
}
