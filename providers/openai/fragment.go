package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/memory"
)

// fragment is a piece of a call. Servers differ in how they say which call it
// belongs to: by an index, by an id in the first or in every piece, or by
// order alone.
type fragment struct {
	index          int // -1: none
	id, name, form string
	arguments      []byte
}

// maxParts is more calls than an answer may have. Each piece is compared with all of them.
const maxParts = 10_000

// partSize is what a call takes beside its texts, as bytes of payload.
const partSize = 256 / memory.Weight

// fragment takes in one element of tool_calls.
func (a *answer) fragment(raw []byte) error {
	f := fragment{index: -1}
	_ = members(raw, func(key string, value []byte) error {
		switch key {
		case "index":
			if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 {
				f.index = n
			}
		case "id":
			f.id = text(value)
		case "type":
			if f.form = text(value); f.form == "function" {
				f.form = ""
			}
		case "function":
			_ = members(value, f.member)
		}
		return nil
	})
	if len(a.parts) >= maxParts {
		return badAnswer(fmt.Sprintf("the answer has %d tool calls or more", maxParts))
	}
	p, size := a.callOf(f), len(f.arguments)
	if p.id == "" && p.name == "" && len(p.text) == 0 {
		size += partSize
	}
	if err := a.keep(size); err != nil {
		return err
	}
	if f.id != "" {
		p.id = f.id
	}
	if f.form != "" {
		p.form = f.form
	}
	if f.name != p.name {
		p.name += f.name
	}
	p.text = append(p.text, f.arguments...)
	return a.keepOthers(p, raw)
}

func (f *fragment) member(key string, value []byte) error {
	switch {
	case key == "name":
		f.name = text(value)
	case key == "arguments" && value[0] == '{':
		f.arguments = value // a server that writes the object itself
	case key == "arguments":
		f.arguments = []byte(text(value))
	}
	return nil
}

// keepOthers keeps the members of a fragment that nothing else covers.
func (a *answer) keepOthers(p *part, raw []byte) error {
	keep := func(key string, value []byte) error {
		if err := a.keepRest(value); err != nil {
			return err
		}
		p.rest.put(key, value)
		return nil
	}
	return members(raw, func(key string, value []byte) error {
		switch key {
		case "index", "id", "type":
		case "function":
			return members(value, func(inner string, value []byte) error {
				if inner != "name" && inner != "arguments" && !null(value) {
					piece := append(append(append([]byte("{"), appendString(nil, inner)...), ':'), value...)
					return keep(key, append(piece, '}'))
				}
				return nil
			})
		default:
			if !null(value) {
				return keep(key, value)
			}
		}
		return nil
	})
}

// callOf finds the call that f continues, or begins one.
func (a *answer) callOf(f fragment) *part {
	var last, byID, byIndex *part
	for _, p := range a.parts {
		if p.kind != messages.ItemCall {
			continue
		}
		last = p
		if f.id != "" && p.id == f.id {
			byID = p
		}
		if f.index >= 0 && p.index == f.index {
			byIndex = p // the newest that has the index
		}
	}
	p := last
	switch {
	case byIndex != nil && (f.id == "" || byIndex.id == "" || byIndex.id == f.id):
		p = byIndex
	case byID != nil && (f.index < 0 || f.name == ""):
		p = byID
	case f.index >= 0 || f.id != "":
		p = nil
	}
	if p == nil || f.begins(p) {
		p = &part{kind: messages.ItemCall, index: f.index, rest: node{kind: '{'}}
		a.parts = append(a.parts, p)
	}
	return p
}

// begins tells whether f, which names no id, is another call than p although
// nothing but p's completeness says so.
func (f *fragment) begins(p *part) bool {
	return f.id == "" && f.name != "" && p.name != "" && complete(p.text)
}

// complete tells whether arguments may be over: they are one JSON object.
func complete(arguments []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(arguments), []byte("{")) && json.Valid(arguments)
}
