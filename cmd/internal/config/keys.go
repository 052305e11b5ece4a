package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/providers/profile"
)

// section is a mapping of the file with the keys that it may have. The reader accepts no other
// key, and both the JSON schema and the page of the reference are made of it.
type section struct {
	// title is the heading of the section in the reference.
	title string
	keys  []key
	// bound adds to the schema what holds between keys. Nil: nothing does.
	bound func(*jsonschema.Schema)
}

// key is one key of a section.
type key struct {
	name  string
	value value
	// without is what holds where the key is missing: a default, or required.
	without string
	doc     string
}

// needed in place of a default marks a key that must be written.
const needed = "required"

// value describes what may be written for a key.
type value struct {
	words  string // for the page, in Markdown
	schema func() *jsonschema.Schema
}

// has reports whether the section has a key of that name.
func (s *section) has(name string) bool {
	return slices.ContainsFunc(s.keys, func(k key) bool { return k.name == name })
}

// schema returns the JSON schema of the section.
func (s *section) schema() *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Properties: make(map[string]*jsonschema.Schema), AdditionalProperties: never()}
	for _, k := range s.keys {
		below := k.value.schema()
		below.Description = k.doc
		out.Properties[k.name] = below
		out.PropertyOrder = append(out.PropertyOrder, k.name)
		if k.without == needed {
			out.Required = append(out.Required, k.name)
		}
	}
	if s.bound != nil {
		s.bound(out)
	}
	if s.bound == nil && out.Required == nil {
		out.Type, out.Types = "", []string{"object", "null"}
	}
	return out
}

// never returns the schema that nothing fits.
func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// oneOf requires exactly one of two keys.
func oneOf(one, other string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		s.OneOf = []*jsonschema.Schema{{Required: []string{one}}, {Required: []string{other}}}
	}
}

// notBoth refuses two keys beside one another.
func notBoth(one, other string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{Not: &jsonschema.Schema{Required: []string{one, other}}})
	}
}

// variableText matches a text with a variable, which may stand for a value of any type.
const variableText = `\$\{`

func matching(pattern string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern}
}

func anyOf(of ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: of} }

func enum(words []string) *jsonschema.Schema {
	s := new(jsonschema.Schema)
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// plain is any text. form, in words of the page, may say more.
func plain(form string) value {
	return value{form, func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }}
}

// webAddress is an http or https address, or nothing.
func webAddress() value {
	return value{"an http or https address", func() *jsonschema.Schema { return matching(`^([hH][tT][tT][pP][sS]?://.+)?$|` + variableText) }}
}

// oneWord is one of words.
func oneWord(words ...string) value {
	return value{"`" + strings.Join(words, "`, `") + "`", func() *jsonschema.Schema { return anyOf(enum(words), matching(variableText)) }}
}

func aFlag() value {
	return value{"true or false", func() *jsonschema.Schema {
		return anyOf(&jsonschema.Schema{Type: "boolean"}, matching(variableText))
	}}
}

// wholeTo is a whole number from 1 to most.
func wholeTo(most int64) value {
	return value{"1 to " + grouped(most), func() *jsonschema.Schema {
		low, high := 1.0, float64(most)
		number := &jsonschema.Schema{Type: "integer", Minimum: &low, Maximum: &high}
		return anyOf(number, matching(`^[0-9]+(_[0-9]+)+$|`+variableText)) // 1_000 is text for editors
	}}
}

// decimals is a number from low to high.
func decimals(low, high float64) value {
	return value{fmt.Sprintf("%s to %s", grouped(int64(low)), grouped(int64(high))), func() *jsonschema.Schema {
		return anyOf(&jsonschema.Schema{Type: "number", Minimum: &low, Maximum: &high}, matching(variableText))
	}}
}

// grouped is a number for people: 1,000,000.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

const durationForm = `([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`

func aDuration() value {
	return value{"a duration", func() *jsonschema.Schema { return matching(`^\+?(` + durationForm + `)+$|` + variableText) }}
}

func someDays() value {
	return value{"a duration, or days such as `400d`", func() *jsonschema.Schema {
		return matching(`^\+?(` + durationForm + `)+$|^\+?([0-9]+\.?[0-9]*|\.[0-9]+)d$|` + variableText)
	}}
}

func aModel() value {
	return value{"`provider/model`", modelSchema}
}

func modelSchema() *jsonschema.Schema { return matching(`^[^/]+/.|` + variableText) }

// texts is a list of texts, which may be empty.
func texts(of string) value {
	return value{"a list of " + of, func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"array", "null"}, Items: &jsonschema.Schema{Type: "string"}}
	}}
}

// someTexts is a list of one text or more.
func someTexts(of string) value {
	return value{"a list of " + of, func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}, MinItems: new(1)}
	}}
}

// textsByName is a mapping of names to texts. form is a pattern of the names.
func textsByName(what, form string) value {
	return value{what, func() *jsonschema.Schema {
		s := &jsonschema.Schema{Types: []string{"object", "null"}, AdditionalProperties: &jsonschema.Schema{Type: "string"}}
		if form != "" {
			s.PropertyNames = matching(form)
		}
		return s
	}}
}

// anything is a mapping of any names to any values, but for the names without.
func anything(what string, without []string) value {
	return value{what, func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"object", "null"}, PropertyNames: &jsonschema.Schema{Not: enum(without)}}
	}}
}

// inSection is a mapping that a section describes.
func inSection(s *section) value { return value{s.link(), s.schema} }

// entriesOf is a mapping of names, which match a pattern, to mappings that a section describes.
func entriesOf(what string, s *section, names string) value {
	return value{what + ": " + s.link(), func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"object", "null"}, PropertyNames: matching(names), AdditionalProperties: s.schema()}
	}}
}

// link returns a link to the section on its page.
func (s *section) link() string {
	return "[" + s.title + "](#" + strings.ReplaceAll(strings.ToLower(s.title), " ", "-") + ")"
}

// profileRule is the value of a rule of a provider's profile.
func profileRule(name string) value {
	for _, f := range profile.Fields() {
		if f.Name == name && f.Values != nil {
			words := make([]string, len(f.Values))
			for i, v := range f.Values {
				words[i] = string(v)
			}
			return oneWord(words...)
		}
	}
	return plain("text: a name")
}

// Schema returns the JSON schema of reprise.yaml, in draft 7, which editors know. It refuses
// unknown keys, values of the wrong type or out of range, and unknown words. What only the whole
// file shows, such as the name of a tool that nothing declares, it does not find.
func Schema() *jsonschema.Schema {
	s := fileKeys.schema()
	s.Schema = "http://json-schema.org/draft-07/schema#"
	s.ID = SchemaURL
	s.Title = "reprise.yaml"
	s.Description = "Agents, tools and model providers of Reprise."
	return s
}

// SchemaURL is where the schema of the newest version is published.
const SchemaURL = "https://raw.githubusercontent.com/reprise-dev/reprise/main/docs/reference/reprise.schema.json"
