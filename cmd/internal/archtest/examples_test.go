package archtest

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// begins are the names of functions that a program begins with.
var begins = regexp.MustCompile(`^(New|Open|Start|Connect|Parse)([A-Z]|$)`)

// unexampled are the packages, and functions as package.Name, that have no example, with the reasons.
var unexampled = map[string]string{
	"actors.NewRuntime":                      "cluster.Start makes it, and actorstest.Stage.Start in a test",
	"actors/turn/turntest":                   "tests of the turn machine alone use it",
	"cluster/clustertest":                    "tests of this repository alone use it",
	"cluster/gateway":                        "a part of a node, which cluster.Start makes",
	"cluster/gateway/metrics":                "a part of a node, which cluster.Start makes",
	"cluster/inbox":                          "a part of a node, which cluster.Start makes",
	"cluster/integrity":                      "a part of a node, which cluster.Start makes",
	"cluster/ownership":                      "a part of a node, which cluster.Start makes",
	"cluster/protocoltest":                   "tests of this repository alone use it",
	"cluster/traces.NewExporter":             "a part of a node: cluster.Config.Telemetry",
	"eventlog/logtest":                       "tests of logs alone use it",
	"eventlog/natslog.Connect":               "the example of Open names it; it needs a server elsewhere",
	"eventlog/natslog/embedded.StartCluster": "for tests and benchmarks",
	"eventlog/natslog/embedded.StartContext": "as Start, of which there is an example",
	"eventlog/natslog/embedded/embeddedtest": "tests of this repository alone use it",
	"eventlog/prefix":                        "a part of the runtime, which reads forks through it",
	"messages/reftest":                       "tests of the reference pages alone use it",
	"messages.NewTrace":                      "endpoints and the client make it of a context",
	"messages.ParsePeer":                     "agents send one another such commands, and programs do not",
	"messages.ParsePromptInput":              "endpoints read prompts; ParseInput has an example",
	"projections.NewAgentStatus":             "owners of agents make it; client.Client.Show returns one",
	"projections/index":                      "a part of a node, which cluster.Start makes",
}

// TestExamples holds that each package for users has examples of its beginnings: each exported function New…,
// Open…, Start…, Connect and Parse… of a package for users is called by an Example of that package.
func TestExamples(t *testing.T) {
	begun, called := make(map[string]bool), make(map[string]bool)
	for _, f := range tree(t) {
		if !strings.HasPrefix(f.pkg, "cmd/") && !strings.Contains(f.pkg, "/internal/") {
			begin(f, begun)
			exemplify(f, called)
		}
	}
	if len(begun) < 40 {
		t.Fatalf("there are %d such functions: the test does not find them", len(begun))
	}
	needed := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(begun)) {
		pkg, _, _ := strings.Cut(name, ".")
		switch {
		case called[name]:
		case unexampled[name] != "":
			needed[name] = true
		case unexampled[pkg] != "":
			needed[pkg] = true
		default:
			t.Errorf("%s is called by no Example of its package", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unexampled)) {
		if !needed[name] {
			t.Errorf("%s has an example, or is no such function: take it out of the table", name)
		}
	}
}

// begin adds the functions of a file that a program begins with, as package.Name.
func begin(f file, begun map[string]bool) {
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && !f.test && fn.Recv == nil && begins.MatchString(fn.Name.Name) {
			begun[f.pkg+"."+fn.Name.Name] = true
		}
	}
}

// exemplify adds what the examples of a file call of their package.
func exemplify(f file, called map[string]bool) {
	own := f.pkg[strings.LastIndex(f.pkg, "/")+1:]
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || !f.test || !strings.HasPrefix(fn.Name.Name, "Example") {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == own {
				called[f.pkg+"."+s.Sel.Name] = true
			}
			return true
		})
	}
}

// TestExamplesBite shows the check an example that calls a function and some that do not.
func TestExamplesBite(t *testing.T) {
	for body, want := range map[string]bool{
		`func ExampleNew() { memlog.New() }`:          true,
		`func Example() { _ = memlog.New().Head }`:    true,
		`func ExampleNew() { other.New() }`:           false,
		`func TestNew(t *testing.T) { memlog.New() }`: false,
	} {
		f, err := parse("eventlog/memlog/example_test.go", []byte("package memlog_test\n"+body+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		called := make(map[string]bool)
		if exemplify(f, called); called["eventlog/memlog.New"] != want {
			t.Errorf("%s: got %v", body, called)
		}
	}
}
