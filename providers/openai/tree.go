package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// The functions here take JSON that json.Valid has approved.

// members calls f with the members of an object, in order. A key with escapes
// is decoded. Of anything but an object it calls nothing.
func members(b []byte, f func(key string, value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return nil
	}
	for i = skipSpace(b, i+1); b[i] != '}'; i = skipSpace(b, i) {
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		end := skipValue(b, i)
		key := text(b[i:end])
		i = skipSpace(b, end)
		i = skipSpace(b, i+1) // the colon
		end = skipValue(b, i)
		if err := f(key, b[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// elements calls f with the elements of an array, in order. Of anything but an
// array it calls nothing.
func elements(b []byte, f func(value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return nil
	}
	for i = skipSpace(b, i+1); b[i] != ']'; i = skipSpace(b, i) {
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		end := skipValue(b, i)
		if err := f(b[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue is where the value that starts at i ends.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if i++; depth == 0 {
				return i
			}
		}
	}
	for i < len(b) && strings.IndexByte(",]} \n\t\r", b[i]) < 0 {
		i++
	}
	return i
}

// text is what a JSON string says; nothing for other values.
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	var s string
	_ = json.Unmarshal(raw, &s) // raw is valid
	return s
}

// node is a JSON value that grows as its pieces come in. Scalars and strings
// keep the bytes they came in.
type node struct {
	kind byte // one of " { [ or 0 for numbers and words
	raw  []byte
	keys []string // of an object, written as they came
	kids []*node
}

// nodeSize is about how many bytes of memory a node takes beside its text.
const nodeSize = 128

// values counts the values in a JSON value, itself and the keys of objects included.
func values(b []byte) int {
	count := 1
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case ',', ':', '[', '{':
			count++
		}
	}
	return count
}

func grow(raw []byte) *node {
	n := &node{}
	switch raw[0] {
	case '"':
		n.kind, n.raw = '"', append(n.raw, raw[1:len(raw)-1]...)
	case '{':
		n.kind = '{'
		_ = members(raw, func(key string, value []byte) error {
			n.keys, n.kids = append(n.keys, key), append(n.kids, grow(value))
			return nil
		})
	case '[':
		n.kind = '['
		_ = elements(raw, func(value []byte) error {
			n.kids = append(n.kids, grow(value))
			return nil
		})
	default:
		n.raw = append(n.raw, raw...)
	}
	return n
}

// put merges value into the member key of the object n.
func (n *node) put(key string, value []byte) {
	n.mergeMember(key, grow(value))
}

// set replaces the member key of the object n.
func (n *node) set(key string, value []byte) {
	for i, k := range n.keys {
		if k == key {
			n.kids[i] = grow(value)
			return
		}
	}
	n.put(key, value)
}

// named are the members whose pieces repeat rather than continue.
var named = map[string]bool{"type": true, "id": true, "index": true, "format": true, "role": true, "name": true, "object": true, "model": true}

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
	for i, k := range n.keys {
		if k == key {
			n.kids[i] = n.kids[i].merge(key, m)
			return
		}
	}
	n.keys, n.kids = append(n.keys, key), append(n.kids, m)
}

func (n *node) mergeElement(m *node) {
	index := m.member("index")
	if index != nil && index.kind == 0 && string(index.raw) != "null" {
		for i, kid := range n.kids {
			if at := kid.member("index"); at != nil && bytes.Equal(at.raw, index.raw) {
				n.kids[i] = kid.merge("", m)
				return
			}
		}
	}
	n.kids = append(n.kids, m)
}

func (n *node) member(key string) *node {
	for i, k := range n.keys {
		if k == key {
			return n.kids[i]
		}
	}
	return nil
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
			b = n.kids[i].append(append(appendString(b, k), ':'))
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

// appendString writes s as a JSON string.
func appendString(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // strings always marshal
	return append(b, quoted...)
}
