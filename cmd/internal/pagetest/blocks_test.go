package pagetest

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/reprise-dev/reprise/cmd/internal/config"
)

// languages are those that need no directive.
var languages = []string{"console", "sh", "yaml", "go", "json", "text", "mermaid"}

// drawings are the first words of a mermaid block.
var drawings = []string{"flowchart", "graph", "sequenceDiagram", "stateDiagram-v2", "classDiagram", "erDiagram", "gantt", "timeline", "block-beta"}

// TestBlocks holds the blocks and directives of each page to the contract of this package, as far as
// that shows without running them.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		if p.isDoc() {
			faults(t, p, p.badBlocks(readTree))
		}
	}
}

// readTree reads a file of the tree.
func readTree(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	return string(data), err
}

// badBlocks are what is wrong with the blocks of a page.
func (p *page) badBlocks(read func(name string) (string, error)) []problem {
	bad := slices.Clone(p.problems)
	for _, b := range p.blocks {
		for _, text := range b.wrong(read) {
			bad = append(bad, problem{b.line, text})
		}
	}
	for _, d := range p.directives {
		if d.name == "model" {
			if _, err := answer(d.value); err != nil {
				bad = append(bad, problem{d.line, err.Error()})
			}
		}
	}
	return bad
}

// wrong returns what is wrong with a block.
func (b *block) wrong(read func(name string) (string, error)) (texts []string) {
	file, from := b.value("file"), b.value("from")
	wrong := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	for i, d := range b.directives {
		if slices.ContainsFunc(b.directives[:i], func(other directive) bool { return other.name == d.name }) {
			wrong("two directives %q", d.name)
		}
	}
	if file != "" && (path.IsAbs(file) || path.Clean(file) != file || strings.HasPrefix(file, "../")) {
		wrong("%q is not a file in the folder of the page", file)
	}
	if from != "" {
		if source, err := read(from); err != nil {
			wrong("%v", err)
		} else if !isPart(b.lines, source) {
			wrong("the block is not a part of %s", from)
		}
	}
	if b.value("not run") != "" {
		if file != "" || from != "" {
			wrong("the block has %q and another directive", "not run")
		}
		return texts
	}
	switch {
	case b.language == "":
		wrong("the block has no language: %s, or another one", strings.Join(languages, ", "))
	case slices.Contains(languages, b.language):
		if err := b.form(from != ""); err != nil {
			wrong("%v", err)
		}
	case file == "" && from == "":
		wrong("a block of %s has a directive: file, from or not run", b.language)
	}
	return texts
}

// form checks what a block holds by its language.
func (b *block) form(part bool) error {
	switch b.language {
	case "console":
		_, err := transcript(b)
		return err
	case "sh":
		_, err := commands(b)
		return err
	case "json":
		return checkJSON(b.text())
	case "yaml":
		return checkYAML(b.text())
	case "go":
		if part {
			return nil
		}
		if !packageClause.MatchString(b.text()) {
			return fmt.Errorf("a block of go is a whole file, or it has the directive from")
		}
		_, err := parser.ParseFile(token.NewFileSet(), "page.go", b.text(), parser.SkipObjectResolution)
		return err
	case "mermaid":
		first, _, _ := strings.Cut(strings.TrimSpace(b.text()), "\n")
		if word, _, _ := strings.Cut(first, " "); !slices.Contains(drawings, word) {
			return fmt.Errorf("mermaid has no drawing %q", word)
		}
	}
	return nil
}

var packageClause = regexp.MustCompile(`(?m)^package \w+`)

// checkJSON takes one document, or one on each line.
func checkJSON(text string) error {
	if json.Valid([]byte(text)) {
		return nil
	}
	for line := range strings.Lines(text) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return fmt.Errorf("neither a JSON document nor one on each line: %w in %s", err, line)
		}
	}
	return nil
}

var agents = regexp.MustCompile(`(?m)^agents:`)

// checkYAML takes a configuration with agents, in which each variable has a value, or any other document.
func checkYAML(text string) error {
	if agents.MatchString(text) {
		_, err := config.Parse("reprise.yaml", []byte(text), variable)
		return err
	}
	var v any
	return yaml.Unmarshal([]byte(text), &v)
}

// variable is a value that fits the name of a variable.
func variable(name string) (string, bool) {
	if strings.Contains(name, "URL") {
		return "https://models.example.com/v1", true
	}
	return "example", true
}

// isPart reports whether lines follow one another in a source, whatever their indentation.
func isPart(lines []string, source string) bool {
	trim := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = strings.TrimSpace(line)
		}
		return out
	}
	part, whole := trim(lines), trim(strings.Split(source, "\n"))
	if len(part) == 0 {
		return false
	}
	for i := range whole {
		if i+len(part) <= len(whole) && slices.Equal(whole[i:i+len(part)], part) {
			return true
		}
	}
	return false
}
