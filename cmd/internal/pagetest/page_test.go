package pagetest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module, seen from this package.
const root = "../../.."

// page is a Markdown file.
type page struct {
	name       string // below the root, with slashes
	lines      []string
	blocks     []*block
	directives []directive // all of them, in order
	problems   []problem   // of its form
	code       []bool      // by line: inside a block, or a fence
}

// block is a fenced block.
type block struct {
	line       int // of its opening fence, from 1
	indent     string
	language   string
	lines      []string // without the indentation of the fence
	directives []directive
}

// directive is a comment that the tests read.
type directive struct {
	line        int // from 1
	name, value string
}

// problem is what is wrong at a line.
type problem struct {
	line int
	text string
}

var (
	fence   = regexp.MustCompile("^([ \t]*)(`{3,})[ \t]*(.*?)[ \t]*$")
	comment = regexp.MustCompile(`^\s*<!--\s*(.*?)\s*-->\s*$`)
)

// ofBlocks are the directives that stand above a block.
var ofBlocks = []string{"file", "from", "not run"}

// ofOthers are comments that other tests read, around lists and tables that are compared with the source or written from it.
var ofOthers = []string{"places", "keys", "end of keys", "generated", "end"}

// parsePage reads a page. What is wrong with its form is in problems.
func parsePage(name, text string) *page {
	p := &page{name: name, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	p.code = make([]bool, len(p.lines))
	var open *block
	var ticks string
	var above []directive
	for i, line := range p.lines {
		n := i + 1
		if open != nil {
			p.code[i] = true
			if m := fence.FindStringSubmatch(line); m != nil && m[3] == "" && strings.HasPrefix(m[2], ticks) {
				open = nil
				continue
			}
			open.lines = append(open.lines, strings.TrimPrefix(line, open.indent))
			continue
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			p.code[i] = true
			open, ticks = &block{line: n, indent: m[1], language: m[3], directives: above}, m[2]
			p.blocks, above = append(p.blocks, open), nil
			continue
		}
		d, found, err := parseDirective(n, line)
		switch {
		case err != "":
			p.problem(n, "%s", err)
		case found:
			p.directives = append(p.directives, d)
			if slices.Contains(ofBlocks, d.name) {
				above = append(above, d)
			}
			continue
		}
		p.orphans(above)
		above = nil
		if strings.HasPrefix(strings.TrimSpace(line), "~~~") {
			p.problem(n, "a block begins with ```")
		}
	}
	p.orphans(above)
	if open != nil {
		p.problem(open.line, "the block does not end")
	}
	return p
}

func (p *page) orphans(above []directive) {
	for _, d := range above {
		p.problem(d.line, "the directive %q is not above a block", d.name)
	}
}

func (p *page) problem(line int, format string, args ...any) {
	p.problems = append(p.problems, problem{line, fmt.Sprintf(format, args...)})
}

// parseDirective reads a line that is a comment. It returns what is wrong with it, too.
func parseDirective(line int, text string) (d directive, found bool, wrong string) {
	if !strings.Contains(text, "<!--") {
		return d, false, ""
	}
	m := comment.FindStringSubmatch(text)
	if m == nil {
		if strings.Contains(text, "`") { // a page that explains comments
			return d, false, ""
		}
		return d, false, "a comment stands on a line of its own"
	}
	name, value, _ := strings.Cut(m[1], ":")
	d = directive{line: line, name: name, value: strings.TrimSpace(value)}
	switch {
	case slices.Contains(ofOthers, d.name):
		return d, false, ""
	case !slices.Contains(append([]string{"run", "model"}, ofBlocks...), d.name):
		return d, false, fmt.Sprintf("%q is no directive: file, from, not run, run, model", m[1])
	case d.value == "":
		return d, false, fmt.Sprintf("the directive %q has no value", d.name)
	}
	return d, true, ""
}

// value returns what a directive of the block has, or nothing.
func (b *block) value(name string) string {
	for _, d := range b.directives {
		if d.name == name {
			return d.value
		}
	}
	return ""
}

// text is what the block holds.
func (b *block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// runs reports whether a page has commands.
func (p *page) runs() bool {
	return slices.ContainsFunc(p.blocks, func(b *block) bool { return b.run() }) ||
		slices.ContainsFunc(p.directives, func(d directive) bool { return d.name == "run" })
}

// run reports whether a block has commands that are run.
func (b *block) run() bool {
	return b.value("not run") == "" && b.value("file") == "" && (b.language == "console" || b.language == "sh")
}

// pages reads the Markdown files of the root and of docs.
func pages(t *testing.T) []*page {
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
	if err != nil {
		t.Fatal(err)
	}
	var all []*page
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsePage(filepath.ToSlash(name), string(data)))
	}
	if len(all) == 0 {
		t.Fatal("there are no pages")
	}
	return all
}

// isDoc reports whether the page is held to the rules of blocks, words and figures.
func (p *page) isDoc() bool {
	return strings.HasPrefix(p.name, "docs/") || slices.Contains([]string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}, p.name)
}

// prose is the page without its blocks, code spans, comments and the targets of links: a text
// with the same lines, in which spaces stand for what was left out.
func (p *page) prose() string {
	lines := slices.Clone(p.lines)
	for i := range lines {
		if p.code[i] {
			lines[i] = ""
		}
	}
	text := strings.Join(lines, "\n")
	for _, pattern := range notProse {
		text = pattern.ReplaceAllStringFunc(text, func(s string) string {
			return strings.Map(func(r rune) rune {
				if r == '\n' {
					return r
				}
				return ' '
			}, s)
		})
	}
	return text
}

var notProse = []*regexp.Regexp{
	regexp.MustCompile(`(?s)<!--.*?-->`),
	regexp.MustCompile("``[^`](?:[^`]|`[^`])*``"),
	regexp.MustCompile("`[^`\n]*(?:\n[^`\n]+)?`"),
	regexp.MustCompile(`\]\([^)]*\)`),
	regexp.MustCompile(`https?://\S+`),
	regexp.MustCompile(`<[^>\n]+>`),
}

// lineAt is the line, from 1, of a place in a text.
func lineAt(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

// faults reports the problems of a page.
func faults(t *testing.T, p *page, problems []problem) {
	t.Helper()
	for _, found := range problems {
		t.Errorf("%s:%d: %s", p.name, found.line, found.text)
	}
}
