package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
)

// guide is the page whose commands are run.
const guide = "../../../docs/guides/debugging.md"

// recordedDrill is what the page exports, kept for the test that the page shows.
const recordedDrill = "testdata/order-7.jsonl.gz"

// TestGuide runs the page from its first command to its last: its yaml is the configuration, each sh
// block ends with the start of a node, and each command of a console block has the output that the page shows. With
// -update the outputs are written into the page, and the file that it exports into testdata.
func TestGuide(t *testing.T) { // A81, A82, A83, A87
	w := newWorld(t)
	w.env = append(w.env, "REPRISE_PERSON=ann")
	for i, v := range w.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			w.env[i] = "PATH=" + filepath.Dir(binary) + ":" + path
		}
	}
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	var node *proc
	shown := fenced.ReplaceAllStringFunc(string(page), func(block string) string {
		parts := fenced.FindStringSubmatch(block)
		switch language, content := parts[1], parts[2]; language {
		case "yaml":
			w.file("reprise.yaml", content)
		case "sh":
			if node != nil {
				node.end(syscall.SIGTERM)
			}
			w.shell(strings.TrimSuffix(content, "reprise dev\n"))
			node = w.dev()
		case "console":
			return "```console\n" + w.session(content) + "```\n"
		}
		return block
	})
	fresh := filepath.Join(w.dir, "order-7.jsonl.gz")
	actorstest.VerifyFile(t, shop(t), fresh)
	if *update {
		data, err := os.ReadFile(fresh)
		if err == nil {
			err = os.WriteFile(recordedDrill, data, 0o644)
		}
		if err == nil {
			err = os.WriteFile(guide, []byte(shown), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fenced is a block of a page, with its language and its content.
var fenced = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```\n")

// session runs the commands of a console block, compares what they print with what the block shows, and
// returns the block with what they printed.
func (w *world) session(block string) (printed string) {
	w.t.Helper()
	for _, command := range strings.Split("\n"+block, "\n$ ")[1:] {
		line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n")+"\n", "\n")
		got := w.shell(line)
		if !*update && steady(got) != steady(want) {
			w.t.Errorf("$ %s\nprints\n%s\nthe page shows\n%s", line, got, want)
		}
		printed += "$ " + line + "\n" + got
	}
	return printed
}

// shell runs a line as a person would type it, and returns what it prints.
func (w *world) shell(line string) string {
	w.t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, w.env, &out, &out
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("$ %s\n%v\n%s", line, err, out.String())
	}
	return out.String()
}

// unsteady are parts of an output that are others in each run.
var unsteady = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b`), "TOOK"},
	{regexp.MustCompile(` +`), " "}, // columns are as wide as what is in them
}

// steady returns an output without them.
func steady(output string) string {
	for _, u := range unsteady {
		output = u.pattern.ReplaceAllString(output, u.with)
	}
	return output
}
