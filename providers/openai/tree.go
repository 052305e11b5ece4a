package openai

import (
	"bytes"

	"github.com/reprise-dev/reprise/providers/internal/wire"
)

// node is a JSON value that grows as its pieces come in. Scalars and strings
// keep the bytes they came in.
type node struct {
	kind byte // one of " { [ or 0 for numbers and words
	raw  []byte
	keys []string // of an object
	kids []*node
	at   map[string]int // where the kid of a label is; nil while there are few
}

// nodeSize is about how many bytes of memory a node takes beside its text.
const nodeSize = 160

// few kids are compared one by one.
const few = 8

// values counts the values in a JSON value, itself and the keys of objects included, and the
// levels at which they nest.
func values(b []byte) (count, depth int) {
	count = 1
	for i, level := 0, 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = wire.SkipString(b, i) - 1
		case ',', ':':
			count++
		case '[', '{':
			count++
			level++
			depth = max(depth, level)
		case ']', '}':
			level--
		}
	}
	return count, depth
}

func grow(raw []byte) *node {
	n := &node{}
	switch raw[0] {
	case '"':
		n.kind, n.raw = '"', append(n.raw, raw[1:len(raw)-1]...)
	case '{':
		n.kind = '{'
		_ = wire.Members(raw, func(key, value []byte) error {
			n.add(string(key), grow(value))
			return nil
		})
	case '[':
		n.kind = '['
		_ = wire.Elements(raw, func(value []byte) error {
			n.add("", grow(value))
			return nil
		})
	default:
		n.raw = append(n.raw, raw...)
	}
	return n
}

// add puts kid last. The key is that of a member; an element has none.
func (n *node) add(key string, kid *node) {
	if n.kind == '{' {
		n.keys = append(n.keys, key)
	}
	n.kids = append(n.kids, kid)
	if n.at != nil {
		n.note(len(n.kids) - 1)
	}
}

// note remembers where the newest kid of a label is.
func (n *node) note(i int) {
	if label := n.label(i); n.kind == '{' || label != "" {
		n.at[label] = i
	}
}

// label is what a kid is found by: the key of a member, the index and type of an element.
func (n *node) label(i int) string {
	if n.kind == '{' {
		return n.keys[i]
	}
	return n.kids[i].place()
}

// place returns the members index and type of an element, or "" if it has no index.
// Elements of different types at one index are different ones (OpenRouter).
func (n *node) place() string {
	if n.kind != '{' {
		return ""
	}
	i := n.find("index")
	if i < 0 || n.kids[i].kind != 0 || string(n.kids[i].raw) == "null" {
		return ""
	}
	place := string(n.kids[i].raw)
	if i = n.find("type"); i >= 0 {
		place += " " + string(n.kids[i].raw)
	}
	return place
}

// find returns where the newest kid with the label is, or -1.
func (n *node) find(label string) int {
	if len(n.kids) <= few {
		for i := len(n.kids) - 1; i >= 0; i-- {
			if n.label(i) == label {
				return i
			}
		}
		return -1
	}
	if n.at == nil {
		n.at = make(map[string]int, 2*len(n.kids))
		for i := range n.kids {
			n.note(i)
		}
	}
	if i, ok := n.at[label]; ok {
		return i
	}
	return -1
}

// put merges value into the member key of the object n.
func (n *node) put(key string, value []byte) { n.mergeMember(key, grow(value)) }

// is reports whether the member key of the object n is a string, number or word, as it is given.
func (n *node) is(key string, value []byte) bool {
	i := n.find(key)
	if i < 0 {
		return false
	}
	switch n.kids[i].kind {
	case '"':
		return value[0] == '"' && bytes.Equal(n.kids[i].raw, value[1:len(value)-1])
	case 0:
		return bytes.Equal(n.kids[i].raw, value)
	}
	return false
}

// set replaces the member key of the object n.
func (n *node) set(key string, value []byte) {
	if i := n.find(key); i >= 0 {
		n.kids[i] = grow(value)
		return
	}
	n.add(key, grow(value))
}

// named are the members whose pieces repeat rather than continue.
var named = map[string]bool{"type": true, "id": true, "index": true, "format": true, "role": true, "name": true, "object": true, "model": true, "thought_signature": true}

// merge joins the next piece m to n: strings continue, arrays get longer or
// continue at an index, objects merge, and anything else is replaced.
func (n *node) merge(key string, m *node) *node {
	switch {
	case m.kind == 0 && string(m.raw) == "null":
		return n
	case n.kind != m.kind || n.kind == 0 || named[key]:
		return m
	case n.kind == '"':
		n.raw = append(n.raw, m.raw...)
	case n.kind == '{':
		for i, k := range m.keys {
			n.mergeMember(k, m.kids[i])
		}
	case n.kind == '[':
		for _, kid := range m.kids {
			n.mergeElement(kid)
		}
	}
	return n
}

func (n *node) mergeMember(key string, m *node) {
	if i := n.find(key); i >= 0 {
		n.kids[i] = n.kids[i].merge(key, m)
		return
	}
	n.add(key, m)
}

func (n *node) mergeElement(m *node) {
	if place := m.place(); place != "" {
		if i := n.find(place); i >= 0 && !n.kids[i].differs(m) {
			n.kids[i] = n.kids[i].merge("", m)
			return
		}
	}
	n.add("", m)
}

// differs reports whether two elements have ids that are not the same.
func (n *node) differs(m *node) bool {
	i, k := n.find("id"), m.find("id")
	return i >= 0 && k >= 0 && n.kids[i].kind == '"' && m.kids[k].kind == '"' && !bytes.Equal(n.kids[i].raw, m.kids[k].raw)
}

// append writes n as compact JSON.
func (n *node) append(b []byte) []byte {
	switch n.kind {
	case '"':
		b = append(b, '"')
		b = append(b, n.raw...)
		return append(b, '"')
	case '{':
		b = append(b, '{')
		for i, k := range n.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = n.kids[i].append(append(wire.AppendString(b, k), ':'))
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		for i, kid := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = kid.append(b)
		}
		return append(b, ']')
	}
	return append(b, n.raw...)
}
