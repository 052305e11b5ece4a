package turn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// Every command of the table reaches the machine's own code.
func TestEveryCommandIsDecided(t *testing.T) {
	for _, c := range messages.Commands() {
		s := &turn.State{Last: 1}
		_, err := s.Decide(turn.Env{Agent: messages.AgentID{Tenant: "default", Kind: "a", Key: "1"}}, messages.WithID(c, "x"))
		if err != nil && strings.Contains(err.Error(), "unknown to this version") {
			t.Errorf("%s: %v", c.CommandType(), err)
		}
	}
}

// unfolded are the events that change no state, and why.
var unfolded = map[string]string{
	"command.noop": "it uses up the id of a command, which is the cause of the frame",
}

// Every event of the table is folded, or listed here as one that needs no folding.
func TestEveryEventIsFolded(t *testing.T) {
	folded := make(map[string]bool)
	for _, dir := range []string{".", filepath.Join("..", "..", "projections")} {
		casesIn(t, dir, folded)
	}
	for _, ev := range messages.Events() {
		is := folded[reflect.TypeOf(ev).Name()] || folded["ClearsAgent"] && messages.Is(ev.EventType(), messages.ClearsAgent)
		if _, listed := unfolded[ev.EventType()]; listed == is {
			t.Errorf("%s: folded %v, listed as unfolded %v", ev.EventType(), is, listed)
		}
	}
}

// casesIn adds the types of messages that a type switch or assertion of the folder's code names,
// and the traits that it asks for.
func casesIn(t *testing.T, dir string, found map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	note := func(e ast.Expr) {
		if sel, ok := e.(*ast.SelectorExpr); ok {
			if of, ok := sel.X.(*ast.Ident); ok && of.Name == "messages" {
				found[sel.Sel.Name] = true
			}
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "answer.go" { // which changes no state
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CaseClause:
				for _, e := range n.List {
					note(e)
				}
			case *ast.TypeAssertExpr:
				note(n.Type)
			case *ast.CallExpr:
				if is, ok := n.Fun.(*ast.SelectorExpr); ok && is.Sel.Name == "Is" {
					for _, e := range n.Args {
						note(e)
					}
				}
			}
			return true
		})
	}
}
