package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A program prints 10 MiB: its result is named by the events, and read whole by
// every command that shows it, also after the node was killed.
func TestBlob(t *testing.T) { // A36
	const size = 10 << 20
	printed := strings.Repeat("abcdefghijklmno\n", size/16)[:size-1] + "x"
	hash := string(messages.DigestOf([]byte(printed)))
	w := newWorld(t)
	w.file("reprise.yaml", `agents:
  assistant: {model: demo/demo, tools: [dump], show_at_most: 1000, stop_on: [dump]}
tools:
  dump:
    command: [/bin/sh, -c, "yes abcdefghijklmno | head -c 10485759; echo x"]
    description: Dump the whole table
    read_only: true
`)
	node := w.dev()
	if r := w.run("ask", "assistant/main", "please use the dump tool").exits(0); !strings.Contains(r.out, printed) {
		t.Errorf("the answer has %d bytes", len(r.out))
	}
	node.kill()
	w.dev()
	events := w.run("events", "assistant/main", "-o", "json").exits(0)
	if want := fmt.Sprintf(`"output":"","blob":{"sha256":"%s","size":%d}`, hash, size); !strings.Contains(events.out, want) || len(events.out) > 100<<10 {
		t.Errorf("%.2000s\nwant %s", events.out, want)
	}
	found := false
	for _, o := range w.run("events", "assistant/main", "--whole", "-o", "json").exits(0).objects() {
		found = found || o["type"] == "tool.completed" && o["data"].(map[string]any)["output"] == printed
	}
	if !found {
		t.Error("events --whole does not give the result")
	}
	found = false
	for _, o := range w.run("history", "assistant/main", "-o", "json").exits(0).objects() {
		found = found || o["output"] == printed
	}
	if !found {
		t.Error("history does not give the result")
	}
	named := fmt.Sprintf("[%d bytes, kept as blob %s]", size, hash)
	for _, form := range []string{"text", "json"} {
		if r := w.run("replay", "assistant/main", "--wide", "-o", form).exits(0, named); len(r.out) > 100<<10 {
			t.Errorf("replay -o %s gives %d bytes", form, len(r.out))
		}
	}
	w.run("replay", "assistant/main", "--whole").exits(0, "abcdefghijklmno", "more bytes)")
	if r := w.run("replay", "assistant/main", "--whole", "-o", "json").exits(0); len(r.out) < size {
		t.Errorf("replay --whole -o json gives %d bytes", len(r.out))
	}

	if r := w.run("blob", "assistant/main", hash[:8]).exits(0); r.out != printed {
		t.Errorf("%d bytes", len(r.out))
	}
	w.run("blob", "assistant/main", hash, "-f", "dump.txt", "-o", "json").exits(0, hash, "dump.txt", "10485760")
	if b, err := os.ReadFile(filepath.Join(w.dir, "dump.txt")); err != nil || string(b) != printed {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	w.run("blob", "assistant/main", hash, "-f", "dump.txt").exits(1, "exists", "-f")
	w.run("blob", "assistant/main", "feedbeef", "-f", "none.txt").exits(1, "feedbeef", "backup")
	if _, err := os.Stat(filepath.Join(w.dir, "none.txt")); err == nil {
		t.Error("a file was left of a blob that does not exist")
	}
	w.run("blob", "assistant/main", hash, "-o", "json").exits(2, "-f")
	w.run("blob", "assistant/main").exits(2)
}
