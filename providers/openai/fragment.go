package openai

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/internal/wire"
)

// fragment is a piece of a call. Servers differ in how they say which call it
// belongs to: by an index, by an id in the first or in every piece, or by
// order alone.
type fragment struct {
	index          int // -1: none
	id, name, form string
	arguments      []byte
}

// maxName is more bytes than the name of a tool or an id of a call may have.
const maxName = 4 << 10

// maxParts is more calls than an answer may have.
const maxParts = 10_000

// fragment takes in one element of tool_calls.
func (a *answer) fragment(raw []byte) error {
	f := fragment{index: -1}
	_ = wire.Members(raw, func(key, value []byte) error {
		switch string(key) {
		case "index":
			if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 {
				f.index = n
			}
		case "id":
			if f.id = wire.Text(value); f.id == "null" { // Mistral
				f.id = ""
			}
		case "type":
			if f.form = wire.Text(value); f.form == "function" {
				f.form = ""
			}
		case "function":
			_ = wire.Members(value, f.member)
		}
		return nil
	})
	if len(f.id)+len(f.name)+len(f.form) > maxName {
		return wire.BadAnswer(fmt.Sprintf("a tool call has a name, an id or a type of more than %d bytes", maxName))
	}
	if len(a.parts) >= maxParts {
		return wire.BadAnswer(fmt.Sprintf("the answer has %d tool calls or more", maxParts))
	}
	known := len(a.parts)
	p, size := a.callOf(f), len(f.arguments)
	if len(a.parts) > known {
		size += wire.PartSize + len(f.form)
	}
	if f.id != "" && f.id != p.id {
		size += len(f.id)
		p.id = f.id
		a.byID = put(a.byID, f.id, p)
	}
	if f.name != p.name {
		size += len(f.name)
	}
	if err := a.keep(size); err != nil {
		return err
	}
	if f.form != "" {
		p.form = f.form
	}
	if f.name != "" {
		a.named = p
	}
	if f.name != p.name {
		if p.name += f.name; len(p.name) > maxName {
			return wire.BadAnswer(fmt.Sprintf("a tool call has a name of more than %d bytes", maxName))
		}
	}
	p.text = append(p.text, f.arguments...)
	p.read.goOn(p.text)
	return a.keepOthers(p, raw)
}

func (f *fragment) member(key, value []byte) error {
	switch string(key) {
	case "name":
		f.name = wire.Text(value)
	case "arguments":
		f.arguments = wire.Unquoted(value)
		if value[0] == '{' {
			f.arguments = value // a server that writes the object itself
		}
	}
	return nil
}

// keepOthers keeps the members of a fragment that nothing else covers.
func (a *answer) keepOthers(p *part, raw []byte) error {
	keep := func(key, value []byte) error {
		if err := a.keepMember(key, value); err != nil {
			return err
		}
		p.rest.put(string(key), value)
		return nil
	}
	return wire.Members(raw, func(key, value []byte) error {
		switch string(key) {
		case "index", "id", "type":
		case "function":
			return wire.Members(value, func(inner, value []byte) error {
				if s := string(inner); s != "name" && s != "arguments" && !wire.Null(value) {
					piece := append(append(append([]byte("{"), wire.AppendString(nil, s)...), ':'), value...)
					return keep(key, append(piece, '}'))
				}
				return nil
			})
		default:
			if !wire.Null(value) {
				return keep(key, value)
			}
		}
		return nil
	})
}

// callOf finds the call that f continues, or begins one.
func (a *answer) callOf(f fragment) *part {
	var byID, byIndex *part
	if f.id != "" {
		byID = a.byID[f.id]
	}
	if f.index >= 0 {
		byIndex = a.byIndex[f.index]
	}
	p := a.last
	switch {
	case byIndex != nil && (f.id == "" || byIndex.id == "" || byIndex.id == f.id):
		p = byIndex
	case byID != nil && (f.index < 0 || f.name == ""):
		p = byID
	case f.index >= 0 || f.id != "":
		p = nil
	}
	if p == nil || f.begins(p) || f.id == "" && f.name != "" && p == a.named && len(p.text) == 0 {
		p = &part{kind: messages.ItemCall, index: f.index, rest: node{kind: '{'}}
		a.parts, a.last = append(a.parts, p), p
		if f.index >= 0 {
			a.byIndex = put(a.byIndex, f.index, p)
		}
	}
	return p
}

// put adds to a map that may be nil.
func put[K comparable](m map[K]*part, k K, p *part) map[K]*part {
	if m == nil {
		m = make(map[K]*part)
	}
	m[k] = p
	return m
}

// begins reports whether f, which has no id, is another call than p, as only the
// completeness of p shows.
func (f *fragment) begins(p *part) bool {
	return f.id == "" && f.name != "" && p.name != "" && p.read.whole && !p.read.broken
}

// reading follows arguments that come in pieces, so that those of a server that repeats the name
// in each piece are checked once and not with each.
type reading struct {
	at, depth       int // the bytes read; the braces that are open
	quoted, escaped bool
	whole, broken   bool // one JSON object has ended; something else stands in its place or behind it
}

// goOn reads what has been added to the arguments.
func (r *reading) goOn(arguments []byte) {
	for ; r.at < len(arguments) && !r.broken; r.at++ {
		switch c := arguments[r.at]; {
		case r.whole:
			r.broken = len(bytes.TrimSpace(arguments[r.at:r.at+1])) > 0
		case r.escaped:
			r.escaped = false
		case r.quoted:
			r.escaped, r.quoted = c == '\\', c != '"'
		case c == '"':
			r.quoted = true
		case c == '{':
			r.depth++
		case c == '}':
			if r.depth--; r.depth == 0 {
				r.whole = wire.Complete(arguments[:r.at+1])
				r.broken = !r.whole
			}
		}
	}
}
