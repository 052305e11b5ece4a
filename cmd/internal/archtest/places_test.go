package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPlaces holds the lists of CONTRIBUTING.md to the tree: below a comment `places: PATTERN` stand
// all Go files, tests aside, in which the pattern is found.
func TestPlaces(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?ms)^<!-- places: (.+?) -->\n(.*?)\n\n`).FindAllStringSubmatch(string(page), -1)
	if len(lists) < 4 {
		t.Errorf("CONTRIBUTING.md has %d lists of places, want 4", len(lists))
	}
	files := tree(t)
	for _, list := range lists {
		pattern := regexp.MustCompile(list[1])
		var listed, found []string
		for _, place := range regexp.MustCompile("`([a-z/]+\\.go)`").FindAllStringSubmatch(list[2], -1) {
			listed = append(listed, place[1])
		}
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(root, f.name))
			if err != nil {
				t.Fatal(err)
			}
			if !f.test && pattern.Match(data) {
				found = append(found, f.name)
			}
		}
		slices.Sort(listed)
		slices.Sort(found)
		if !slices.Equal(listed, found) {
			t.Errorf("CONTRIBUTING.md: the places of %s are\n%s\nthe page lists\n%s", list[1], strings.Join(found, "\n"), strings.Join(listed, "\n"))
		}
	}
}
