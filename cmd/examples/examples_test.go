package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata; read the diff")

// arguments are those of examples that need some.
var arguments = map[string][]string{"verify-in-ci": {"ticket.jsonl"}}

// served are examples that run until they are stopped: a test in their folder is about them.
var served = map[string]bool{"http-handler": true}

// Every example prints what its testdata/output.txt holds, needs no network, and leaves nothing in the folder for
// temporary files.
func TestOutputs(t *testing.T) {
	t.Parallel()
	programs := build(t)
	for _, name := range examples(t) {
		if served[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("python3"); err != nil && name == "python-tool" {
				t.Skip(err)
			}
			if name == "three-nodes" && testing.Short() {
				t.Skip("runs several nodes: left out with -short")
			}
			check(t, filepath.Join(name, "testdata", "output.txt"), run(t, filepath.Join(programs, name), arguments[name]...))
		})
	}
}

// run returns what an example prints.
func run(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir, temp := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "TMPDIR="+temp, "TEMP="+temp, "TMP="+temp)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	return stdout.Bytes()
}

var masked = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`)

// check compares what was printed with a golden file.
func check(t *testing.T, golden string, got []byte) {
	t.Helper()
	got = masked.ReplaceAll(got, []byte("…"))
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o750), os.WriteFile(golden, got, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

var clause = regexp.MustCompile(`(?m)^package main$`)

// build builds all examples as one program, which does what the one does by whose name it is called: linking each of
// them would take a minute. It returns a folder with a link of each name.
func build(t *testing.T) (dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	dir = t.TempDir()
	var imports, cases strings.Builder
	replaced := map[string]string{}
	add := func(path string, text string) {
		file := filepath.Join(dir, fmt.Sprint(len(replaced), ".go"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[path] = file
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range examples(t) {
		for _, source := range sources(t, name) {
			if strings.HasSuffix(source, "_test.go") {
				replaced[filepath.Join(here, source)] = "" // it is not there
				continue
			}
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			library := clause.ReplaceAllString(string(text), fmt.Sprint("package p", i))
			add(filepath.Join(here, source), strings.Replace(library, "\nfunc main() {\n", "\nfunc Main() {\n", 1))
		}
		fmt.Fprintf(&imports, "\tp%d %q\n", i, "github.com/reprise-dev/reprise/cmd/examples/"+name)
		fmt.Fprintf(&cases, "\tcase %q:\n\t\tp%d.Main()\n", name, i)
	}
	add(filepath.Join(here, "all", "main.go"), fmt.Sprintf("// All is every example.\npackage main\n\nimport (\n\t\"os\"\n\t\"path/filepath\"\n%s)\n\nfunc main() {\n"+
		"\tswitch filepath.Base(os.Args[0]) {\n%s\tdefault:\n\t\tpanic(os.Args[0])\n\t}\n}\n", &imports, &cases))
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "all")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-ldflags", "-s -w", "-o", program, "./all")
	// Without cgo, as make test has built the same packages: they are found in the cache.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, name := range examples(t) {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// examples returns the names of the folders.
func examples(t *testing.T) (names []string) {
	t.Helper()
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) < 12 {
		t.Fatalf("there are %d examples, %v", len(mains), err)
	}
	for _, m := range mains {
		names = append(names, filepath.Dir(m))
	}
	return names
}

// sources returns the Go files of an example.
func sources(t *testing.T, name string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var imports = regexp.MustCompile(`(?s)\nimport \(\n.*?\n\)\n`)

// Each example is about a screen long, begins with what it shows and how to run it, and is in README.md.
func TestForm(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range examples(t) {
		text, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		comment, code, _ := strings.Cut(string(text), "\npackage main\n")
		if capital := strings.ToUpper(name[:1]) + name[1:]; !strings.HasPrefix(comment, "// "+capital+" ") || !strings.Contains(comment, "\n//\tgo run ./cmd/examples/"+name) {
			t.Errorf("%s: the comment of the package does not begin with %q and contain how to run it", name, capital)
		}
		if lines := strings.Count(imports.ReplaceAllString(code, ""), "\n"); lines > 80 {
			t.Errorf("%s: %d lines without comment and imports: an example has 80 at most", name, lines)
		}
		if !bytes.Contains(readme, fmt.Appendf(nil, "| [%s](%s/main.go) |", name, name)) {
			t.Errorf("README.md has no line about %s", name)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.FromSlash(string(link[1]))); errors.Is(err, fs.ErrNotExist) {
			t.Errorf("README.md links to %s, which does not exist", link[1])
		}
	}
}
