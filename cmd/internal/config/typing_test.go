package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// withApproval returns a file with one tool and the expression that decides about its calls.
func withApproval(parameters, approval string) []byte {
	return fmt.Appendf(nil, "agents: {a: {model: demo/demo}}\ntools:\n  deploy:\n    command: [x]\n    description: d\n    parameters: %s\n    approval: %q\n", parameters, approval)
}

// problemOf returns the only problem of a file, without its place; empty if there is none.
func problemOf(t *testing.T, file []byte) string {
	t.Helper()
	_, err := Parse("f", file, variables)
	var found Problems
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &found) || len(found) != 1:
		return err.Error()
	}
	return found[0].What + "; " + found[0].Do
}

// deploys are the parameters of most expressions below.
const deploys = `{type: object, properties: {
  env: {type: string, enum: [staging, prod]}, target: {type: string, enum: [west, east]}, name: {type: string}, n: {type: integer},
  ratio: {type: number}, dry: {type: boolean}, level: {enum: [1, 2, high, null]}, only: {const: yes}, size: {type: integer, enum: [10, 20.0, 0]},
  digit: {type: string, enum: ["1", "2"]}, note: {type: [string, "null"]}, code: {type: [integer, "null"]}, any: {},
  tags: {type: array, items: {type: string, enum: [red, green]}}, pair: {type: array, prefixItems: [{type: string}, {type: integer}]},
  order: {type: object, properties: {cents: {type: integer}, by: {type: object}, more: {type: object, properties: {}}}},
  strict: {type: object, properties: {a: {type: string}}, additionalProperties: false},
  lines: {type: array, items: {type: object, properties: {cents: {type: integer}, kind: {enum: [new, old]}}}},
  free: {type: object, properties: {a: {type: string}}, additionalProperties: {type: integer}},
  ref: {$ref: "#/$defs/env"}, old: {$ref: "#/$defs/a~1b"}, tree: {$ref: "#/$defs/tree"},
  maybe: {anyOf: [{$ref: "#/$defs/env"}, {type: "null"}]}, mixed: {oneOf: [{enum: [a, b]}, {type: integer}]},
  both: {allOf: [{type: string}, {enum: [a, 5, b]}], description: d},
  pay: {oneOf: [{type: object, properties: {kind: {const: card}, pan: {type: string}}}, {type: object, properties: {kind: {const: bank}, iban: {type: string}}}]},
  base: {type: object, properties: {a: {type: string}}, allOf: [{properties: {b: {type: integer}}}]}},
  $defs: {env: {enum: [staging, prod]},
    tree: {type: object, properties: {name: {enum: [leaf, root]}, below: {type: array, items: {$ref: "#/$defs/tree"}}}}, a/b: {type: integer}}}`

