package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// withMethod returns the names of the types of this package, but for its tests, that have
// a method of that name.
func withMethod(t *testing.T, method string) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == method {
				types = append(types, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	slices.Sort(types)
	return types
}

func TestEveryCommandIsInTheTable(t *testing.T) {
	var listed []string
	for _, c := range Commands() {
		listed = append(listed, reflect.TypeOf(c).Name())
	}
	slices.Sort(listed)
	if types := withMethod(t, "CommandType"); !slices.Equal(types, listed) {
		t.Errorf("commandTable lists %v, the package has %v", listed, types)
	}
	if len(commandsByType) != len(commandTable) {
		t.Error("two entries have the same type")
	}
}

func TestCommandsAreReadByTheirTable(t *testing.T) {
	for _, zero := range Commands() {
		e, name := entryOf(zero), zero.CommandType()
		v := reflect.New(reflect.TypeOf(zero)).Elem()
		fill(v, "x")
		c := v.Interface().(Command)
		if e.id < 0 || IDOf(c) != "ID" || IDOf(WithID(c, "other")) != "other" || !reflect.DeepEqual(WithID(WithID(c, "other"), "ID"), c) {
			t.Errorf("%s: its id is %q, and %q after it was changed", name, IDOf(c), IDOf(WithID(c, "other")))
		}
		if slices.Contains(e.about, -1) {
			t.Errorf("%s: a field that names what it is about does not exist", name)
		}
		if got, has := ReasonOf(c), e.from == FromCtl || name == "cancel_child"; (got == "Reason") != has {
			t.Errorf("%s: the reason of its sender is %q", name, got)
		}
		passed := slices.Contains([]string{"approve", "deny", "decide"}, name)
		if by := ForwardedBy(c); (by.For == "For") != passed || (by.Person != nil) != passed {
			t.Errorf("%s: passed by %q for %v", name, by.For, by.Person)
		}
	}
}
