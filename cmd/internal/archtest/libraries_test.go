package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each module that go.mod requires directly is on the page about libraries, by the last part of its name.
func TestLibraries(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	page := read("docs/decisions/0001-libraries.md")
	version := regexp.MustCompile(`[/.]v\d+$`)
	n := 0
	for line := range strings.Lines(read("go.mod")) {
		module, _, found := strings.Cut(strings.TrimSpace(line), " v")
		if !found || strings.Contains(line, "// indirect") {
			continue
		}
		n++
		name := path.Base(version.ReplaceAllString(module, ""))
		if !regexp.MustCompile("[ /`]" + regexp.QuoteMeta(name) + "[ /`]").MatchString(page) {
			t.Errorf("docs/decisions/0001-libraries.md does not name %s", module)
		}
	}
	if n < 30 {
		t.Errorf("go.mod has %d requirements, want more", n)
	}
}
