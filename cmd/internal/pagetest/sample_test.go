//go:build unix

package pagetest

import (
	"os"
	"strings"
	"testing"
)

// TestSample runs a page that has one of each: nodes, several of them, programs, nats, commands of many lines.
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes: left out with -short")
	}
	t.Parallel()
	data, err := os.ReadFile("testdata/sample.md")
	if err != nil {
		t.Fatal(err)
	}
	p := parsePage("testdata/sample.md", string(data))
	for _, bad := range p.badBlocks(readTree) {
		t.Errorf("%d: %s", bad.line, bad.text)
	}
	for _, failure := range follow(t, p).failures {
		t.Error(failure)
	}
}

// TestMissingProgram holds that each program that a machine may be without is found in a page, and that a
// page cannot be run without it.
func TestMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for text, program := range map[string]string{
		"```sh\n(umask 077; echo \"$(openssl rand -hex 2)\" >key)\n```":    "openssl",
		"```sh\nA=1 B=2 curl -s localhost | head\n```":                     "curl",
		"```console\n$ true && npm install\n```":                           "npm",
		"<!-- file: tool.py -->\n```python\nprint()\n```":                  "python3",
		"```console\n$ cat tools\ncurl -s\n```\n```text\ncurl\n```":        "",
		"<!-- not run: a reason -->\n```sh\ncurl -s http://localhost\n```": "",
	} {
		uses := strings.Join(parsePage("p.md", text).uses(), " ")
		if uses != program || program != "" && have(program) == nil {
			t.Errorf("%q uses %q, want %q; without it the page is run: %v", text, uses, program, program != "" && have(program) == nil)
		}
	}
}

// TestReaderFails holds that a page that does not do what it shows is found, and where.
func TestReaderFails(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes: left out with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct{ page, failure string }{
		"output":          {"```console\n$ echo one\ntwo\n```", "p.md:2: $ echo one\nprints\none\n\nthe page shows\ntwo"},
		"no output":       {"```console\n$ true\ntwo\n```", "the page shows\ntwo"},
		"hidden output":   {"```console\n$ echo one\n```", "prints\none"},
		"too few lines":   {"```console\n$ seq 3\n1\n…\n4\n```", "p.md:2: "},
		"exit code":       {"```console\n$ false\n$ echo more\nmore\n```", "p.md:2: $ false\nexit code 1"},
		"other exit code": {"```console\n$ (exit 3)\n$ echo $?\n2\n```", "prints\n3"},
		"exit of sh":      {"```sh\ntrue\n\nfalse\n```", "p.md:4: $ false\nexit code 1"},
		"end of shell":    {"```sh\nexit 0\n```", "it has ended the shell"},
		"hidden command":  {"<!-- run: test -e none -->", "p.md:1: $ test -e none\nexit code 1"},
		"node":            {"```sh\nreprise dev --data /dev/null\n```", "the node has ended before it was ready"},
		"killed node":     {"```sh\nreprise dev & node=$!\nkill -9 $node\nreprise ask parrot/one Hello --timeout 1s\n```", "p.md:4: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := follow(t, parsePage("p.md", c.page))
			if len(r.failures) != 1 || !strings.Contains(r.failures[0], c.failure) {
				t.Errorf("got %q, want %q", r.failures, c.failure)
			}
		})
	}
}

// TestEdited holds that a page is written with what its commands print, and is else as it was.
func TestEdited(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes: left out with -short")
	}
	t.Parallel()
	r := follow(t, parsePage("p.md", "# One\n\n- item\n\n  ```console\n  $ seq 3\n  2\n  $ echo 2026-11-28 10:11:12\n  2026-01-01 00:00:00\n  $ true\n  none\n  $ seq 5\n  one\n  …\n  2\n  ```\n\nend\n"))
	want := "# One\n\n- item\n\n  ```console\n  $ seq 3\n  1\n  2\n  3\n  $ echo 2026-11-28 10:11:12\n  2026-01-01 00:00:00\n  $ true\n  $ seq 5\n  1\n  …\n  5\n  ```\n\nend\n"
	if got := r.edited(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
