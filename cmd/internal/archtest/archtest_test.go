package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// each runs a check on every file and reports what it finds.
func each(t *testing.T, check func(file) []string) {
	t.Helper()
	for _, f := range tree(t) {
		for _, problem := range check(f) {
			t.Errorf("%s: %s", f.name, problem)
		}
	}
}

func TestRooms(t *testing.T) { each(t, arrows) }

// arrows are the imports of our own code that the table does not allow. Tests
// are held to it too: a room that needs the floor above to be tested knows it.
func arrows(f file) []string {
	if _, ok := unmeasured[f.pkg]; ok || f.example() {
		return nil
	}
	r, ok := roomOf(f.pkg)
	if !ok {
		return []string{"the package " + f.pkg + " is in no room of the table"}
	}
	var out []string
	for _, path := range f.imports {
		pkg, own := ours(path)
		if own && pkg != f.pkg && !fitsAny(r.may, pkg) {
			out = append(out, fmt.Sprintf("%s may not import %s: %s", f.pkg, pkg, r.why))
		}
	}
	return out
}

func TestHomes(t *testing.T) { each(t, strangers) }

// strangers are dependencies that are imported outside of their home.
func strangers(f file) []string {
	if _, ok := unmeasured[f.pkg]; ok {
		return nil
	}
	var out []string
	for _, path := range f.imports {
		for _, h := range homes {
			if of(path, h.module) && !fitsAny(h.in, f.pkg) && !(f.test && fitsAny(h.tests, f.pkg)) {
				out = append(out, fmt.Sprintf("%s may not import %s: %s", f.pkg, path, h.why))
			}
		}
	}
	return out
}

func TestDiets(t *testing.T) { each(t, excesses) }

// excesses are what a package on a diet takes in all the same. Tests may eat.
func excesses(f file) []string {
	var out []string
	for _, d := range diets {
		if f.test || !fits(d.path, f.pkg) {
			continue
		}
		for _, path := range f.imports {
			_, own := ours(path)
			foreign := !own && !standard(path) && !slices.ContainsFunc(d.only, func(m string) bool { return of(path, m) })
			if foreign || slices.ContainsFunc(d.never, func(m string) bool { return of(path, m) }) {
				out = append(out, fmt.Sprintf("%s may not import %s: %s", f.pkg, path, d.why))
			}
		}
		for _, call := range d.noCall {
			if f.calls(call) {
				out = append(out, fmt.Sprintf("%s may not use %s: %s", f.pkg, call, d.why))
			}
		}
	}
	return out
}

func TestTopLevel(t *testing.T) {
	each(t, func(f file) []string {
		if top, _, _ := strings.Cut(f.pkg, "/"); !slices.Contains(topLevel, top) {
			return []string{"Go code lives in " + strings.Join(topLevel, ", ") + " and nowhere else"}
		}
		return nil
	})
}

func TestNames(t *testing.T) {
	each(t, func(f file) []string {
		if name := strings.TrimSuffix(f.ast.Name.Name, "_test"); slices.Contains(empty, name) {
			return []string{"a package called " + name + " says nothing: name it by what it holds"}
		}
		return nil
	})
}

// TestPackageComments holds that every package has a comment that begins as godoc expects.
func TestPackageComments(t *testing.T) {
	documented := make(map[string]bool)
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		documented[f.pkg] = documented[f.pkg] || introduces(f)
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment of at least a sentence", pkg)
		}
	}
}

func introduces(f file) bool {
	comment := strings.TrimSpace(f.ast.Doc.Text())
	if f.ast.Name.Name != "main" && !strings.HasPrefix(comment, "Package "+f.ast.Name.Name+" ") {
		return false
	}
	first, _, _ := strings.Cut(comment, "\n\n")
	return strings.HasSuffix(strings.TrimSpace(first), ".") || strings.Contains(first, ". ") || strings.HasSuffix(first, ":")
}

// TestNoSleep holds that tests wait for what happens, not for time to pass.
func TestNoSleep(t *testing.T) {
	each(t, func(f file) []string {
		if f.test && f.calls("time.Sleep") {
			return []string{"a test may not call time.Sleep: wait for the event itself"}
		}
		return nil
	})
}

func TestMainIsShort(t *testing.T) {
	each(t, func(f file) []string {
		if f.pkg == "cmd/reprise" && !f.test && f.lines >= 30 {
			return []string{fmt.Sprintf("%d lines: main reads as a sentence, under 30 lines", f.lines)}
		}
		return nil
	})
}

// TestNoReplace holds that users build what we build: go install ignores
// replace directives of others.
func TestNoReplace(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(fields[0], "replace") {
			t.Errorf("go.mod:%d: a replace directive: those who import us do not get it", i+1)
		}
	}
}
