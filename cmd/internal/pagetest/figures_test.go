package pagetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestFigures logs what the pages have: go test -v -run TestFigures.
func TestFigures(t *testing.T) {
	t.Parallel()
	all := pages(t)
	blocks, ran, lines := 0, 0, 0
	languages := make(map[string]int)
	var notRun []string
	for _, p := range all {
		lines += len(p.lines)
		if p.name == "README.md" {
			t.Logf("README.md has %d lines", len(p.lines))
		}
		run := p.isDoc()
		for _, b := range p.blocks {
			blocks++
			languages[cmp.Or(b.language, "none")]++
			if b.run() && run {
				ran++
			}
			if why := b.value("not run"); why != "" {
				notRun = append(notRun, fmt.Sprintf("%s:%d: %s", p.name, b.line, why))
			}
		}
	}
	t.Logf("%d pages with %d lines and %d blocks; commands of %d blocks are run", len(all), lines, blocks, ran)
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		t.Logf("%4d blocks of %s", languages[language], language)
	}
	t.Logf("%d blocks are not run\n%s", len(notRun), strings.Join(notRun, "\n"))
}
