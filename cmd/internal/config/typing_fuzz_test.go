package config

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/providers/tool"
)

// FuzzTyping holds that an expression is no mistake if it is true of arguments that fit the
// schema, whatever that is: nothing is refused that can come true.
func FuzzTyping(f *testing.F) {
	for seed := range uint64(80) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := maker{rand.New(rand.NewPCG(seed, 1))}
		raw, schema := resolved(t, g.parameters())
		parameters := parseYAML(&collector{}, raw)
		for range 40 {
			args := map[string]any{"a": g.value(2), "b": g.value(2)}
			encoded, _ := json.Marshal(args)
			if tool.Validate(schema, encoded) != nil {
				continue
			}
			for _, expression := range g.expressions(args) {
				if !holds(expression, encoded) {
					continue
				}
				if _, found := compile(expression, argumentsOf("t", parameters)); found != nil {
					t.Errorf("%s is true of %s, which fits %s: %v", expression, encoded, raw, found)
				}
			}
		}
	})
}

// holds reports whether an expression is true of arguments. Those that are mistakes whatever
// the schema are not.
func holds(expression string, args json.RawMessage) bool {
	p, found := compile(expression, arguments{})
	if found != nil {
		return false
	}
	holds, err := p.needsApproval(args)
	return err == nil && holds
}

func resolved(t *testing.T, schema any) (json.RawMessage, *jsonschema.Resolved) {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return raw, r
}

// maker makes schemas, values and expressions by chance.
type maker struct{ *rand.Rand }

func pick[T any](g maker, of ...T) T { return of[g.IntN(len(of))] }

func (g maker) parameters() map[string]any {
	return map[string]any{
		"type": "object", "required": []string{"a", "b"},
		"properties": map[string]any{"a": g.schema(3), "b": g.schema(3)},
		"$defs": map[string]any{
			"d": g.simple(), "e": map[string]any{pick(g, "anyOf", "oneOf", "allOf"): []any{g.simple(), g.simple()}},
			"f": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/f"}, "b": g.simple()}},
		},
	}
}

func (g maker) schema(depth int) map[string]any {
	if depth == 0 || g.IntN(3) == 0 {
		return g.simple()
	}
	depth--
	switch g.IntN(9) {
	case 0:
		return map[string]any{"$ref": "#/$defs/" + pick(g, "d", "e", "f"), pick(g, "title", "pattern"): "x"}
	case 1, 2:
		return map[string]any{pick(g, "anyOf", "oneOf", "allOf"): []any{g.schema(depth), g.schema(depth)}}
	case 3:
		return map[string]any{"allOf": []any{g.schema(depth)}, "type": pick(g, "string", "integer", "number", "object"), "nullable": true}
	case 4:
		return map[string]any{"type": "array", pick(g, "items", "contains"): g.schema(depth)}
	case 5:
		return map[string]any{"if": g.schema(depth), "then": g.schema(depth), "not": g.simple()}
	}
	o := map[string]any{"type": "object", "properties": map[string]any{"a": g.schema(depth), "b": g.schema(depth)}}
	if more := g.IntN(4); more < 3 {
		o["additionalProperties"] = []any{true, false, map[string]any{"type": "integer"}}[more]
	}
	return o
}

// simple makes a schema without others in it.
func (g maker) simple() map[string]any {
	switch g.IntN(5) {
	case 0:
		return map[string]any{"enum": []any{g.scalar(), g.scalar(), g.value(1)}}
	case 1:
		return map[string]any{"const": g.value(1)}
	case 2:
		return map[string]any{"type": []string{pick(g, "string", "integer"), pick(g, "null", "number", "boolean", "array")}}
	case 3:
		return map[string]any{}
	}
	return map[string]any{"type": pick(g, "string", "integer", "number", "boolean", "null", "object", "array")}
}

func (g maker) scalar() any {
	return pick[any](g, "x", "y", "xy", "1", "true", 0.0, 1.0, 2.5, -1.0, 1000.0, true, false, nil)
}

func (g maker) value(depth int) any {
	if depth == 0 || g.IntN(2) == 0 {
		return g.scalar()
	}
	if g.IntN(2) == 0 {
		return []any{g.value(depth - 1), g.value(depth - 1)}
	}
	return map[string]any{"a": g.value(depth - 1), "b": g.value(depth - 1)}
}

// expressions makes expressions of which many are true of the arguments.
func (g maker) expressions(args map[string]any) (list []string) {
	path, v := g.walk("args.a", args["a"])
	other, _ := g.walk("args.b", args["b"])
	fill := strings.NewReplacer("P", path, "O", other, "L", g.literal(v))
	for _, form := range []string{
		"P == L", "L == P", "not (P != L)", "P in [L]", "P in [L, P]", "P == O", "(P ?? L) == L", "(O ?? P) == P", "(true ? P : O) == L",
		"P startsWith L", "P contains O", "P matches 'x'", "lower(P) == L", "P + O == P + O", "P <= L", "P < O", "-P <= 1", "-P > 1",
		"any(P, # in P)", "any(P, # == O)", "O in P", "'a' in P", "len(P) > 0", "P ? P : true", "P[0:1] == L",
	} {
		list = append(list, fill.Replace(form))
	}
	return list
}

// walk goes some way into a value.
func (g maker) walk(path string, v any) (string, any) {
	if g.IntN(3) == 0 {
		return path, v
	}
	switch v := v.(type) {
	case []any:
		return g.walk(path+"[0]", v[0])
	case map[string]any:
		name := pick(g, "a", "b")
		return g.walk(path+pick(g, ".", "?.")+name, v[name])
	}
	return path, v
}

// literal writes a value as an expression does, in one of several ways.
func (g maker) literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, pick[byte](g, 'f', 'e', 'g'), -1, 64)
	case nil:
		return "nil"
	case []any:
		return "[" + g.literal(v[0]) + ", " + g.literal(v[1]) + "]"
	case bool:
		return strconv.FormatBool(v)
	}
	return "nil" // a mapping has no literal
}
