package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"github.com/reprise-dev/reprise/providers/tool"
)

// asked is what an expression says of arguments: yes, no or why it cannot decide.
func asked(t *testing.T, expression, args string) string {
	t.Helper()
	p, found := compile(expression, arguments{})
	if found != nil {
		t.Fatalf("%s: %+v", expression, found)
	}
	switch needs, err := p.needsApproval(json.RawMessage(args)); {
	case err != nil:
		return err.Error()
	case needs:
		return "yes"
	}
	return "no"
}

// A40: which calls an expression lets pass.
func TestExpression(t *testing.T) {
	for _, c := range []struct{ expression, args, want string }{
		{`args.cents > 5000`, `{"cents":5000}`, "no"},
		{`args.cents > 5000`, `{"cents":5001}`, "yes"},
		{`args.cents > 5000`, `{"cents":5000.5}`, "yes"},
		{`args.cents > 5000`, `{"cents":5.001e3}`, "yes"},
		{`args.cents == 5000`, `{"cents":5000.0}`, "yes"},
		{`args.cents in [1, 5000]`, `{"cents":5e3}`, "yes"},
		{`args.cents in [1, 5000]`, `{"cents":2}`, "no"},
		{`args.cents * args.count > 5000`, `{"cents":3037000500,"count":3037000500}`, "yes"}, // wraps around in whole numbers
		{`args.code in ["a", "b"]`, `{"code":5}`, "no"},
		{`args.country not in ["DE", "FR"]`, `{"country":"DE"}`, "no"},
		{`args.country not in ["DE", "FR"]`, `{"country":"US"}`, "yes"},
		{`args.dry != nil && args.dry`, `{}`, "no"},
		{`"dry" in args`, `{}`, "no"},
		{`(args.a ?? args.b ?? 1) > 1`, `{}`, "no"},
		{`any(args.lines, (.cents ?? 0) > 5)`, `{"lines":[{}]}`, "no"},
		{`args.list[args.i] == 2`, `{"list":[1,2],"i":1}`, "yes"},
		{`any(args.lines, .cents > 5)`, `{"lines":[{"cents":1},{"cents":6}]}`, "yes"},
		{`sum(args.lines, .cents) > 6`, `{"lines":[{"cents":1},{"cents":5}]}`, "no"},
		{`all(args.to, # endsWith "@example.com") == false`, `{"to":["a@example.com","b@example.org"]}`, "yes"},
		{`args.name matches "^[a-z]+$" && lower(args.name) != "root"`, `{"name":"root"}`, "no"},
		{`len(args.lines) > 1 || args.cents / 100 > 50`, `{"lines":[],"cents":5001}`, "yes"},
		{`args.deep?.er?.est == 1`, `{}`, "no"},
		{`(args.limit ?? 0) < 1`, `{"limit":null}`, "yes"},
		{`args.dry ? false : args.cents > 1`, `{"dry":true,"cents":9}`, "no"},
		{`args["the key"] == "x"`, `{"the key":"x"}`, "yes"},
	} {
		if got := asked(t, c.expression, c.args); got != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.expression, c.args, got, c.want)
		}
	}
}

