package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// value is a text as the argument's type.
func (p property) value(s string) (any, bool) {
	bare := strings.Trim(gap.ReplaceAllString(s, " "), "\"'“”")
	if len(p.enum) > 0 {
		i := slices.IndexFunc(p.enum, func(e any) bool { return strings.EqualFold(fmt.Sprint(e), bare) })
		if i < 0 {
			return nil, false
		}
		return p.enum[i], true
	}
	switch p.kind {
	case "string", "":
		return bare, true
	case "boolean":
		b, err := strconv.ParseBool(strings.NewReplacer("yes", "true", "no", "false").Replace(strings.ToLower(bare)))
		return b, err == nil
	case "number", "integer":
		n := json.Number(strings.ReplaceAll(bare, ",", ""))
		f, err := n.Float64()
		return plainNumber(n), err == nil && (p.kind == "number" || f == float64(int64(f)) && !strings.Contains(n.String(), "."))
	case "array":
		return []any{bare}, p.items == "string" || p.items == ""
	}
	return nil, false
}

// plainNumber is a number as JSON has it, without zeros before it.
func plainNumber(n json.Number) json.Number {
	sign, s := "", n.String()
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	s = strings.TrimLeft(s, "0")
	if s == "" || s[0] == '.' {
		s = "0" + s
	}
	return json.Number(sign + s)
}

// objectIn is the first JSON object in a text, as it is written there. It
// begins at one of the first twenty braces.
func objectIn(text string) (string, bool) {
	at := 0
	for range 20 {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		at += i
		d := json.NewDecoder(strings.NewReader(text[at:]))
		var object map[string]any
		if d.Decode(&object) == nil {
			return text[at : at+int(d.InputOffset())], true
		}
		at++
	}
	return "", false
}

// json writes the values in the order of the schema.
func (f *filler) json() string {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, p := range f.kit.properties {
		v, ok := f.values[p.name]
		if !ok {
			continue
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			continue // a string always has a form
		}
		value, err := json.Marshal(v)
		if err != nil {
			continue // such as a number that is none in JSON
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.String()
}
