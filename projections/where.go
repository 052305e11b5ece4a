package projections

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EffectFilter chooses calls of tools. Empty fields choose all.
type EffectFilter struct {
	Tool    string
	Outcome Outcome
	// Since and Until bound when a call was asked for: from Since on, before Until.
	Since, Until time.Time
	// Where are values that the arguments must hold, by their paths, all of them:
	// see Leaves.
	Where map[string]string
	// Repeated chooses calls with Repeats.
	Repeated bool
}

// Admits reports whether the filter chooses c.
func (f EffectFilter) Admits(c *Effect) bool {
	if f.Tool != "" && f.Tool != c.Tool || f.Outcome != "" && f.Outcome != c.Outcome || f.Repeated && c.Repeats == 0 ||
		!f.Since.IsZero() && c.At.Before(f.Since) || !f.Until.IsZero() && !c.At.Before(f.Until) {
		return false
	}
	if len(f.Where) == 0 {
		return true
	}
	leaves := Leaves(c.Arguments)
	for path, value := range f.Where {
		if !strings.Contains(leaves, Leaf(path, value)) {
			return false
		}
	}
	return true
}

// The bounds of what is found in arguments.
const (
	maxLeaf   = 1 << 10  // bytes of a path and its value
	maxLeaves = 64 << 10 // bytes of all
)

// Leaves returns the values in a JSON text that are neither objects nor arrays, one a line: a
// path of names and of indexes from 0, with dots between, and the value without quotes. [Leaf]
// is the line to search for. Values longer than a kilobyte, and what exceeds 64 KiB, are left
// out; a text that is no JSON has none.
func Leaves(text string) string {
	v, ok := decodeJSON([]byte(text))
	if !ok {
		return ""
	}
	l := leaves{text: []byte("\n")}
	l.walk(nil, v)
	return string(l.text)
}

// Leaf returns the line of a value in [Leaves].
func Leaf(path, value string) string {
	return "\n" + pathEscapes.Replace(path) + "=" + lineEscapes.Replace(value) + "\n"
}

var (
	pathEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "=", `\=`)
	lineEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

type leaves struct{ text []byte }

func (l *leaves) walk(path []byte, v any) {
	if len(l.text) > maxLeaves || len(path) > maxLeaf {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			l.walk(below(path, pathEscapes.Replace(name)), v[name])
		}
	case []any:
		for i, element := range v {
			l.walk(below(path, strconv.Itoa(i)), element)
		}
	case string:
		l.leaf(path, lineEscapes.Replace(v))
	default: // a number, true, false or null, as it was written
		l.leaf(path, string(encodeJSON(v)))
	}
}

// below returns path with a name behind it. It shares no memory that another name could be
// written to.
func below(path []byte, name string) []byte {
	if len(path) == 0 {
		return []byte(name)
	}
	return append(append(slices.Clip(path), '.'), name...)
}

func (l *leaves) leaf(path []byte, value string) {
	if size := len(path) + len(value) + 2; size <= maxLeaf && len(l.text)+size <= maxLeaves {
		l.text = append(append(append(append(l.text, path...), '='), value...), '\n')
	}
}