// TestTypingRefuses holds which expressions are refused, and how, because they give the same
// answer for every call that fits the tool's schema.
func TestTypingRefuses(t *testing.T) { // A40
	for expression, want := range map[string]string{
		`args.env == "production"`:                    `args.env is "staging" or "prod", never "production"; compare it with that, or change the parameters`,
		`"pro" == args.env`:                           `args.env is "staging" or "prod", never "pro"; compare it with that, or change the parameters`,
		`args.env != "Prod"`:                          `args.env is "staging" or "prod", never "Prod"; compare it with that, or change the parameters`,
		`args.env == 5`:                               `args.env is "staging" or "prod", never 5; compare it with that, or change the parameters`,
		`args.env in ["prod", "live"]`:                `args.env is "staging" or "prod", never "live"; compare it with that, or change the parameters`,
		`args.env not in ["live"]`:                    `args.env is "staging" or "prod", never "live"; compare it with that, or change the parameters`,
		`args?.env == "live"`:                         `args?.env is "staging", "prod" or nil, never "live"; compare it with that, or change the parameters`,
		`(args.env ?? "none") == "up"`:                `args.env ?? "none" is "staging", "prod" or "none", never "up"; compare it with that, or change the parameters`,
		`(args.dry ? args.env : args.target) == "up"`: `args.dry ? args.env : args.target is "staging", "prod", "west" or "east", never "up"; compare it with that, or change the parameters`,
		`args.level == 3`:                             `args.level is 1, 2, "high" or nil, never 3; compare it with that, or change the parameters`,
		`args.size == 15`:                             `args.size is 10, 20 or 0, never 15; compare it with that, or change the parameters`,
		`args.size == -10`:                            `args.size is 10, 20 or 0, never -10; compare it with that, or change the parameters`,
		`args.only == "no"`:                           `args.only is "yes", never "no"; compare it with that, or change the parameters`,
		`args.digit == 1`:                             `args.digit is "1" or "2", never 1; compare it with that, or change the parameters`,
		`args.ref == "live"`:                          `args.ref is "staging" or "prod", never "live"; compare it with that, or change the parameters`,
		`args.old == "5"`:                             `args.old is a number, never "5"; compare it with that, or change the parameters`,
		`args.maybe == "live"`:                        `args.maybe is "staging", "prod" or nil, never "live"; compare it with that, or change the parameters`,
		`args.mixed == "other"`:                       `args.mixed is "a", "b" or a number, never "other"; compare it with that, or change the parameters`,
		`args.both == 5`:                              `args.both is "a" or "b", never 5; compare it with that, or change the parameters`,
		`args.pay.kind == "paypal"`:                   `args.pay.kind is "card" or "bank", never "paypal"; compare it with that, or change the parameters`,
		`args.tree.below[0].below[1].name == "stem"`:  `args.tree.below[0].below[1].name is "leaf" or "root", never "stem"; compare it with that, or change the parameters`,
		`"blue" in args.tags`:                         `an entry of args.tags is "red" or "green", never "blue"; compare it with that, or change the parameters`,
		`args.tags[0] == "blue"`:                      `args.tags[0] is "red" or "green", never "blue"; compare it with that, or change the parameters`,
		`any(args.tags, # == "blue")`:                 `# is "red" or "green", never "blue"; compare it with that, or change the parameters`,
		`any(args.lines, .kind == "used")`:            `.kind is "new" or "old", never "used"; compare it with that, or change the parameters`,

		`args.n == "5"`:                       `args.n is a number, never "5"; compare it with that, or change the parameters`,
		`args.n in [1, "1"]`:                  `args.n is a number, never "1"; compare it with that, or change the parameters`,
		`args.dry == "true"`:                  `args.dry is true or false, never "true"; compare it with that, or change the parameters`,
		`args.name == 5`:                      `args.name is a text, never 5; compare it with that, or change the parameters`,
		`args.name == args.n`:                 `args.name == args.n: == does not take a text and a number; use numbers with numbers and texts with texts`,
		`args.name == ["a"]`:                  `args.name == ["a"]: == does not take a text and a list; use numbers with numbers and texts with texts`,
		`args.env > 5`:                        `args.env > 5: > does not take a text and a number; use numbers with numbers and texts with texts`,
		`args.n > "5"`:                        `args.n > "5": > does not take a number and a text; use numbers with numbers and texts with texts`,
		`args.name + args.n == "a1"`:          `args.name + args.n: + does not take a text and a number; use numbers with numbers and texts with texts`,
		`args.dry > 1`:                        `args.dry > 1: > does not take true or false and a number; use numbers with numbers and texts with texts`,
		`args.n && args.dry`:                  `args.n && args.dry: && does not take a number and true or false; use true or false there, such as a comparison`,
		`!args.name`:                          `!args.name: ! does not take a text; use true or false there, such as a comparison`,
		`args.n contains "1"`:                 `args.n contains "1": contains does not take a number and a text; use it with two texts; to look into a list, write: entry in list`,
		`args.tags contains "red"`:            `args.tags contains "red": contains does not take a list and a text; use it with two texts; to look into a list, write: entry in list`,
		`args.n matches "^1"`:                 `this part of the expression: matches does not take a number and a text; use it with two texts; to look into a list, write: entry in list`,
		`args.name - 1 > 5`:                   `args.name - 1: - does not take a text and a number; use numbers with numbers and texts with texts`,
		`any(args.name, # == "a")`:            `args.name: only lists can be searched; give it a list, such as any(args.items, .cents > 5000)`,
		`len(args.n) > 1`:                     `len(args.n): len does not take a number; give it another argument`,
		`"a" in args.name`:                    `"a" in args.name: in does not take a text and a text; put a list or a mapping after it`,
		`args.name.first == "a"`:              `args.name is a text and has no field "first"; use it alone, or change the parameters`,
		`args.n in args.order`:                `args.n in args.order: the fields of a mapping have texts for names; ask for the name of a field`,
		`args.order.cent > 5`:                 `args.order has no field "cent"; did you mean "cents"?`,
		`any(args.lines, .amount > 5)`:        `# has no field "amount"; the fields of # are cents, kind`,
		`args.pay.bic == "x"`:                 `args.pay has no field "bic"; the fields of args.pay are iban, kind, pan`,
		`args.base.c == 1`:                    `args.base has no field "c"; did you mean "a"?`,
		`args.base.b == "x"`:                  `args.base.b is a number, never "x"; compare it with that, or change the parameters`,
		`args.n`:                              `the expression is not true or false; compare it with something, such as args.cents > 5000`,
		`args.env == "prod" && args.n == "5"`: `args.n is a number, never "5"; compare it with that, or change the parameters`,
		`args.env == "0123456789012345678901234567890123456789"`: `args.env is "staging" or "prod", never (not shown); compare it with that, or change the parameters`,
	} {
		if got := problemOf(t, withApproval(deploys, expression)); got != `tool "deploy": `+want {
			t.Errorf("%s: got\n%s\nwant\n%s", expression, got, want)
		}
	}
	for _, c := range []struct{ parameters, expression, want string }{
		{`{type: object, properties: {env: {}}}`, `args.envs == 1`, `tool "deploy": args has no field "envs"; did you mean "env"?`},
		{`{type: object, properties: {a: {$ref: "#/definitions/x"}}, definitions: {x: {enum: [1]}}}`, `args.a == 2`, `tool "deploy": args.a is 1, never 2; compare it with that, or change the parameters`},
	} {
		if got := problemOf(t, withApproval(c.parameters, c.expression)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.expression, got, c.want)
		}
	}
}

