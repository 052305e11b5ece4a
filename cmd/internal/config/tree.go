package config

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// kind is what a node holds, as a person would call it.
type kind string

const (
	empty   kind = "nothing"
	boolean kind = "true or false"
	integer kind = "a whole number"
	number  kind = "a decimal number"
	text    kind = "text"
	list    kind = "a list"
	mapping kind = "a mapping"
	noted   kind = "what was refused" // its problem is known
)

// node is a value of the file. Nodes are shared between aliases and never change.
type node struct {
	kind   kind
	at     place
	text   string // of scalars, as written or, for text, as meant
	items  []*node
	fields []field
	size   int // nodes below and with this one
}

// field is an entry of a mapping.
type field struct {
	name  string
	at    place
	value *node
}

// get is the value of a field; nil if there is no mapping or it has none of that name.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// builder turns the parser's tree into ours: aliases followed, merges made, all
// else that we do not read refused.
type builder struct {
	*collector
	anchors map[string]*node
	nodes   int
	stopped bool
}

// build is n as a node; at is where it is said to be if the parser does not know.
func (b *builder) build(n ast.Node, at place) *node {
	if b.count(1, at); b.stopped {
		return &node{kind: empty, at: at, size: 1}
	}
	if n == nil {
		return &node{kind: empty, at: at, size: 1}
	}
	if n.Type() != ast.NullType {
		at = placeOf(n)
	}
	out := &node{kind: empty, at: at, size: 1}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		out.kind, out.text = text, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = text, n.Value.Value
	case *ast.BoolNode:
		out.kind, out.text = boolean, n.Token.Value
	case *ast.IntegerNode:
		out.kind, out.text = integer, n.Token.Value
	case *ast.FloatNode:
		out.kind, out.text = number, n.Token.Value
	case *ast.SequenceNode:
		b.list(out, n)
	case *ast.MappingNode:
		b.mapping(out, n.Values)
	case *ast.MappingValueNode:
		b.mapping(out, []*ast.MappingValueNode{n})
	case *ast.AnchorNode:
		return b.anchor(n, at)
	case *ast.AliasNode:
		return b.alias(n, at)
	default:
		out.kind = noted
		b.add(at, "write plain text, numbers, lists and mappings", "this kind of YAML value is not used here")
	}
	return out
}

// count spends n nodes of what a file may hold.
func (b *builder) count(n int, at place) {
	if b.nodes += n; b.nodes > maxNodes && !b.stopped {
		b.stopped = true
		b.add(at, "write less, or fewer aliases", "the file holds more than %d values once its aliases are followed", maxNodes)
	}
}

func (b *builder) list(out *node, n *ast.SequenceNode) {
	out.kind = list
	for _, v := range n.Values {
		item := b.build(v, out.at)
		out.items = append(out.items, item)
		out.size += item.size
	}
}

func (b *builder) mapping(out *node, values []*ast.MappingValueNode) {
	out.kind = mapping
	seen := make(map[string]place)
	var merged []field
	for _, v := range values {
		at := placeOf(v.Key)
		value := b.build(v.Value, at)
		out.size += value.size
		if v.Key.IsMergeKey() {
			merged = append(merged, b.merge(value)...)
			continue
		}
		name, ok := keyText(v.Key)
		first, twice := seen[name]
		switch {
		case !ok:
			b.add(at, "write name: value", "the name of this field is not plain text")
		case twice:
			b.add(at, "keep one of them", "the field %s is written twice, first in line %d", shown(name), first.line)
		default:
			seen[name] = at
			out.fields = append(out.fields, field{name, at, value})
		}
	}
	if len(values) > 0 && out.at == placeOf(values[0]) {
		out.at = placeOf(values[0].Key) // of a block the parser names the first colon
	}
	for _, f := range merged {
		if _, own := seen[f.name]; !own {
			seen[f.name] = f.at
			out.fields = append(out.fields, f)
		}
	}
}

// merge is what <<: brings into a mapping.
func (b *builder) merge(n *node) []field {
	var out []field
	switch n.kind {
	case mapping:
		return n.fields
	case list:
		for _, item := range n.items {
			out = append(out, b.merge(item)...)
		}
	case noted:
	default:
		b.add(n.at, "write <<: *name of an anchor that holds fields", "<< merges mappings, and this is %s", n.kind)
	}
	return out
}

func (b *builder) anchor(n *ast.AnchorNode, at place) *node {
	value := b.build(n.Value, at)
	if n.Name != nil {
		b.anchors[nodeText(n.Name)] = value
	}
	return value
}

func (b *builder) alias(n *ast.AliasNode, at place) *node {
	if value, ok := b.anchors[nodeText(n.Value)]; ok {
		if b.count(value.size, at); b.stopped {
			return &node{kind: noted, at: at, size: 1}
		}
		return value
	}
	b.add(at, "put &name before the value that is meant, above this line, or quote a text that begins with *", "no anchor of this name comes before this alias")
	return &node{kind: noted, at: at, size: 1}
}

// keyText is a key as written.
func keyText(n ast.Node) (string, bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return nodeText(n), true
	}
	return "", false
}

func nodeText(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	if t := n.GetToken(); t != nil {
		return strings.TrimSpace(t.Value)
	}
	return ""
}

func placeOf(n ast.Node) place {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return place{max(1, t.Position.Line), max(1, t.Position.Column)}
	}
	return place{1, 1}
}
