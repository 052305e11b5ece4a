package pagetest

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write what commands print into the pages, and take pages off testdata/unwritten.txt that are held")

// unwritten names pages that are not held to a rule yet, a line for each: the rule and the page. It only gets shorter.
const unwritten = "testdata/unwritten.txt"

var (
	readUnwritten = sync.OnceValues(func() ([]string, error) {
		data, err := os.ReadFile(unwritten)
		return strings.Split(strings.TrimSpace(string(data)), "\n"), err
	})
	removing sync.Mutex
)

// excused reports whether a page is not held to a rule yet.
func excused(t *testing.T, rule string, p *page) bool {
	t.Helper()
	list, err := readUnwritten()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(list, rule+" "+p.name)
}

// held reports what is wrong with a page by a rule, unless it is not held to it yet. A page that could be held is
// an error.
func held(t *testing.T, rule string, p *page, problems []problem) {
	t.Helper()
	switch out := excused(t, rule, p); {
	case !out:
		for _, found := range problems {
			t.Errorf("%s:%d: %s", p.name, found.line, found.text)
		}
	case len(problems) == 0 && *update:
		takeOff(t, rule+" "+p.name)
	case len(problems) == 0:
		t.Errorf("%s keeps the rule %q: take it off %s, or run this test with -update", p.name, rule, unwritten)
	}
}

// takeOff removes a line from the list.
func takeOff(t *testing.T, line string) {
	t.Helper()
	removing.Lock()
	defer removing.Unlock()
	data, err := os.ReadFile(unwritten)
	if err == nil {
		err = os.WriteFile(unwritten, []byte(strings.Replace("\n"+string(data), "\n"+line+"\n", "\n", 1)[1:]), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnwritten holds that the list names pages and rules that there are.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	list, err := readUnwritten()
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	for _, line := range list {
		rule, name, _ := strings.Cut(line, " ")
		is := slices.ContainsFunc(all, func(p *page) bool { return p.name == name })
		if line != "" && (!is || !slices.Contains([]string{"words", "blocks", "figures", "reached", "run"}, rule)) {
			if *update {
				takeOff(t, line)
				continue
			}
			t.Errorf("%s: no such rule or page: %q", unwritten, line)
		}
	}
}