// A40: what an expression cannot decide counts as yes, so it must be an error, and none that says
// that the arguments do not fit.
func TestExpressionThatCannotTell(t *testing.T) {
	list := func(n int) string { return `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}` }
	for _, c := range []struct{ expression, args, want string }{
		{`args.cents > 5000`, `{}`, "cannot be evaluated for these arguments: they have no field \"cents\""},
		{`args.country in ["DE", "FR"]`, `{}`, "no field"},
		{`args.force == true`, `{}`, "no field"},
		{`!(args.cents == 1)`, `{}`, "no field"},
		{`any(args.lines, .cents == 5)`, `{"lines":[{"cents":1},{}]}`, "no field"},
		{`args["the key"] == "x"`, `{}`, "no field"},
		{`args.deep?.er == args.other`, `{}`, "no field"},
		{`args.cents > 5000`, `{"cents":"many"}`, "cannot be evaluated"},
		{`args.deep.er == 1`, `{}`, "cannot be evaluated"},
		{`args.list[5] == 1`, `{"list":[]}`, "cannot be evaluated"},
		{`args.run`, `{"run":1}`, "neither true nor false"},
		{`args.run`, `{}`, "no field"},
		{`args.run ?? nil`, `{}`, "neither true nor false"},
		{`args.cents > 5000`, `{"cents":9007199254740993}`, "too large"},
		{`args.cents > 5000`, `{"cents":-1e300}`, "too large"},
		{`args.cents > 5000`, `{"cents":1e999}`, "too large"},
		{`args.cents > 5000`, `{"cents":9999,"cents":1}`, "twice"},
		{`args.cents > 5000`, `{"cents":1,"x":{"y":1,"y":2}}`, "twice"},
		{`args.cents > 5000`, `{"cents":5000,"Cents":9900}`, "upper and lower case"},
		{`args.cents > 5000`, `{"Cents":9900,"cents":5000}`, "upper and lower case"},
		{`args.cents > 5000`, `{"cents":1,"x":[{"y":1,"Y":2}]}`, "upper and lower case"},
		{`args.kind == "a"`, `{"kind":"b","\u212aind":"a"}`, "upper and lower case"},
		{`(args.cents ?? 0) > 5000`, `{"Cents":9900}`, "upper and lower case"},
		{`"cents" in args && args.cents > 5000`, `{"CENTS":9900}`, "upper and lower case"},
		{`(args.order?.cents ?? 0) > 5000`, `{"order":{"Cents":9900}}`, "upper and lower case"},
		{`args.cents > 5000`, `{"cents":1} {}`, "follows"},
		{`args.cents > 5000`, `{"cents":1`, "no JSON"},
		{`args.cents > 5000`, ``, "no JSON"},
		{`args.cents > 5000`, `[1]`, "no object"},
		{`args.cents > 5000`, `null`, "no object"},
		{`true`, list(maxLookedCount), "more than 2048 values"},
		{`true`, `{"a":"` + strings.Repeat("x", maxLooked) + `"}`, "longer than 65536 bytes"},
		{`true`, `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "more than 64 levels"},
	} {
		got := asked(t, c.expression, c.args)
		if !strings.HasPrefix(got, "approval: ") || !strings.Contains(got, c.want) {
			t.Errorf("%s of %.40s: got %s, want %s", c.expression, c.args, got, c.want)
		}
	}
	if got := asked(t, `any(args.a, # in args.a)`, list(maxLookedCount-2)); got != "yes" {
		t.Errorf("arguments of just the size that is looked at: %s", got)
	}
	p, _ := compile(`args.cents > 5000`, arguments{})
	if _, err := p.needsApproval(json.RawMessage(`{`)); errors.As(err, new(*tool.ArgumentError)) {
		t.Errorf("the expression judges what fits: %v", err)
	}
}

func TestExpressionsThatAreTooMuch(t *testing.T) { // A102
	for name, s := range map[string]string{
		"long":  "args.a == " + fmt.Sprintf("%q", strings.Repeat("x", maxExpression)),
		"many":  strings.Repeat("1==1&&", 150) + "true",
		"deep":  strings.Repeat("(", maxExpression-5) + "true",
		"ins":   strings.Repeat("true in [", 200) + "true" + strings.Repeat("]", 200),
		"loops": "all(args.a, all(args.a, all(args.a, # == 1)))",
	} {
		if _, found := compile(s, arguments{}); len(found) == 0 {
			t.Errorf("%s: no problem found", name)
		}
	}
}

// TestSchemasThatAreOpen checks when an argument may come that no property names.
func TestSchemasThatAreOpen(t *testing.T) { // A40
	for parameters, ok := range map[string]bool{
		``:                           false,
		`parameters: {type: object}`: false,
		`parameters: {type: object, properties: {other: {}}}`:                                       false,
		`parameters: {type: object, properties: {cents: {}}}`:                                       true,
		`parameters: {type: object, additionalProperties: false, properties: {cents: {}}}`:          true,
		`parameters: {type: object, additionalProperties: false}`:                                   false,
		`parameters: {type: object, additionalProperties: true}`:                                    true,
		`parameters: {type: object, additionalProperties: {type: integer}}`:                         true,
		`parameters: {type: object, patternProperties: {"^c": {type: integer}}}`:                    true,
		`parameters: {type: object, anyOf: [{properties: {cents: {}}}, {properties: {euros: {}}}]}`: true,
	} {
		data := "agents: {a: {model: demo/demo}}\ntools:\n  t:\n    command: [x]\n    description: d\n    approval: args.cents > 5000\n"
		if parameters != "" {
			data += "    " + parameters + "\n"
		}
		if _, err := Parse("f", []byte(data), variables); (err == nil) != ok {
			t.Errorf("%s: %v", parameters, err)
		}
	}
}

// FuzzExpression holds that neither an expression nor arguments make the
// evaluation panic, that whatever is wrong has a place in the expression, that
// the form of what is accepted bounds its work, and that no call passes whose
// arguments can be read in two ways.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		`args.cents > 5000`, `any(args.a, .b matches "^x+$" and # in args.a)`, `sum(args.a, #) * 2 - 1 < -args.b?.c`, `args.a[1:2] == ["x", nil]`,
		`let x = args.a; x > 1`, `args.a | filter(# > 1) | len() > 0`, `now().Year() == 1..9`, `args.a ? args.b ?? 1 : 2`, `min(args.a) / 3 in keys(args)`, `if args.a {true} else {false}`,
	} {
		f.Add(s, `{"cents":6000,"a":[{"b":"x"},1,"y",null],"b":{"c":1e3}}`)
	}
	f.Fuzz(func(t *testing.T, s, args string) {
		p, found := compile(s, arguments{})
		for _, one := range found {
			if one.what == "" || one.do == "" || one.from < 0 || one.from > len(s) {
				t.Errorf("%q: %+v", s, one)
			}
		}
		if found != nil {
			return
		}
		holdBounded(t, s)
		if needs, err := p.needsApproval(json.RawMessage(args)); err == nil && !needs {
			holdPlain(t, args)
		}
	})
}

