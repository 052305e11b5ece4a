package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDecisions holds the pages of docs/decisions to one form: number and title as in their table, a status, four
// sections, and at most 60 lines.
func TestDecisions(t *testing.T) {
	dir := filepath.Join(root, "docs", "decisions")
	table, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "[0-9]*.md"))
	if err != nil || len(pages) < 39 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	form := regexp.MustCompile(`^# (\d+)\. (.+)\n\nStatus: (?:accepted|superseded)`)
	heading := regexp.MustCompile(`(?m)^## .+$`)
	want := []string{"## Context", "## Decision", "## Alternatives", "## Consequences"}
	for i, name := range pages {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base, text := filepath.Base(name), string(data)
		found := form.FindStringSubmatch(text)
		switch {
		case found == nil:
			t.Errorf("%s does not begin with its number, its title and its status", base)
			continue
		case found[1] != fmt.Sprint(i+1) || !strings.HasPrefix(base, fmt.Sprintf("%04d-", i+1)):
			t.Errorf("%s has the number %s, want %d", base, found[1], i+1)
		}
		if row := fmt.Sprintf("| [%04d](%s) | %s |", i+1, base, found[2]); !strings.Contains(string(table), row) {
			t.Errorf("README.md lacks the row %s", row)
		}
		if got := heading.FindAllString(text, -1); !slices.Equal(got, want) {
			t.Errorf("%s has the sections %q, want %q", base, got, want)
		}
		if n := strings.Count(text, "\n"); n > 60 {
			t.Errorf("%s has %d lines, want at most 60", base, n)
		}
	}
}
