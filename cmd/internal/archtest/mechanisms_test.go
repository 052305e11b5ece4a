package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// internals are the pages that describe the code for those who change it.
const internals = "docs/internals"

// What pages write between backticks: a file, a test, a name of a package.
var (
	spelled    = regexp.MustCompile("`([^`]+)`")
	fileName   = regexp.MustCompile(`^[\w./-]+\.(go|txt)$`)
	testName   = regexp.MustCompile(`^(?:(\w+)\.)?((?:Test|Fuzz|Benchmark)\w+)(?:/([\w-]+))?$`)
	dottedName = regexp.MustCompile(`^([A-Za-z]\w*)\.(\w+)(?:\.(\w+))?$`)
)

// TestMechanisms holds that what the pages about the internals name is in the tree: files, tests
// and names of packages.
func TestMechanisms(t *testing.T) {
	known := nameCode(tree(t))
	known.files = append(known.files, stories(t)...)
	read := 0
	err := filepath.WalkDir(filepath.Join(root, internals), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		for _, p := range known.missing(string(data)) {
			t.Errorf("%s: %s", path, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 2 {
		t.Errorf("%d pages were read below %s", read, internals)
	}
}

// TestMechanismsBite shows the check names that are there and some that are not.
func TestMechanismsBite(t *testing.T) {
	f, err := parse("eventlog/natslog/purge.go", []byte("package natslog\ntype Log struct{ held bool }\nfunc (*Log) Hold() {}\nfunc TestPurge() {}\nconst limit = 1"))
	if err != nil {
		t.Fatal(err)
	}
	known := nameCode([]file{f})
	for text, want := range map[string]int{
		"`natslog.TestPurge`, `TestPurge`": 0,
		"`natslog.Log.Hold`, `Log.Hold`":   0,
		"`Log.Held`":                       1,
		"`natslog.limit`":                  0,
		"`eventlog/natslog/purge.go`":      0,
		"`purge.go`":                       0,
		"`natslog/gone.go`":                1,
		"`urge.go`":                        1,
		"`natslog.TestGone`":               1,
		"`memlog.TestPurge`":               1,
		"`natslog.TestPurge`, `TestGone`":  1,
		"`natslog.Log.Held`":               1,
		"`natslog.Gone`":                   1,
		"`REPRISE_LOG_0`, `bench turns`":   0,
		"natslog.Gone":                     0,
		"```\n`natslog.Gone`\n```":         0,
		"| `natslog.Log` | `TestGone` |\n": 1,
	} {
		if got := known.missing(text); len(got) != want {
			t.Errorf("%q: got %q, want %d", text, got, want)
		}
	}
}

// code is what the files of the tree declare.
type code struct {
	files []string
	// names are the functions, types, methods, fields, constants and variables, by package.
	names  map[string]map[string]bool
	events []string // the types of events, which look like names
}

// nameCode returns what files declare.
func nameCode(files []file) code {
	c := code{names: make(map[string]map[string]bool), events: slices.Collect(maps.Values(eventsOf(files)))}
	for _, f := range files {
		c.files = append(c.files, f.name)
		pkg := strings.TrimSuffix(f.ast.Name.Name, "_test")
		if c.names[pkg] == nil {
			c.names[pkg] = make(map[string]bool)
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, name := range declared(n) {
				c.names[pkg][name] = true
			}
			return true
		})
	}
	return c
}

// missing returns what a page names that does not exist. Blocks of code are not read.
func (c code) missing(page string) (problems []string) {
	block := false
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "```") {
			block = !block
		}
		if block {
			continue
		}
		pkg := ""
		for _, m := range spelled.FindAllStringSubmatch(line, -1) {
			if problem := c.lacks(m[1], &pkg); problem != "" {
				problems = append(problems, fmt.Sprintf("line %d: %s", i+1, problem))
			}
		}
	}
	return problems
}

// lacks returns why a name is of nothing in the tree; empty if it is of something, or is no name
// of code. pkg is the package of the test before it in the line, which a test without one shares.
func (c code) lacks(name string, pkg *string) string {
	if fileName.MatchString(name) {
		if !slices.ContainsFunc(c.files, func(f string) bool { return f == name || strings.HasSuffix(f, "/"+name) }) {
			return "there is no file " + name
		}
		return ""
	}
	if m := testName.FindStringSubmatch(name); m != nil {
		*pkg = cmp.Or(m[1], *pkg)
		if !c.names[*pkg][m[2]] {
			return fmt.Sprintf("package %q has no test %s", *pkg, m[2])
		}
		return ""
	}
	m := dottedName.FindStringSubmatch(name)
	switch {
	case m == nil || slices.Contains(c.events, name):
	case c.names[m[1]] != nil:
		for _, part := range m[2:] {
			if part != "" && !c.names[m[1]][part] {
				return fmt.Sprintf("package %s declares no %s", m[1], part)
			}
		}
	case unicode.IsUpper(rune(m[1][0])) && !c.together(m[1], m[2]):
		return fmt.Sprintf("no package declares %s and %s", m[1], m[2])
	}
	return ""
}

// together reports whether a package declares both names.
func (c code) together(a, b string) bool {
	for _, names := range c.names {
		if names[a] && names[b] {
			return true
		}
	}
	return false
}

// stories returns the files of text in the tree.
func stories(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".txt") {
			names = append(names, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