// holdBounded holds that an expression is small and looks through no list inside
// of another one.
func holdBounded(t *testing.T, s string) {
	tree, err := parser.Parse(s)
	if err != nil {
		t.Fatalf("%q was accepted: %v", s, err)
	}
	nodes := 0
	ast.Find(tree.Node, func(n ast.Node) bool {
		nodes++
		if p, ok := n.(*ast.PredicateNode); ok && ast.Find(p.Node, isPredicate) != nil {
			t.Errorf("%q looks through a list inside of another one", s)
		}
		return false
	})
	if nodes > maxExpressionNodes || len(s) > maxExpression {
		t.Errorf("%q has %d parts", s, nodes)
	}
}

// holdPlain holds that arguments are one object of few values in which every name
// stands once, for every reader.
func holdPlain(t *testing.T, args string) {
	var object map[string]any
	if err := json.Unmarshal([]byte(args), &object); err != nil || object == nil {
		t.Fatalf("%q pass, which are no object: %v", args, err)
	}
	written, read := strings.Count(args, ":"), 0
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				look(item)
			}
		case map[string]any:
			names := make(map[string]bool)
			for name, value := range v {
				names[strings.ToLower(strings.ToUpper(name))] = true
				written -= strings.Count(name, ":")
				read++
				look(value)
			}
			if len(names) < len(v) {
				t.Errorf("%q pass, and names in them differ by case alone", args)
			}
		case string:
			written -= strings.Count(v, ":")
		}
	}
	look(object)
	if written > read { // but for those in texts, each colon follows a name
		t.Errorf("%q pass, and have %d names where %d are read", args, written, read)
	}
	if read > maxLookedCount || len(args) > maxLooked {
		t.Errorf("%d bytes with %d names pass", len(args), read)
	}
}