// TestTypingShowsNoSecrets holds that what may be a misplaced key is not shown.
func TestTypingShowsNoSecrets(t *testing.T) {
	const secret = "AKIA0123456789012345678901234567"
	for _, form := range []string{`args.tags[KEY] == "blue"`, `args.tags["KEY"] == "blue"`, `args.env == "KEY"`, `args.n == args.KEY`, `args.name + "KEY" > 5`} {
		got := problemOf(t, withApproval(deploys, strings.ReplaceAll(form, "KEY", secret)))
		if got == "" || strings.Contains(got, secret) {
			t.Errorf("%s: %s", form, got)
		}
	}
}

// TestTypingAccepts holds which expressions are no mistakes: they may be true of one call and
// false of another, as far as the schema says.
func TestTypingAccepts(t *testing.T) { // A40
	for parameters, expressions := range map[string][]string{
		deploys: {
			`args.env == "prod"`, `args.env != "staging" || args.n > 5`, `upper(args.env) == "PROD"`, `trim(args.env, "s") == "taging"`,
			`args.env contains "ro" && args.env matches "^p"`, `args.env[0:1] == "p"`, `args.env == nil || args.env == "prod"`,
			`(args.env ?? "none") == "none"`, `args?.env == "prod"`, `args.env + "-" + args.name == "prod-x"`,
			`args.level == 1.0 || args.level == "high" || args.level == nil`, `args.level in [nil, 2, "high"]`,
			`args.ratio == 1.5 && args.n == 2.0 && args.n > 5.5 && args.n == 1e3`, `args.size == -0 || args.size == 2e1 || args.size == 10.0`,
			`args.n == args.ratio`, `-args.n < 0 && +args.n > 1`, `args.note == args.code`, `args.note == "x" || args.note == args.name`,
			`args.any == 5 || args.any.x.y == "z" || args.any > "5"`, `args.pair[1] == 5 || args.pair[0] == "x"`,
			`args.order.by.whom == "me" && args.order.more.x.y == 1`, `(args.order.cent ?? 0) > 5`, `args.order?.cent == "x"`,
			`args.order.cent != nil`, `"cent" in args.order`, `args.order["cents"] > 5`, `args[args.name] == 5`, `args.name in args.order`,
			`(args.undeclared ?? "d") == "d"`, `args?.undeclared == 1`, `"undeclared" in args`,
			`args.strict.a == "x" && "a" in args.strict`, `args.free.b == "x" && args.free.a == "y" && "b" in args.free`,
			`args.ref == "prod"`, `args.old == 5`, `args.tree.below[0].name == "leaf"`,
			`args.maybe == "prod" || args.maybe == nil`, `args.mixed == "a" || args.mixed == 7`, `args.both == "b"`,
			`args.pay.kind == "bank" && args.pay.iban startsWith "DE" && args.pay.pan == 5`, `args.base.b == 2 && args.base.a == "x"`,
			`args.n + args.ratio * 2 > 5`, `sum(args.lines, .cents) > 5 && len(args.tags) > 1`, `count(args.lines, .kind == "new") > 1`,
			`all(args.tags, # in ["red"]) || "red" in args.tags`, `max(args.n, 5) > 5 && abs(args.n) < 3`, `"cents" in keys(args.order)`, `args.dry`,
			`args.tags[0:args.n] == args.tags && args.name[0:args.n * 1.5] == "x" && args.name[0] == 112`, `[args.n, args.name][0] == 1 && [[args.n], [args.name]][0][0] == 5`,
			`(args.dry ? args.strict : args.order).cents == 1`, `(args.order ?? args.strict).a == "x"`, `any([args.n, args.name], # == "x")`,
			`(args.strict.whom ?? 1) == 1`, `args.env startsWith "live"`, `args.env == args.target`, `lower(args.env) == "PROD"`,
		},
		`{type: object, properties: {a: {type: string, nullable: true, enum: [x, null]}, b: {type: integer, nullable: true}}}`:                          {`args.a == args.b`, `args.a == nil`},
		`{type: object, properties: {a: {type: object, properties: {x: {}}, unevaluatedProperties: true}}}`:                                             {`args.a.y == 1`},
		`{type: object, properties: {a: {}}, patternProperties: {"^x": {}}, additionalProperties: false}`:                                               {`args.xy == 1`},
		`{type: object, properties: {a: {}}, dependencies: {a: {properties: {b: {}}}}}`:                                                                 {`args.b == 1`},
		`{type: object, properties: {a: {}}, if: {required: [a]}, then: {properties: {b: {}}}}`:                                                         {`args.b == 1`},
		`{type: object, properties: {a: {}}, allOf: [{properties: {b: {}}}, {$ref: "#/$defs/c"}], $defs: {c: {properties: {c: {}}}}}`:                   {`args.b == args.c`},
		`{type: object, properties: {a: {$ref: "#/$defs/x", enum: [p]}}, $defs: {x: {$anchor: x}}, $schema: "http://json-schema.org/draft-07/schema#"}`: {`args.a == "q"`},
		`{type: object, properties: {a: {anyOf: [{type: integer}, {type: string, enum: [x]}, {}]}}}`:                                                    {`args.a == "q"`},
		`{type: object, properties: {a: {not: {enum: [x]}}, b: {type: string, minLength: 3}}}`:                                                          {`args.a == "x" && args.b == "y"`},
	} {
		for _, expression := range expressions {
			if got := problemOf(t, withApproval(parameters, expression)); got != "" {
				t.Errorf("%s\n%s\n%s", parameters, expression, got)
			}
		}
	}
}

