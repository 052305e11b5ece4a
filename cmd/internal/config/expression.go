package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm/runtime"
)

// What an approval expression may be at most.
const (
	maxExpression      = 2000 // bytes
	maxExpressionNodes = 200
)

// functions are those of the language that take time in proportion to their arguments and return
// the same for the same arguments every time.
var functions = []string{
	"abs", "all", "any", "ceil", "count", "filter", "floor", "keys", "len", "lower",
	"max", "min", "none", "one", "round", "sum", "trim", "upper", "values",
}

// operators are those that may be used. Missing are remainders, which need whole
// numbers, and powers and ranges, which grow without bound.
var operators = strings.Fields("== != < > <= >= and && or || + - * / in not ! ?? matches contains startsWith endsWith")

// finding is a mistake in an expression, at the character number from.
type finding struct {
	from     int
	what, do string
}

// compile makes a predicate of an expression, or says all that is wrong with it.
// Work is bounded by the form of the expression: nothing is looked through
// inside of what looks through a list, and no pattern comes from the arguments.
func compile(s string, args arguments) (predicate, []finding) {
	if len(s) > maxExpression {
		return predicate{}, []finding{{0, fmt.Sprintf("the expression is longer than %d bytes", maxExpression), "decide in the tool's program, or write approval: always"}}
	}
	tree, err := parser.Parse(s)
	if err != nil {
		return predicate{}, []finding{explain(err)}
	}
	optional, lists, words := make(optionals), make(entries), make(spelling)
	names, _ := args.shape.fields()
	j, t := judge{names: names}, typing{args, optional, lists, make(map[ast.Node]shape), make(map[*ast.Node]any), nil}
	for _, v := range []ast.Visitor{optional, lists, words, &j, &t} {
		ast.Walk(&tree.Node, v)
	}
	if found := append(j.found, t.found...); len(found) > 0 {
		return predicate{}, found
	}
	if found := t.mismatch(tree); found != nil {
		return predicate{}, found
	}
	optional = make(optionals)
	program, err := expr.Compile(s, expr.Env(map[string]any{"args": map[string]any{}}), expr.Optimize(false), expr.MaxNodes(maxExpressionNodes),
		expr.Function(givenName, given), expr.Patch(optional), expr.Patch(required{optional}))
	if err != nil {
		return predicate{}, []finding{explain(err)}
	}
	return predicate{program, words}, nil
}

// spelling gathers the texts of an expression, the names of fields among them,
// by their folded form.
type spelling map[string][]string

// Visit takes in one node.
func (s spelling) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.StringNode); ok {
		f := folded(n.Value)
		s[f] = append(s[f], n.Value)
	}
}

// optionals are the fields that an expression expects to be missing at times:
// those with ?? behind them, those around ?., and those compared with nil.
type optionals map[*ast.MemberNode]bool

// Visit marks what a node says may be missing.
func (o optionals) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.ChainNode:
		o.mark(n)
	case *ast.BinaryNode:
		switch n.Operator {
		case "??":
			o.mark(n.Left)
		case "==", "!=":
			if isNil(n.Left) || isNil(n.Right) {
				o.mark(n.Left)
				o.mark(n.Right)
			}
		}
	}
}

func (o optionals) mark(n ast.Node) {
	switch n := n.(type) {
	case *ast.MemberNode:
		o[n] = true
	case *ast.ChainNode:
		for m, ok := n.Node.(*ast.MemberNode); ok; m, ok = m.Node.(*ast.MemberNode) {
			o[m] = true
		}
	case *ast.BinaryNode:
		if n.Operator == "??" {
			o.mark(n.Left)
			o.mark(n.Right)
		}
	}
}

func isNil(n ast.Node) bool {
	_, ok := n.(*ast.NilNode)
	return ok
}

// required has every other field fetched by given, which fails where the language yields nil: a
// comparison with nil would decide without having seen anything.
type required struct{ optionals }

// Visit replaces the fetching of a field.
func (r required) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.MemberNode)
	if !ok || r.optionals[n] {
		return
	}
	if _, entry := n.Property.(*ast.IntegerNode); !entry { // of a list, which fails by itself
		ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: givenName}, Arguments: []ast.Node{n.Node, n.Property}})
	}
}

// givenName is what the function given is called in the compiled expression.
// It cannot be written: it is none of functions.
const givenName = "given"

// given is the field of a mapping, or an error if it is not there.
func given(params ...any) (any, error) {
	fields, isMapping := params[0].(map[string]any)
	name, isName := params[1].(string)
	if !isMapping || !isName {
		return runtime.Fetch(params[0], params[1]), nil // a panic of its is an error of the machine's
	}
	value, ok := fields[name]
	if !ok {
		return nil, fmt.Errorf("they have no field %s", shown(name))
	}
	return value, nil
}

// judge visits an expression and finds what is not used here.
type judge struct {
	names []string // of the arguments
	found []finding
}

func (j *judge) add(n ast.Node, do, what string, args ...any) {
	j.found = append(j.found, finding{n.Location().From, fmt.Sprintf(what, args...), do})
}

