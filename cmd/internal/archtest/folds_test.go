package archtest

import (
	"go/ast"
	"maps"
	"slices"
	"testing"
)

// TestFolds holds that what an event means is decided in one package, projections: a type
// switch over events stands there, or in a file of the table with its reason. All others
// read what projections have made of them.
func TestFolds(t *testing.T) {
	files := tree(t)
	events := eventsOf(files)
	if len(events) < 40 {
		t.Fatalf("package messages has %d events: the test does not find them", len(events))
	}
	needed := make(map[string]bool)
	for _, f := range files {
		found := folds(f, events)
		if _, ok := switches[f.name]; ok {
			needed[f.name] = len(found) > 0
			continue
		}
		for _, event := range found {
			t.Errorf("%s: a type switch over messages.%s: package projections folds it; use what it has made of it", f.name, event)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(switches)) {
		if !needed[name] {
			t.Errorf("%s: it has no type switch over events any more: take it out of the table", name)
		}
	}
}

// TestFoldsBite shows the check a switch over events and some that are not.
func TestFoldsBite(t *testing.T) {
	events := map[string]bool{"TurnStarted": true}
	for name, c := range map[string]struct {
		file, body string
		want       int
	}{
		"fold abroad":         {"actors/a.go", `func f(ev any) { switch ev.(type) { case messages.TurnStarted: } }`, 1},
		"several in a clause": {"cmd/a.go", `func f(ev any) { switch ev := ev.(type) { case int, messages.TurnStarted: _ = ev } }`, 1},
		"fold at home":        {"projections/a.go", `func f(ev any) { switch ev.(type) { case messages.TurnStarted: } }`, 0},
		"in a test":           {"actors/a_test.go", `func f(ev any) { switch ev.(type) { case messages.TurnStarted: } }`, 0},
		"fold in messages":    {"messages/a.go", `func f(ev any) { switch ev.(type) { case TurnStarted: } }`, 1},
		"no event":            {"actors/a.go", `func f(c any) { switch c.(type) { case messages.Approve: } }`, 0},
	} {
		f, err := parse(c.file, []byte("package p\n"+c.body+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := folds(f, events); len(got) != c.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// switches are the files outside of projections that may switch over events.
var switches = map[string]string{
	"cluster/clustertest/proof.go":  "judges a log without the code that it judges",
	"cluster/clustertest/stored.go": "judges a log without the code that it judges",
	"cluster/clustertest/times.go":  "measures a log without the code that it measures",
}

// eventsOf returns the names of the types in package messages that are events.
func eventsOf(files []file) map[string]bool {
	events := make(map[string]bool)
	for _, f := range files {
		if f.pkg != "messages" || f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Name.Name != "EventType" || fn.Recv == nil {
				continue
			}
			if receiver, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
				events[receiver.Name] = true
			}
		}
	}
	return events
}

// folds returns the events in the type switches of a file that is not their home.
func folds(f file, events map[string]bool) (found []string) {
	if f.test || f.pkg == "projections" {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSwitchStmt)
		if !ok {
			return true
		}
		for _, clause := range s.Body.List {
			for _, expr := range clause.(*ast.CaseClause).List {
				if name := inMessages(f, expr); events[name] {
					found = append(found, name)
				}
			}
		}
		return true
	})
	return found
}

// inMessages returns the name of a type of package messages; empty if expr is none.
func inMessages(f file, expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		if f.pkg == "messages" {
			return e.Name
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "messages" {
			return e.Sel.Name
		}
	}
	return ""
}
