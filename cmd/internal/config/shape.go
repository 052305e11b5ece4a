package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kinds is a set of kinds of JSON values.
type kinds uint8

const (
	aNumber kinds = 1 << iota
	aText
	aBool
	aNil
	aList
	aMapping
	anyKind = 1<<iota - 1
)

// kindNames are what a person would call the kinds, in their order.
var kindNames = []string{"a number", "a text", "true or false", "nil", "a list", "a mapping"}

// kindOf returns the kind of a text, float64, boolean, nil, or else of a node.
func kindOf(v any) kinds {
	switch v.(type) {
	case string:
		return aText
	case bool:
		return aBool
	case nil:
		return aNil
	case float64:
		return aNumber
	}
	return aList | aMapping
}

// rule is what a schema by itself says of a value: its kinds and, if values are listed, that
// it is one of these.
type rule struct {
	kinds  kinds
	values []any
	schema *node // of its fields and entries; nil if unknown
}

// alternative is one way in which a value may fit: by all of some rules.
type alternative []rule

func (a alternative) allows(v any) bool {
	return !slices.ContainsFunc(a, func(r rule) bool {
		return r.kinds&kindOf(v) == 0 || r.values != nil && !slices.Contains(r.values, v)
	})
}

func (a alternative) kinds() kinds {
	all := kinds(anyKind)
	for _, r := range a {
		all &= r.kinds
	}
	return all
}

// shape is what is known of a value: it fits one of the alternatives. It may allow more than
// can come, and never less, so that what it rules out is certain. Empty, nothing is known: what
// a value that never comes is compared with does not matter.
type shape []alternative

// exactly returns the shape of one value.
func exactly(v any) shape { return shape{{{kinds: kindOf(v), values: []any{v}}}} }

// join returns the shape of a value that has one of two shapes.
func join(a, b shape) shape {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	return slices.Concat(a, b)
}

func (s shape) kinds() (all kinds) {
	for _, a := range s {
		all |= a.kinds()
	}
	return cmp.Or(all, anyKind)
}

func (s shape) allows(v any) bool {
	return len(s) == 0 || slices.ContainsFunc(s, func(a alternative) bool { return a.allows(v) })
}

// maxShown is how many values of a shape are shown.
const maxShown = 12

// String returns the values and other kinds as a person would call them.
func (s shape) String() string {
	var words []string
	var others kinds
	for _, a := range s {
		unlisted := a.kinds()
		for _, r := range a {
			for _, v := range r.values {
				if word := written(v); len(words) <= maxShown && kindOf(v)&(aList|aMapping) == 0 && a.allows(v) && !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
			if r.values != nil {
				unlisted &= aList | aMapping
			}
		}
		others |= unlisted
	}
	if len(words) > maxShown {
		words = append(words[:maxShown], "others that are listed")
	}
	for i, name := range kindNames {
		if others&(1<<i) != 0 {
			words = append(words, name)
		}
	}
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return strings.Join(words, "")
}

// written returns a text, number, boolean or nil as it may be shown.
func written(v any) string {
	switch v := v.(type) {
	case string:
		return shown(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case nil:
		return "nil"
	}
	return fmt.Sprint(v)
}
