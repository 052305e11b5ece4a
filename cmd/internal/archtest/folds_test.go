package archtest

import (
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFolds holds that what an event means is decided in one package, projections. Others do not
// switch over events, assert the type of one, or name one by X{}.EventType(), except for those in
// the tables, with their reasons; they read what projections have made of events, or ask for traits
// and fields. No one writes the type of an event as a literal.
func TestFolds(t *testing.T) {
	files := tree(t)
	events := eventsOf(files)
	if len(events) < 40 {
		t.Fatalf("package messages has %d events: the test does not find them", len(events))
	}
	needed := make(map[string]bool)
	for _, f := range files {
		for _, u := range uses(f, events) {
			table := excused[u.how]
			switch _, pkg := table[f.pkg]; {
			case pkg:
				needed[f.pkg] = true
			case table[f.name] != "":
				needed[f.name] = true
			default:
				t.Errorf("%s: %s messages.%s: ask for its traits or fields, or use what package projections has made of it", f.name, u.how, u.event)
			}
		}
	}
	for how, table := range excused {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if !needed[name] {
				t.Errorf("%s: it %s no event any more: take it out of the table", name, how)
			}
		}
	}
}

// TestFoldsBite shows the check uses of an event and some that are none.
func TestFoldsBite(t *testing.T) {
	events := map[string]string{"TurnStarted": "turn.started"}
	for name, c := range map[string]struct {
		file, body string
		want       []use
	}{
		"fold abroad":         {"actors/a.go", `func f(ev any) { switch ev.(type) { case messages.TurnStarted: } }`, []use{{interprets, "TurnStarted"}}},
		"several in a clause": {"cmd/a.go", `func f(ev any) { switch ev := ev.(type) { case int, messages.TurnStarted: _ = ev } }`, []use{{interprets, "TurnStarted"}}},
		"fold at home":        {"projections/a.go", `func f(ev any) { switch ev.(type) { case messages.TurnStarted: } }`, nil},
		"in a test":           {"actors/a_test.go", `func f(ev any) { switch ev.(type) { case messages.TurnStarted: } }`, nil},
		"fold in messages":    {"messages/a.go", `func f(ev any) { switch ev.(type) { case TurnStarted: } }`, []use{{interprets, "TurnStarted"}}},
		"no event":            {"actors/a.go", `func f(c any) { switch c.(type) { case messages.Approve: } }`, nil},
		"assertion":           {"actors/a.go", `func f(ev any) { _, _ = ev.(messages.TurnStarted) }`, []use{{interprets, "TurnStarted"}}},
		"assertion at home":   {"projections/a.go", `func f(ev any) { _, _ = ev.(messages.TurnStarted) }`, nil},
		"no event asserted":   {"actors/a.go", `func f(ev any) { _, _ = ev.(messages.Approve) }`, nil},
		"name":                {"cmd/a.go", `func f(s string) bool { return s == (messages.TurnStarted{}).EventType() }`, []use{{mentions, "TurnStarted"}}},
		"name in a clause":    {"cmd/a.go", `func f(s string) { switch s { case messages.TurnStarted{}.EventType(): } }`, []use{{mentions, "TurnStarted"}}},
		"name of what it has": {"cmd/a.go", `func f(ev messages.Event) string { return ev.EventType() }`, nil},
		"event made":          {"actors/a.go", `func f() any { return messages.TurnStarted{} }`, nil},
		"literal":             {"cmd/a.go", `func f(s string) bool { return s == "turn.started" }`, []use{{spells, "TurnStarted"}}},
		"literal at home":     {"projections/a.go", "const s = `turn.started`", []use{{spells, "TurnStarted"}}},
		"literal in JSON":     {"cmd/a.go", "const s = `\"type\":\"turn.started\"`", []use{{spells, "TurnStarted"}}},
		"literal in example":  {"cmd/examples/hello/main.go", `func f(s string) bool { return s == "turn.started" }`, nil},
		"literal in a text":   {"cmd/a.go", `const s = "waits for turn.started"`, nil},
		"literal of the type": {"messages/a.go", `func (TurnStarted) EventType() string { return "turn.started" }`, nil},
	} {
		f, err := parse(c.file, []byte("package p\n"+c.body+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := uses(f, events); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// useKind is what a file does with an event.
type useKind string

// The kinds.
const (
	interprets useKind = "switches over or asserts" // its type
	mentions   useKind = "names"                    // its type by X{}.EventType()
	spells     useKind = "writes the type of"       // as a literal
)

// use is one use of an event in a file.
type use struct {
	how   useKind
	event string
}

// excused are the files and packages outside of projections that may use events, with the reasons.
var excused = map[useKind]map[string]string{
	interprets: {
		"actors/verify":        "makes of events what they were decided upon, for the machine that has made them",
		"cluster/clustertest":  "judges and measures a log without the code that it judges",
		"actors/turn/turntest": "the commands of a story name what its events hold",
	},
	mentions: {
		"actors/verify":               "lists the fields of events that are not compared",
		"cmd/internal/cli":            "shows a person the facts of a stream one by one",
		"cluster/clustertest/load.go": "judges an answer without the code that it judges",
		"cmd/internal/bench":          "waits for the facts that it measures",
		"eventlog/logtest":            "compares headers with the events that it has written",
		"eventlog/natslog/stored.go":  "searches bytes before it decodes headers",
	},
}

// eventsOf returns the names of the types in package messages that are events, and what their
// EventType returns.
func eventsOf(files []file) map[string]string {
	events := make(map[string]string)
	for _, f := range files {
		if f.pkg != "messages" || f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			if receiver, method := typeMethod(decl); method != nil {
				ast.Inspect(method.Body, func(n ast.Node) bool {
					if s, ok := n.(*ast.BasicLit); ok {
						events[receiver] = text(s)
					}
					return true
				})
			}
		}
	}
	return events
}

// typeMethod returns the method EventType that decl declares, and its receiver's type; nil if it
// declares none.
func typeMethod(decl ast.Node) (receiver string, method *ast.FuncDecl) {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok || fn.Name.Name != "EventType" || fn.Recv == nil {
		return "", nil
	}
	if receiver, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
		return receiver.Name, fn
	}
	return "", nil
}

// uses returns the uses of events in a file. In projections only literals are. Examples have none:
// they show the words that users write.
func uses(f file, events map[string]string) (found []use) {
	if f.test || fits("cmd/examples/...", f.pkg) {
		return nil
	}
	add := func(how useKind, expr ast.Expr) {
		if name := inMessages(f, expr); events[name] != "" && f.pkg != "projections" {
			found = append(found, use{how, name})
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			_, method := typeMethod(n)
			return method == nil || f.pkg != "messages"
		case *ast.TypeSwitchStmt:
			for _, clause := range n.Body.List {
				for _, expr := range clause.(*ast.CaseClause).List {
					add(interprets, expr)
				}
			}
		case *ast.TypeAssertExpr:
			add(interprets, n.Type)
		case *ast.SelectorExpr:
			if literal, ok := ast.Unparen(n.X).(*ast.CompositeLit); ok && n.Sel.Name == "EventType" {
				add(mentions, literal.Type)
			}
		case *ast.BasicLit:
			for event, eventType := range events {
				if s := text(n); s == eventType || strings.Contains(s, strconv.Quote(eventType)) {
					found = append(found, use{spells, event})
				}
			}
		}
		return true
	})
	return found
}

// text returns the value of a string literal; empty for any other.
func text(literal *ast.BasicLit) string {
	s, _ := strconv.Unquote(literal.Value)
	return s
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
