package providertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// values are what the placeholders of a form stand for.
type values map[string]any

var placeholder = regexp.MustCompile(`\{[a-z_]+!?\}`)

// fill returns form with its placeholders replaced. A string that is nothing
// but a placeholder becomes the value itself. Without a value the member or
// entry is left out, and with it what this leaves empty; after "!" the whole
// object is. Reports whether something is left.
func fill(form any, v values) (any, bool) {
	switch form := form.(type) {
	case string:
		return fillString(form, v)
	case map[string]any:
		return fillObject(form, v)
	case []any:
		list := make([]any, 0, len(form))
		for _, entry := range form {
			if filled, ok := fill(entry, v); ok {
				list = append(list, filled)
			}
		}
		return list, len(list) > 0 || len(form) == 0
	}
	return form, true
}

func fillObject(form map[string]any, v values) (any, bool) {
	object := make(map[string]any, len(form))
	for name, member := range form {
		filled, ok := fill(member, v)
		if s, is := member.(string); is && !ok && strings.HasSuffix(s, "!}") {
			return nil, false
		}
		if ok {
			object[name] = filled
		}
	}
	return object, len(object) > 0 || len(form) == 0
}

func fillString(form string, v values) (any, bool) {
	if placeholder.FindString(form) == form && form != "" {
		value, ok := v[strings.Trim(form, "{!}")]
		return value, ok
	}
	return placeholder.ReplaceAllStringFunc(form, func(p string) string {
		if value, ok := v[strings.Trim(p, "{!}")]; ok {
			return fmt.Sprint(value)
		}
		return p
	}), true
}

// encode returns v as JSON. Forms and what fills them always marshal.
func encode(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// plus returns v with more, which goes before.
func (v values) plus(more values) values {
	sum := make(values, len(v)+len(more))
	maps.Copy(sum, v)
	maps.Copy(sum, more)
	return sum
}