// TestSchemas holds which schemas of parameters are refused, and how.
func TestSchemas(t *testing.T) {
	for parameters, want := range map[string]string{
		`{type: object, properties: {a: {type: str}}}`:                                                                     `args.a has the type "str", which JSON schemas do not have; the types are array, boolean, integer, null, number, object, string`,
		`{type: object, properties: {a: {type: [string, nul]}}}`:                                                           `args.a has the type "nul", which JSON schemas do not have; did you mean "null"?`,
		`{type: object, properties: {text: {}}, required: [txt]}`:                                                          `args requires "txt", which its properties lack; did you mean "text"?`,
		`{type: object, required: [txt]}`:                                                                                  `args requires "txt", which its properties lack; there are no properties`,
		`{type: object, properties: {o: {type: object, properties: {a: {}}, required: [b]}}}`:                              `args.o requires "b", which its properties lack; did you mean "a"?`,
		`{type: object, properties: {l: {type: array, items: {type: strng}}}}`:                                             `args.l[] has the type "strng", which JSON schemas do not have; did you mean "string"?`,
		`{type: object, properties: {a: {anyOf: [{type: string}, {type: int}]}}}`:                                          `args.a has the type "int", which JSON schemas do not have; the types are array, boolean, integer, null, number, object, string`,
		`{type: object, properties: {a: {$ref: "#/$defs/x"}}, $defs: {x: {type: bool}}}`:                                   `$defs.x has the type "bool", which JSON schemas do not have; the types are array, boolean, integer, null, number, object, string`,
		`{type: object, properties: {a: {type: string, enum: [low, 5]}}}`:                                                  `5 is listed for args.a, whose type allows only a text; change the value or the type`,
		`{type: object, properties: {a: {$ref: "#/$defs/x"}}, $defs: {x: {anyOf: [{type: string}, {$ref: "#/$defs/x"}]}}}`: `the $ref of $defs.x leads back to itself; let it lead elsewhere`,
	} {
		if got := problemOf(t, withApproval(parameters, "always")); got != `tool "deploy": `+want {
			t.Errorf("%s: got\n%s\nwant\n%s", parameters, got, want)
		}
	}
}

