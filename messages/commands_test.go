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

// withMethod returns the names of the types with a method of the given name in this package,
// without those of its tests.
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
		t.Errorf("commandTable: got %v, want %v", listed, types)
	}
	if len(commandsByType) != len(commandTable) {
		t.Errorf("types of commandTable: got %d, want %d different ones", len(commandsByType), len(commandTable))
	}
}

// The table has the id, subject, reason and forwarding fields of every command.
func TestCommandTableFields(t *testing.T) {
	for _, zero := range Commands() {
		e, name := entryOf(zero), zero.CommandType()
		v := reflect.New(reflect.TypeOf(zero)).Elem()
		fill(v, "x")
		c := v.Interface().(Command)
		if e.id < 0 || IDOf(c) != "ID" || IDOf(WithID(c, "other")) != "other" || !reflect.DeepEqual(WithID(WithID(c, "other"), "ID"), c) {
			t.Errorf("%s: id: got %q, and %q with another, want ID and other", name, IDOf(c), IDOf(WithID(c, "other")))
		}
		if slices.Contains(e.about, -1) {
			t.Errorf("%s: about names a field that does not exist", name)
		}
		if got, has := ReasonOf(c), e.from == FromCtl || name == "cancel_child" || name == "begin_fork"; (got == "Reason") != has {
			t.Errorf("%s: reason: got %q, want one: %t", name, got, has)
		}
		forwarded := slices.Contains([]string{"approve", "deny", "decide"}, name)
		if by := ForwardedBy(c); (by.For == "For") != forwarded || (by.Person != nil) != forwarded {
			t.Errorf("%s: forwarded: got for %q and person %v, want them: %t", name, by.For, by.Person, forwarded)
		}
	}
}
