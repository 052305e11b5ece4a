package pagetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestRulesBite breaks each rule of a page once.
func TestRulesBite(t *testing.T) {
	t.Parallel()
	read := func(name string) (string, error) {
		if name != "part.go" {
			return "", errors.New("no such file")
		}
		return "package part\n\nfunc one() {\n\ttwo()\n}\n", nil
	}
	lookup := func(file string) (*page, bool) {
		switch file {
		case "docs/other.md":
			return parsePage(file, "# A `b` (c)\n\n## Same\n\n## Same\n"), true
		case "docs/picture.svg":
			return nil, true
		}
		return nil, false
	}
	rules := map[string]func(p *page) []problem{
		"blocks":  func(p *page) []problem { return p.badBlocks(read) },
		"links":   func(p *page) []problem { return p.badLinks(lookup) },
		"words":   (*page).badWords,
		"figures": (*page).badFigures,
	}
	for _, c := range []struct{ rule, page, want string }{
		{"blocks", "```sh\ntrue\n```", ""},
		{"blocks", "```\ntrue\n```", "1: the block has no language"},
		{"blocks", "text\n```sh\ntrue\n", "2: the block does not end"},
		{"blocks", "~~~sh\ntrue\n~~~", "1: a block begins with ```"},
		{"blocks", "````text\n```\n````", ""},
		{"blocks", "```python\nprint()\n```", "1: a block of python has a directive"},
		{"blocks", "<!-- file: a/b.py -->\n```python\nprint()\n```", ""},
		{"blocks", "<!-- file: ../b.py -->\n```python\nprint()\n```", "not a file in the folder of the page"},
		{"blocks", "<!-- file: /b.py -->\n```python\nprint()\n```", "not a file in the folder of the page"},
		{"blocks", "<!-- file: a.py -->\n\n```python\nprint()\n```", `1: the directive "file" is not above a block`},
		{"blocks", "<!-- file: a -->\n<!-- file: b -->\n```sh\ntrue\n```", `two directives "file"`},
		{"blocks", "<!-- file: -->\n```sh\ntrue\n```", `1: the directive "file" has no value`},
		{"blocks", "<!-- not run -->\n```sh\ntrue\n```", `1: the directive "not run" has no value`},
		{"blocks", "<!-- not run: docker -->\n```sh\ntrue\n```", ""},
		{"blocks", "<!-- not run: docker -->\n<!-- file: a -->\n```sh\ntrue\n```", `the block has "not run" and another directive`},
		{"blocks", "<!-- skip: docker -->", `1: "skip: docker" is no directive`},
		{"blocks", "<!-- places: a -->\n<!-- keys: b -->\n<!-- end of keys -->", ""},
		{"blocks", "text <!-- run: true -->", "1: a comment stands on a line of its own"},
		{"blocks", "<!-- from: part.go -->\n```go\n  func one() {\n    two()\n```", ""},
		{"blocks", "<!-- from: part.go -->\n```go\nfunc one() {\n}\n```", "the block is not a part of part.go"},
		{"blocks", "<!-- from: none.go -->\n```go\nfunc one() {\n```", "no such file"},
		{"blocks", "```go\nfunc one() {}\n```", "a block of go is a whole file"},
		{"blocks", "```go\npackage main\n\nfunc main() {\n```", "expected"},
		{"blocks", "```go\n// A program.\npackage main\n\nfunc main() {}\n```", ""},
		{"blocks", "```json\n{\"a\": 1}\n{\"b\": 2}\n```", ""},
		{"blocks", "```json\n{\"a\": 1,}\n```", "neither a JSON document"},
		{"blocks", "```yaml\na: [\n```", "1: "},
		{"blocks", "```yaml\nagents:\n  a: {model: demo/demo, instructions: Hi}\n```", ""},
		{"blocks", "```yaml\nagents:\n  a: {modell: demo/demo}\n```", "modell"},
		{"blocks", "```mermaid\nsequenceDiagram\n```", ""},
		{"blocks", "```mermaid\npainting\n```", `no drawing "painting"`},
		{"blocks", "```console\ntrue\n```", "a console block begins with a command"},
		{"blocks", "<!-- model: sing \"a\" -->", `a model does not "sing"`},
		{"blocks", "<!-- model: say a -->", "a text in quotes"},
		{"blocks", "<!-- model: call refund {a} -->", "arguments in JSON"},
		{"blocks", "<!-- model: call refund {\"a\":1} -->", ""},

		{"links", "[a](other.md) [b](other.md#a-b-c) [c](other.md#same-1 \"t\") [d](#top) ![e](picture.svg)\n# Top", ""},
		{"links", "[a](none.md)", "1: the link to none.md leads nowhere"},
		{"links", "[a](other.md#same-2)", "leads to no heading of docs/other.md"},
		{"links", "\n[a](#none)", "2: the link to #none leads to no heading"},
		{"links", "[a]: none.md", "leads nowhere"},
		{"links", `<img src="none.svg">`, "leads nowhere"},
		{"links", "`[a](none.md)` https://example.com [a](https://example.com/none.md)", ""},
		{"links", "```text\n[a](none.md)\n```", ""},
		{"links", "see /home/ann/x", "a place on one machine"},

		{"words", "It tells you.", `1: "tells": better`},
		{"words", "It goes\non.", `1: "goes on"`},
		{"words", "`tells` [x](tells.md) dead letters\n```text\ntells\n```\n<!-- run: tells -->", ""},
		{"words", "The node knows.", `"knows"`},

		{"figures", "# A\n200 turns per second", "2: no command of the section"},
		{"figures", "# A\n`reprise bench turns`\n# B\n200 turns per second", "4: "},
		{"figures", "# A\n200 turns per second, p99 3 ms, by `reprise bench turns`", ""},
		{"figures", "# A\n64 partitions, 3 s, 1 MiB", ""},
		{"figures", "A turn takes about 3 ms.", `"takes about 3 ms"`},
		{"figures", "The median is 40 ms.", "1: "},
		{"figures", "Alert on the p99 of appends. It waits 3 ms and takes 64 partitions.", ""},
		{"figures", "| a | 5.2 µs |", "1: "},
	} {
		bad := rules[c.rule](parsePage("docs/page.md", c.page))
		var got []string
		for _, found := range bad {
			got = append(got, string(rune('0'+found.line))+": "+found.text)
		}
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, c.want) }) {
			t.Errorf("%s of %q: got %q, want %q", c.rule, c.page, got, c.want)
		}
	}
}