// TestSchemasThatAreFine holds that what a schema may say is no mistake.
func TestSchemasThatAreFine(t *testing.T) {
	for _, parameters := range []string{
		`{type: object, properties: {type: {type: string}, typ: {type: [string, "null"], enum: [a, null]}}, required: [typ]}`,
		`{type: object, properties: {a: {}, b: {}}, anyOf: [{required: [a]}, {required: [b]}]}`,
		`{type: object, properties: {a: {}, b: {}}, if: {properties: {a: {const: 1}}, required: [a]}, then: {required: [b]}, else: {not: {required: [b]}}}`,
		`{type: object, properties: {o: {type: object, properties: {b: {}}}}, allOf: [{properties: {o: {type: object, properties: {c: {}}, required: [b]}}}]}`,
		`{type: object, properties: {o: {type: object, properties: {b: {}}, required: [c]}}, allOf: [{properties: {o: {properties: {c: {}}}}}]}`,
		`{type: object, properties: {a: {}, b: {}}, dependentSchemas: {a: {properties: {c: {}}, required: [b]}}}`,
		`{type: object, properties: {a: {}}, required: [b], allOf: [{properties: {b: {}}}]}`,
		`{type: object, properties: {a: {$ref: "#/$defs/base", properties: {kind: {}}}}, $defs: {base: {properties: {x: {}}, required: [kind]}}}`,
		`{type: object, additionalProperties: true, required: [a]}`,
		`{type: object, properties: {a: {}}, patternProperties: {"^x": {}}, required: [xy]}`,
		`{type: object, properties: {o: {type: object, required: [b]}, l: {type: array, properties: {a: {}}, required: [b]}}}`,
		`{type: object, properties: {a: {type: string, nullable: true, enum: [x, null]}, b: {type: integer, enum: [1.0, 2.0e0]}}}`,
		`{type: object, title: T, x-order: 1, properties: {a: {type: string, example: x, x-typ: 1, nullable: true, "$typ": 1, whatever: 2, titel: n, typ: s, discriminator: {propertyName: k}, externalDocs: {type: any}}}}`,
		`{type: object, properties: {a: {$ref: "#"}, b: {type: array, items: {$ref: "#/properties/b"}}}}`,
		`{type: object, properties: {a: {default: {type: str}, examples: [{type: str}], enum: [[1], {type: str}]}}}`,
	} {
		if got := problemOf(t, withApproval(parameters, "always")); got != "" {
			t.Errorf("%s: %s", parameters, got)
		}
	}
}

// TestSchemasThatAreTooMuch holds that the work for a schema is bounded, and what is not
// looked at is not refused.
func TestSchemasThatAreTooMuch(t *testing.T) {
	var defs strings.Builder
	for i := range 40 {
		fmt.Fprintf(&defs, "d%d: {anyOf: [{$ref: '#/$defs/d%d'}, {$ref: '#/$defs/d%d'}]}, ", i, i+1, i+1)
	}
	schema := `{type: object, properties: {a: {$ref: "#/$defs/d0"}, many: {enum: [` + strings.Repeat("x, ", maxValues) + `y]}}, $defs: {` + defs.String() + `d40: {enum: [x]}}}`
	if got := problemOf(t, withApproval(schema, `args.a == "y" || args.many == "z"`)); got != "" {
		t.Error(got)
	}
}
