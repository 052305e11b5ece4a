package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// machine are signs of the machine that a page was written on.
var machine = []string{"/root/", "/home/", "/Users/", "/work/", "/tmp/bash"}

// TestPages holds that links between our pages lead somewhere and that no page
// names a place that only its author has.
func TestPages(t *testing.T) {
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, _, _ := strings.Cut(m[1], "#")
				if target == "" || strings.Contains(target, ":") {
					continue
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(target))); err != nil {
					t.Errorf("%s:%d: the link to %s leads nowhere", page, i+1, target)
				}
			}
			for _, sign := range machine {
				if strings.Contains(line, sign) {
					t.Errorf("%s:%d: %s is a place on one machine", page, i+1, sign)
				}
			}
		}
	}
}

// pages are the Markdown files of the root and of docs.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}
