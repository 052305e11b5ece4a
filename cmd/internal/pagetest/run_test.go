//go:build unix

package pagetest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what commands print into the pages")

var keep = flag.String("keep", "", "a folder in which the folders of the pages stay")

// bin is the folder of the programs that pages use, before the rest of the PATH.
var bin string

func TestMain(m *testing.M) {
	if flag.Parse(); testing.Short() { // nothing is run
		os.Exit(m.Run())
	}
	os.Exit(build(m))
}

// build builds the program, and what stands in place of others.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pages")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = dir
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X github.com/reprise-dev/reprise/cmd/internal/cli.version=v1.0.0",
		"-o", filepath.Join(dir, "reprise"), "github.com/reprise-dev/reprise/cmd/reprise")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = standIns(dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// goScript is go for a reader to whom this tree is a released module.
const goScript = `#!/bin/sh
case "$1 $2" in
"get github.com/reprise-dev/reprise"|"get github.com/reprise-dev/reprise@"*)
	cat "%[2]s/go.sum" >>go.sum
	exec "%[1]s" mod edit -replace=github.com/reprise-dev/reprise="%[2]s" -require=github.com/reprise-dev/reprise@v0.0.0 %[3]s ;;
"install github.com/reprise-dev/reprise/cmd/reprise"*)
	exit 0 ;;
esac
exec "%[1]s" "$@"
`

// standIns writes the scripts that stand in for programs: go, which finds this tree in place of a release.
func standIns(dir string) error {
	tree, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	real, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	out, err := exec.Command(real, "mod", "edit", "-json", filepath.Join(root, "go.mod")).Output()
	if err != nil {
		return err
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return err
	}
	var requires []string
	for _, r := range mod.Require { // the same versions, so that nothing is fetched
		requires = append(requires, "-require="+r.Path+"@"+r.Version)
	}
	return os.WriteFile(filepath.Join(dir, "go"), fmt.Appendf(nil, goScript, real, tree, strings.Join(requires, " ")), 0o755)
}

// TestPages runs the pages.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes: left out with -short")
	}
	for _, p := range pages(t) {
		if !p.isDoc() || !p.runs() {
			continue
		}
		t.Run(strings.TrimSuffix(strings.TrimPrefix(p.name, "docs/"), ".md"), func(t *testing.T) {
			t.Parallel()
			r := follow(t, p)
			for _, failure := range r.failures {
				t.Error(failure)
			}
			if *update && len(r.edits) > 0 {
				if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(p.name)), []byte(r.edited()), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// edit replaces lines of a page, from and until counted from 0.
type edit struct {
	from, until int
	lines       []string
}

// reader is who follows a page.
type reader struct {
	*shell
	t        *testing.T
	page     *page
	edits    []edit
	failures []string
}

// follow runs a page from its first block to its last, or to the first command that fails. What is
// not as the page shows it is in its failures and edits.
func follow(t *testing.T, p *page) *reader {
	t.Helper()
	for _, name := range p.uses() {
		if err := have(name); err != nil {
			t.Fatalf("%s uses %s: %v", p.name, name, err)
		}
	}
	dir := pageFolder(t, p)
	env := environment(t, dir)
	server, err := startModel(p)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	if server != nil {
		t.Cleanup(func() { _ = server.Close() })
		env = append(env, "OPENAI_API_KEY=sk-of-a-page", "OPENAI_BASE_URL="+server.URL)
	}
	r := &reader{shell: startShell(t, dir, env), t: t, page: p}
	for _, next := range p.order() {
		if !next(r) {
			for i, n := range r.nodes {
				t.Logf("node %d printed\n%s", i+1, n.text())
			}
			break
		}
	}
	return r
}

// fail notes what is wrong at a line of the page.
func (r *reader) fail(line int, format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf("%s:%d: ", r.page.name, line)+fmt.Sprintf(format, args...))
}

// order are the blocks and the hidden commands of a page, as they follow one another.
func (p *page) order() (steps []func(*reader) bool) {
	blocks, directives := p.blocks, p.directives
	for len(blocks)+len(directives) > 0 {
		if len(directives) > 0 && (len(blocks) == 0 || directives[0].line < blocks[0].line) {
			d := directives[0]
			directives = directives[1:]
			if d.name == "run" {
				steps = append(steps, func(r *reader) bool { return r.all([]command{{line: d.line, text: d.value, hidden: true}}, nil) })
			}
			continue
		}
		b := blocks[0]
		blocks = blocks[1:]
		steps = append(steps, func(r *reader) bool { return r.block(b) })
	}
	return steps
}

// block does what a reader does with a block. It reports whether the reader can continue.
func (r *reader) block(b *block) bool {
	if name := b.value("file"); name != "" {
		if err := r.write(name, b.text()); err != nil {
			r.fail(b.line, "%v", err)
			return false
		}
		return true
	}
	if !b.run() {
		return true
	}
	read := commands
	if b.language == "console" {
		read = transcript
	}
	list, err := read(b)
	if err != nil {
		r.fail(b.line, "%v", err)
		return false
	}
	return r.all(list, b)
}

// write writes a file of the page.
func (r *reader) write(name, text string) error {
	return writeFile(filepath.Join(r.dir, filepath.FromSlash(name)), r.translate(text))
}

// all runs commands and compares what they print with what the page shows.
func (r *reader) all(list []command, b *block) bool {
	for i, c := range list {
		asked := i+1 < len(list) && c.shown != nil && list[i+1].text == "echo $?"
		printed, code, err := r.run(c.text, asked)
		if err != nil || code != 0 && !asked {
			if err == nil {
				err = fmt.Errorf("exit code %d", code)
			}
			r.fail(c.line, "$ %s\n%v; it printed\n%s", c.text, err, printed)
			return false
		}
		if c.shown == nil || same(c.shown, printed) {
			continue
		}
		r.edits = append(r.edits, b.correct(c, printed))
		if !*update {
			r.fail(c.line, "$ %s\nprints\n%s\nthe page shows\n%s", c.text, printed, strings.Join(c.shown, "\n"))
		}
	}
	return true
}

// correct puts what a command has printed in place of what the block shows. Lines that the block leaves out between
// its first and its last ones stay out.
func (b *block) correct(c command, printed string) edit {
	e := edit{from: b.line + c.first, until: b.line + c.first + len(c.shown)}
	for line := range strings.Lines(strings.TrimRight(printed, "\n")) {
		e.lines = append(e.lines, strings.TrimRight(b.indent+line, " \n"))
	}
	if head := slices.Index(c.shown, anyLines); head >= 0 {
		last := slices.Clone(c.shown)
		slices.Reverse(last)
		if tail := slices.Index(last, anyLines); head+tail < len(e.lines) {
			e.lines = slices.Replace(e.lines, head, len(e.lines)-tail, b.indent+anyLines)
		}
	}
	return e
}

// edited is the page with what the commands have printed.
func (r *reader) edited() string {
	lines := slices.Clone(r.page.lines)
	for _, e := range slices.Backward(r.edits) {
		lines = slices.Replace(lines, e.from, e.until, e.lines...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// pageFolder makes the folder of a page.
func pageFolder(t *testing.T, p *page) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "page")
	if *keep != "" {
		dir, err = filepath.Abs(filepath.Join(*keep, strings.TrimSuffix(p.name, ".md")))
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if *keep == "" {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	return dir
}

// environment is that of a page: nothing of the machine's own configuration, but the caches of Go.
func environment(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOPATH", "GOMODCACHE", "GOCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Split(string(out), "\n")
	tree, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "TREE=" + tree,
		"LANG=C.UTF-8", "TZ=UTC", "TERM=dumb", "NO_COLOR=1", "REPRISE_PERSON=ann",
		"GOPATH=" + caches[0], "GOMODCACHE=" + caches[1], "GOCACHE=" + caches[2], "GOPROXY=" + caches[3],
		"GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0",
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url." + tree + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/reprise-dev/reprise",
		"GIT_CONFIG_KEY_1=url." + tree + ".insteadOf", "GIT_CONFIG_VALUE_1=https://github.com/reprise-dev/reprise.git",
	}
}

// foreign are programs that a machine may be without.
var foreign = regexp.MustCompile(`(?m)(?:^|[|;&(]|\$\()\s*(?:\w+=\S+\s+)*(nats-server|nats|node|npm|npx|python3|curl|jq|openssl)\b`)

// interpreters run the files of a language.
var interpreters = map[string]string{"python": "python3", "js": "node", "javascript": "node"}

// uses are the foreign programs of a page.
func (p *page) uses() (names []string) {
	for _, b := range p.blocks {
		if name := interpreters[b.language]; name != "" && b.value("file") != "" {
			names = append(names, name)
		}
		if !b.run() {
			continue
		}
		text := b.text()
		if b.language == "console" {
			list, _ := transcript(b)
			text = ""
			for _, c := range list {
				text += c.text + "\n"
			}
		}
		for _, m := range foreign.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// have returns an error if a foreign program is not on this machine. It builds those of NATS.
func have(name string) error {
	switch name {
	case "nats":
		return haveNats()
	case "nats-server":
		return haveServer()
	}
	_, err := exec.LookPath(name)
	return err
}