// TestSame holds what of an output is compared.
func TestSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shown, printed string
		same           bool
	}{
		{"a\nb", "a\nb\n", true},
		{"a", "a\nb\n", false},
		{"a\n…", "a\nb\nc\n", true},
		{"…\nc", "a\nb\nc\n", true},
		{"a\n…\nb", "a\nb\n", true},
		{"a\n…\nb\n…\nd", "a\nx\nb\nc\n", false},
		{"a  b", "a      b", true},
		{"at 2026-11-28 07:04:03, 1.5ms", "at 2026-11-29T08:09:10.123Z, 1m30s", true},
		{"0s 6.1s TOOK", "12s 83ms TOOK", true},
		{"1m2.5s of 3s", "61ms of 3s", true},
		{"no answer within 3s", "no answer within 5s", false},
		{"no answer within 3s", "no answer within 3.1s", false},
		{"every 1h30m, 20s", "every 1h30m, 10s", false},
		{"5 of 6", "5 of 7", false},
		{"node 01M8GFKH118DD9EMX9KF7VR6E7, 3.1 KiB", "node 01M8GFKN3ASG50PJ88Q35CHWXY, 12 B", true},
		{"call_9194c3fe220a44bf9df6", "call_5ab3eceab1a3ff90f293", true},
		{"a21800755af2683503230835141442bc", "b21800755af2683503230835141442bc", true},
		{"http://127.0.0.1:41234/healthz", "http://127.0.0.1:43211/healthz", true},
		{"http://127.0.0.1:8080/healthz", "http://127.0.0.1:8081/healthz", false},
		{"http://127.0.0.1:8080/healthz", "http://127.0.0.1:43211/healthz", false},
		{"http://127.0.0.1:8080/healthz", "http://localhost:8080/healthz", false},
		{"v0.9.0", "v1.0.0", false},
	} {
		if got := same(strings.Split(c.shown, "\n"), c.printed); got != c.same {
			t.Errorf("%q and %q: %v", c.shown, c.printed, got)
		}
	}
}

// TestCommands holds how a block of sh is split.
func TestCommands(t *testing.T) {
	t.Parallel()
	p := parsePage("p.md", "```sh\n# a comment\none \\\n  --two\n\ncat <<END\nif\nEND\nif true; then\n  echo \"a\nb\"\nfi\na |\n  b\nx=$(cat <<'E'\ny\nE\n)\nf() {\n  true\n}\nlast\n```")
	list, err := commands(p.blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list {
		got = append(got, c.text)
	}
	want := []string{"one \\\n  --two", "cat <<END\nif\nEND", "if true; then\n  echo \"a\nb\"\nfi", "a |\n  b", "x=$(cat <<'E'\ny\nE\n)", "f() {\n  true\n}", "last"}
	if !slices.Equal(got, want) || list[0].line != 3 || list[6].line != 22 {
		t.Errorf("got %q at %d and %d, want %q", got, list[0].line, list[len(list)-1].line, want)
	}
	if _, err := commands(parsePage("p.md", "```sh\necho \"a\n```").blocks[0]); err == nil {
		t.Error("half a command is taken")
	}
}
