package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// arguments are what an expression looks at.
type arguments struct {
	tool    string
	schemas *schemas
	shape   shape
}

// typing finds what in an expression can never be true of arguments that fit the schema: a
// value that the schema does not list, and a field that does not exist. Unlike types are found
// by the language's checker. Such an expression gives the same answer for every call, mostly
// that no person is asked.
type typing struct {
	arguments
	optional optionals
	lists    entries
	shapes   map[ast.Node]shape
	samples  map[*ast.Node]any // of what is taken from the arguments; nil if its type is not known
	found    []finding
}

// samples are values of the kinds that are types of the language.
var samples = map[kinds]any{
	aNumber: 0.0, aText: "", aBool: false, aList: []any{}, aMapping: map[string]any{},
}

func (t *typing) add(n ast.Node, do, what string, args ...any) {
	t.found = append(t.found, finding{n.Location().From, t.tool + ": " + fmt.Sprintf(what, args...), do})
}

// Visit checks one part of the expression, after those below it, and takes down its shape.
func (t *typing) Visit(node *ast.Node) {
	var s shape
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "args" {
			s = t.taken(node, t.shape)
		}
	case *ast.PointerNode:
		s = t.taken(node, t.schemas.entry(t.shapes[t.lists[n]]))
	case *ast.MemberNode:
		s = t.taken(node, t.member(n))
	case *ast.SliceNode: // the checker wants whole numbers at its ends, the language does not
		t.taken(node, nil)
	case *ast.ChainNode:
		s = t.shapes[n.Node]
	case *ast.ConditionalNode:
		s = join(t.shapes[n.Exp1], t.shapes[n.Exp2])
	case *ast.BinaryNode:
		s = t.binary(n)
	default:
		if v, ok := literal(n); ok {
			s = exactly(v)
		}
	}
	t.shapes[*node] = s
}

func (t *typing) taken(node *ast.Node, s shape) shape {
	t.samples[node] = samples[s.kinds()]
	return s
}

// entries are the lists that are looked through where an expression names an entry.
type entries map[*ast.PointerNode]ast.Node

// Visit finds the entries of one list.
func (e entries) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BuiltinNode)
	if !ok || len(n.Arguments) < 2 {
		return
	}
	ast.Find(n.Arguments[1], func(below ast.Node) bool {
		if entry, ok := below.(*ast.PointerNode); ok {
			e[entry] = n.Arguments[0]
		}
		return false
	})
}

// literal returns the value of a part of the expression that is one.
func literal(n ast.Node) (any, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return float64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.BoolNode:
		return n.Value, true
	case *ast.NilNode:
		return nil, true
	case *ast.UnaryNode:
		v, _ := literal(n.Node)
		f, ok := v.(float64)
		return -f, ok && n.Operator == "-"
	}
	return nil, false
}

// nameOf returns a part of the expression as it may be shown.
func nameOf(n ast.Node) string {
	secret := ast.Find(n, func(n ast.Node) bool {
		s, isText := n.(*ast.StringNode)
		i, isName := n.(*ast.IdentifierNode)
		return isText && hidden(s.Value) || isName && hidden(i.Value)
	})
	if s := n.String(); secret == nil && len(s) <= 60 {
		return s
	}
	return "this part of the expression"
}

// member returns the shape of a field or entry.
func (t *typing) member(n *ast.MemberNode) shape {
	whole := t.shapes[n.Node]
	k := whole.kinds() &^ aNil
	name, plain := n.Property.(*ast.StringNode)
	switch {
	case !plain && k == aList:
		return t.schemas.entry(whole)
	case plain && k&aMapping == 0:
		t.add(n, "use it alone, or change the parameters", "%s is %s and has no field %s", nameOf(n.Node), whole, shown(name.Value))
	case plain && k == aMapping:
		t.declared(n, name.Value, whole)
		s := t.schemas.field(whole, name.Value)
		if t.optional[n] {
			s = join(s, exactly(nil))
		}
		return s
	}
	return nil
}

// declared finds a field that does not exist. One that no schema declares may be asked for if
// the expression expects it to be missing.
func (t *typing) declared(n *ast.MemberNode, name string, whole shape) {
	names, open := whole.fields()
	_, top := n.Node.(*ast.IdentifierNode)
	if open || slices.Contains(names, name) || t.optional[n] || !top && len(names) == 0 {
		return
	}
	do := meant(name, names, "fields of "+nameOf(n.Node))
	if len(names) == 0 {
		do = "add it below parameters"
	}
	t.add(n, do, "%s has no field %s", nameOf(n.Node), shown(name))
}

// binary finds values that a comparison never meets, and returns the shape of what results.
func (t *typing) binary(n *ast.BinaryNode) shape {
	left, right := t.shapes[n.Left], t.shapes[n.Right]
	switch n.Operator {
	case "??":
		return join(slices.DeleteFunc(slices.Clone(left), func(a alternative) bool { return a.kinds() == aNil }), right)
	case "==", "!=":
		t.never(nameOf(n.Left), left, n.Right)
		t.never(nameOf(n.Right), right, n.Left)
	case "in":
		if list, ok := n.Right.(*ast.ArrayNode); ok {
			for _, item := range list.Nodes {
				t.never(nameOf(n.Left), left, item)
			}
		}
		if right.kinds() == aList {
			t.never("an entry of "+nameOf(n.Right), t.schemas.entry(right), n.Left)
		}
	}
	return nil
}

// never finds a literal that a shape does not allow. What is compared with nil may be missing.
func (t *typing) never(name string, s shape, fixed ast.Node) {
	if v, ok := literal(fixed); ok && v != nil && !s.allows(v) {
		t.add(fixed, "compare it with that, or change the parameters", "%s is %s, never %s", name, s, written(v))
	}
}

// mismatch has the language's checker look for unlike types in the expression, in which
// samples take the place of arguments.
func (t *typing) mismatch(tree *parser.Tree) []finding {
	for part, value := range t.samples {
		ast.Patch(part, &ast.ConstantNode{Value: value})
	}
	config := conf.CreateNew()
	expr.AsBool()(config)
	_, err := checker.Check(tree, config)
	if err == nil {
		return nil
	}
	f, at, name := explain(err), new(file.Error), ""
	if plain, _ := parser.Parse(tree.Source.String()); errors.As(err, &at) { // which was read before
		name = nameOf(ast.Find(plain.Node, func(n ast.Node) bool { return n.Location() == at.Location })) + ": "
	}
	return []finding{{f.from, t.tool + ": " + name + f.what, f.do}}
}
