package pagetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// misspell finds American spellings and common mistakes, cspell words that are in no dictionary.
const (
	misspell = "github.com/golangci/misspell/cmd/misspell@v0.8.0"
	cspell   = "cspell@9.8.0"
)

// properNames are spelled as misspell would not.
const properNames = "humanize"

// words are those of the project that no dictionary has.
const words = "testdata/words.txt"

// TestSpelling checks the spelling of each page, British: with misspell, which Go fetches, and with cspell,
// which npm fetches.
func TestSpelling(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches programs: left out with -short")
	}
	t.Parallel()
	dir := t.TempDir()
	for _, p := range pages(t) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(p.name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p.name), []byte(p.prose()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("misspell", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), "go", "run", misspell, "-locale", "UK", "-error", "-i", properNames, ".")
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		report(t, dir, cmd)
	})
	t.Run("cspell", func(t *testing.T) {
		t.Parallel()
		program := filepath.Join(npmPackages(t, cspell), "node_modules", ".bin", "cspell")
		list, err := filepath.Abs(words)
		if err != nil {
			t.Fatal(err)
		}
		config := fmt.Sprintf(`{"version": "0.2", "language": "en-GB", "dictionaries": ["en-gb", "softwareTerms", "golang", "words"],
			"dictionaryDefinitions": [{"name": "words", "path": %q}]}`, list)
		if err := os.WriteFile(filepath.Join(dir, "cspell.json"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		report(t, dir, exec.CommandContext(t.Context(), program, "lint", "--no-progress", "--no-summary", "--no-color", "--unique", "**/*.md"))
	})
}

// report runs a checker in a folder. What it prints is what is wrong.
func report(t *testing.T, dir string, cmd *exec.Cmd) {
	t.Helper()
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v; a word of the project belongs in %s\n%s", err, words, strings.ReplaceAll(string(out), dir+"/", ""))
	}
}

// npmPackages returns a folder with packages that npm has installed, once for each machine and versions.
func npmPackages(t *testing.T, packages ...string) (dir string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(cache, "reprise-pages", strings.Join(packages, "+"))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "install")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	cmd := exec.CommandContext(t.Context(), "npm", append([]string{"install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"}, packages...)...)
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // another test was not faster
			t.Fatal(err)
		}
	}
	return dir
}
