package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// schemaTypes are the words of a schema's type.
var schemaTypes = map[string]kinds{
	"string": aText, "number": aNumber, "integer": aNumber, "boolean": aBool, "null": aNil, "array": aList, "object": aMapping,
}

// schemas returns the shapes of what fits the schemas of one document.
type schemas struct {
	root *node
	left int            // steps
	in   map[*node]bool // those whose shape is being made
	loop *node          // the last one found that applies to the same value again
}

const (
	maxSteps  = 10_000 // for a document, as references could multiply its schemas
	maxValues = 1000   // of an enum that is considered
)

func schemasOf(root *node) *schemas {
	return &schemas{root: root, left: maxSteps, in: make(map[*node]bool)}
}

// shape returns the shape of what fits a schema. Words that it does not consider can only
// narrow that further, such as not, minimum and pattern.
func (s *schemas) shape(n *node) shape {
	s.left--
	switch {
	case s.in[n]:
		s.loop = n
		return nil
	case n == nil, n.kind != mapping, s.left < 0, n != s.root && n.get("$id") != nil: // in which references lead elsewhere
		return nil
	}
	s.in[n] = true
	defer delete(s.in, n)
	all := shape{{own(n)}}
	if ref := n.get("$ref"); ref != nil {
		target := s.shape(s.target(ref.text))
		if all = s.meet(all, target); s.root.get("$schema") != nil { // it may be a version in which nothing beside $ref counts
			all = target
		}
	}
	for _, part := range below(n, "allOf") {
		all = s.meet(all, s.shape(part))
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if parts := below(n, word); len(parts) > 0 {
			one := s.shape(parts[0])
			for _, part := range parts[1:] {
				one = join(one, s.shape(part))
			}
			all = s.meet(all, one)
		}
	}
	if said(n.get("nullable"), "true") { // OpenAPI's
		all = join(all, exactly(nil))
	}
	return all
}

// own returns what a schema says by itself, without those that apply together with it.
func own(n *node) rule {
	r := rule{kinds: typesOf(n), schema: n}
	items := below(n, "enum")
	if only := n.get("const"); only != nil {
		items = []*node{only}
	}
	if len(items) == 0 || len(items) > maxValues {
		return r
	}
	var listed kinds
	for _, item := range items {
		v := scalar(item)
		r.values, listed = append(r.values, v), listed|kindOf(v)
	}
	r.kinds &= listed
	return r
}

// meet returns the shape of a value that has two shapes.
func (s *schemas) meet(a, b shape) (all shape) {
	if len(a) == 0 || len(b) == 0 { // anything
		return slices.Concat(a, b)
	}
	if s.left -= len(a) * len(b); s.left < 0 {
		return nil
	}
	for _, x := range a {
		for _, y := range b {
			if both := slices.Concat(x, y); both.kinds() != 0 {
				all = append(all, both)
			}
		}
	}
	return all
}

// inside returns the shape of a field or entry of a mapping or list. schema returns the schema
// of it below that of the whole, or nil.
func (s *schemas) inside(whole shape, k kinds, schema func(n *node) *node) (all shape) {
	for _, a := range whole {
		if a.kinds()&k == 0 {
			continue
		}
		var one shape
		for _, r := range a {
			one = s.meet(one, s.shape(schema(r.schema)))
		}
		if len(one) == 0 {
			return nil
		}
		all = append(all, one...)
	}
	return all
}

// field returns the shape of a field of a mapping.
func (s *schemas) field(whole shape, name string) shape {
	return s.inside(whole, aMapping, func(n *node) *node { return n.get("properties").get(name) })
}

// entry returns the shape of an entry of a list.
func (s *schemas) entry(whole shape) shape {
	return s.inside(whole, aList, func(n *node) *node {
		if n.get("prefixItems") != nil {
			return nil
		}
		return n.get("items")
	})
}

// openWords are those by which a schema may take fields that no properties declare.
var openWords = strings.Fields("enum const patternProperties propertyNames unevaluatedProperties if dependentSchemas dependencies $dynamicRef")

// fields returns the declared fields of a mapping, and reports whether there may be others.
func (s shape) fields() (names []string, open bool) {
	for _, a := range s {
		for _, r := range a {
			more := r.schema.get("additionalProperties")
			open = open || more != nil && !said(more, "false") || slices.ContainsFunc(openWords, func(word string) bool { return r.schema.get(word) != nil })
			names = append(names, namesOf(r.schema)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), open || len(s) == 0
}

// namesOf returns the properties that a schema declares by itself.
func namesOf(n *node) (names []string) {
	if properties := n.get("properties"); properties != nil {
		for _, p := range properties.fields {
			names = append(names, p.name)
		}
	}
	return names
}

func said(n *node, word string) bool {
	return n != nil && n.kind == boolean && strings.EqualFold(n.text, word)
}

// below returns the schemas in the list of a word.
func below(n *node, word string) []*node {
	if parts := n.get(word); parts != nil {
		return parts.items
	}
	return nil
}

// target returns the schema that a reference into the same document leads to; nil if it is
// no such reference.
func (s *schemas) target(ref string) *node {
	steps, n := strings.Split(ref, "/"), s.root
	if steps[0] != "#" || strings.Contains(ref, "%") {
		return nil
	}
	for _, step := range steps[1:] {
		if n = n.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step)); n.get("$id") != nil {
			return nil
		}
	}
	return n
}

// typesOf returns the kinds that a schema's type allows: all of them if there is no type
// or it cannot be read.
func typesOf(n *node) (all kinds) {
	for _, word := range typeWords(n) {
		all |= cmp.Or(schemaTypes[word.text], anyKind)
	}
	return cmp.Or(all, anyKind)
}

// typeWords returns the one type or the several ones of a schema.
func typeWords(n *node) []*node {
	if one := n.get("type"); one != nil && one.kind == text {
		return []*node{one}
	}
	return below(n, "type")
}

// scalar returns a node as a value; itself if it is a list or a mapping.
func scalar(n *node) any {
	switch n.kind {
	case text:
		return n.text
	case boolean:
		return strings.EqualFold(n.text, "true")
	case empty:
		return nil
	case integer, number:
		s := strings.ReplaceAll(n.text, "_", "")
		if i, err := strconv.ParseInt(s, 0, 64); err == nil {
			return float64(i)
		}
		f, _ := strconv.ParseFloat(s, 64) // what cannot be read is refused elsewhere
		return f
	}
	return n
}