// Visit judges one node, after those below it.
func (j *judge) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.ArrayNode,
		*ast.MemberNode, *ast.ChainNode, *ast.ConditionalNode, *ast.PointerNode, *ast.SliceNode:
	case *ast.IdentifierNode:
		j.variable(n)
	case *ast.UnaryNode:
		j.operator(n, n.Operator)
	case *ast.BinaryNode:
		j.binary(n)
	case *ast.CallNode:
		j.call(n)
	case *ast.BuiltinNode:
		j.function(n, n.Name)
	case *ast.PredicateNode:
		if inner := ast.Find(n.Node, isPredicate); inner != nil {
			j.add(inner, "remove one of them", "a list is searched inside another one, which may take long")
		}
	default:
		j.add(n, "write "+anExpression, "this part of the expression is nothing that is used here")
	}
}

func isPredicate(n ast.Node) bool {
	_, ok := n.(*ast.PredicateNode)
	return ok
}

func (j *judge) variable(n *ast.IdentifierNode) {
	if n.Value == "args" {
		return
	}
	do := "the arguments are in args: write " + anExpression
	if slices.Contains(j.names, n.Value) && !hidden(n.Value) {
		do = "write args." + n.Value
	}
	j.add(n, do, "the expression has the unknown name %s", shown(n.Value))
}

func (j *judge) operator(n ast.Node, operator string) {
	if !slices.Contains(operators, operator) {
		j.add(n, "the operators are "+strings.Join(operators, " "), "the operator %s is not used here", operator)
	}
}

func (j *judge) binary(n *ast.BinaryNode) {
	j.operator(n, n.Operator)
	if _, fixed := n.Right.(*ast.StringNode); n.Operator == "matches" && !fixed {
		j.add(n, `write it as text, such as args.name matches "^[a-z]+$"`, "the pattern after matches may not come from the arguments")
	}
	if v, _ := literal(n.Right); n.Operator == "/" && (kindOf(v) != aNumber || v == 0.0) {
		j.add(n, "write a number other than 0 there, or multiply the other side", "what is divided by may not come from the arguments: it may be 0")
	}
}

func (j *judge) call(n *ast.CallNode) {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		j.add(n, "the functions are "+strings.Join(functions, ", "), "arguments cannot be called")
		return
	}
	at := name.Location().From // where it was taken for a variable
	j.found = slices.DeleteFunc(j.found, func(f finding) bool { return f.from == at })
	j.function(n, name.Value)
}

func (j *judge) function(n ast.Node, name string) {
	if !slices.Contains(functions, name) {
		j.add(n, meant(name, functions, "functions"), "no function is called %s here", shown(name))
	}
}

// explanations say in plain words what the compiler's messages mean. Those
// quote the expression, which is not shown: it may hold a misplaced key.
var explanations = []struct{ part, what, do string }{
	{"unexpected token EOF", "the expression ends too soon", "finish it; if it has a # or a colon in it, put all of it in quotes"},
	{"unexpected end of expression", "the expression ends too soon", "finish it; if it has a # or a colon in it, put all of it in quotes"},
	{"unexpected token", "the expression goes wrong here", "check its brackets, and that an operator stands between any two values"},
	{"literal not terminated", "a quote in the expression is opened and never closed", "close it"},
	{"error parsing regexp", "the pattern after matches is no regular expression", "correct it; re2 syntax is used"},
	{"maximum allowed nodes", "the expression has too many parts", "decide in the tool's program, or write approval: always"},
	{"expected bool", "the expression is not true or false", "compare it with something, such as args.cents > 5000"},
	{"predicate should return boolean", "the condition on each entry is not true or false", "compare it with something, such as any(args.items, .cents > 5000)"},
	{"takes only array", "only lists can be searched", "give it a list, such as any(args.items, .cents > 5000)"},
	{"used as condition", "what stands before ? is not true or false", "compare it with something, such as args.cents > 5000"},
	{"(type string) to call", "the function takes texts", "give it a text"},
	{"in map key", "the fields of a mapping have texts for names", "ask for the name of a field"},
	{"in array", "no entry of the list is of this type", "look for numbers among numbers and texts among texts"},
}

// unfit matches what the checker says of types that an operator or a function does not take.
var unfit = regexp.MustCompile(`^(?:invalid operation: (\S+) \(mismatched types?|invalid argument for (\S+) \(type) (.+?)(?: and (.+))?\)$`)

// explain is an error of the compiler for a person.
func explain(err error) finding {
	f := finding{0, "this is not an expression that can be read", "write never, always, or " + anExpression}
	message := err.Error()
	if e := new(file.Error); errors.As(err, &e) {
		f.from, message = max(0, e.From), e.Message
	}
	for _, e := range explanations {
		if strings.Contains(message, e.part) {
			f.what, f.do = e.what, e.do
			return f
		}
	}
	m := unfit.FindStringSubmatch(message)
	if m == nil {
		return f
	}
	f.what = m[1] + m[2] + " does not take " + typeNames[m[3]]
	if m[4] != "" {
		f.what += " and " + typeNames[m[4]]
	}
	f.do = advice(m[1])
	return f
}

// advice returns what an operator is for; empty is for a function.
func advice(operator string) string {
	switch operator {
	case "":
		return "give it another argument"
	case "&&", "and", "||", "or", "!", "not":
		return "use true or false there, such as a comparison"
	case "in":
		return "put a list or a mapping after it"
	case "contains", "startsWith", "endsWith", "matches":
		return "use it with two texts; to look into a list, write: entry in list"
	}
	return "use numbers with numbers and texts with texts"
}

// typeNames are what a person would call the compiler's types.
var typeNames = map[string]string{
	"int": "a number", "float64": "a number", "string": "a text", "bool": "true or false",
	"[]interface {}": "a list", "map[string]interface {}": "a mapping", "unknown": "what may be anything",
}
