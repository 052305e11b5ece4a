//go:build unix

package pagetest

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrograms builds and vets the Go files of all pages in a module of another author, against this tree.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command: left out with -short")
	}
	t.Parallel()
	dir := t.TempDir()
	shown := 0
	for _, p := range pages(t) {
		if !p.isDoc() {
			continue
		}
		for _, b := range p.blocks {
			if b.language != "go" || b.value("from") != "" || b.value("not run") != "" {
				continue
			}
			shown++
			name := path.Join(strings.TrimSuffix(p.name, ".md"), b.program())
			if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), b.text()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if shown == 0 {
		t.Skip("no page has a Go file of its own")
	}
	env := environment(t, dir)
	for _, args := range [][]string{{"mod", "init", "example.com/pages"}, {"get", "github.com/reprise-dev/reprise"}, {"vet", "./..."}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "go"), args...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v: folders are pages, line_N is a block that is in no file\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// program is the file of a block that is a Go file: its own, or one in a folder for its line.
func (b *block) program() string {
	if name := b.value("file"); name != "" {
		return name
	}
	name := "main.go"
	if strings.Contains(b.text(), "*testing.T)") {
		name = "page_test.go"
	}
	return fmt.Sprintf("line_%d/%s", b.line, name)
}

// writeFile writes a file and its folders.
func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	return os.WriteFile(name, []byte(text), mode)
}
