//go:build unix

package cli_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// An agent that was exported continues in another installation with an equal history, also in one that is
// encrypted; nothing is stored of a file that is not whole.
func TestImport(t *testing.T) { // A83
	far := newWorld(t)
	far.file("reprise.yaml", exportable)
	far.node("dev", "--listen", "127.0.0.1:0")
	far.run("ask", "assistant/a", "please use the dump tool").exits(0)
	far.run("ask", "assistant/a", "What is 17 times 3?").exits(0)
	far.run("send", "support/s", "refund 9900 cents for order 7").exits(0)
	far.await("support/s", "turn.paused")
	file := func(name string) string { return filepath.Join(far.dir, name) }
	far.run("export", "assistant/a", "--to", "a.jsonl.gz").exits(0)
	far.run("export", "assistant/a", "support/s", "--to", "two.jsonl").exits(0)
	far.run("export", "assistant/a", "--to", "redacted.jsonl", "--redact", `ann\.lee@example\.com`).exits(0)
	far.run("export", "assistant/a", "--to", "number.jsonl", "--redact", "17").exits(0)

	w := far.other()
	w.file("reprise.yaml", exportable)
	w.file("key", strings.Repeat("01", 32)+"\n")
	w.node("dev", "--listen", "127.0.0.1:0", "--key-file", "key")
	w.part("refused", func(t *testing.T, w *world) { importRefused(t, w, file) })
	w.part("equal", func(t *testing.T, w *world) {
		w.run("import", file("a.jsonl.gz")).exits(1, "needs the wrapping key", "--key-file")
		w.run("import", file("a.jsonl.gz"), "--key-file", "key").exits(0, "assistant/a: imported, with the")
		sameEvents(t, far.exported("a.jsonl.gz")[0], withoutLast(w.run("events", "assistant/a", "-o", "json").exits(0).objects()))
		for _, view := range []string{"history", "state", "turns", "usage", "effects"} {
			got, want := w.run(view, "assistant/a", "-o", "json").exits(0).out, far.run(view, "assistant/a", "-o", "json").exits(0).out
			if strings.ReplaceAll(got, `,"imported":true`, "") != want {
				t.Errorf("%s: got %.2000s\nwant %.2000s", view, got, want)
			}
		}
		w.run("show", "assistant/a").exits(0, "imported", "assistant/a at event")
		w.run("effects").exits(0, "assistant/a", "completed, imported")
		w.run("import", file("a.jsonl.gz"), "--key-file", "key").exits(0, "imported before")
		w.run("import", file("a.jsonl.gz"), "--key-file", "key", "--dry").exits(0, "imported before", "assistant/a was already imported without --dry, without --set", "--as")
		w.run("import", file("redacted.jsonl"), "--key-file", "key").exits(1, "exists", "--as")
		w.run("import", file("redacted.jsonl"), "--key-file", "key", "--as", "assistant/r").exits(0, "assistant/r: imported")
		w.run("ask", "assistant/a", "what time is it?").exits(0)
		w.run("doctor", "--deep", "assistant/a").exits(0)
		w.run("verify", "assistant/a").exits(0, "assistant/a: equal")
		w.run("import", file("number.jsonl"), "--key-file", "key", "--as", "assistant/n").exits(0)
		w.run("verify", "assistant/n").exits(0, "assistant/n: equal", "hashes of texts that were redacted")
	})
	w.part("again", func(t *testing.T, w *world) { // what was imported is exported and imported again
		w.run("export", "assistant/a", "--to", "again.jsonl").exits(0)
		w.run("import", "again.jsonl", "--key-file", "key", "--as", "assistant/b", "--reason", "again").exits(0)
		if got, want := w.run("history", "assistant/b", "-o", "json").exits(0).out, w.run("history", "assistant/a", "-o", "json").exits(0).out; got != want {
			t.Errorf("got %.2000s\nwant %.2000s", got, want)
		}
		w.run("fork", "assistant/b", "assistant/c", "--at", w.newest("assistant/b", "turn.completed")).exits(0)
		w.run("history", "assistant/c").exits(0, "please use the dump tool")
		w.run("verify", "assistant/b", "assistant/c").exits(0, "2 equal")
		w.run("export", "assistant/a", "assistant/b", "assistant/c", "assistant/n", "--to", "four.jsonl").exits(0)
		w.run("verify", "--from-file", "four.jsonl", "--candidate", "reprise.yaml").exits(0, "4 agents: 4 equal")
	})
	w.part("several", func(t *testing.T, w *world) {
		w.run("import", file("two.jsonl"), "--key-file", "key", "--as", "assistant/x").exits(2, "choose one with --agent")
		w.run("import", file("two.jsonl"), "--key-file", "key", "--agent", "assistant/none").exits(1, "is not in the file")
		w.run("import", file("two.jsonl"), "--key-file", "key", "--agent", "support/s", "--as", "support/s2", "--dry").exits(0, "support/s2: imported")
		w.run("show", "support/s2").exits(0, "paused", "its tools are dry", "approve support/s2")
		w.run("approvals").exits(0, "support/s2")
		w.run("verify", "support/s2").exits(0, "support/s2: equal")
		w.run("delete", "support/s2", "--yes").exits(0)
		if n := w.blobs("support/s2"); n != 0 {
			t.Errorf("%d messages of blobs are left of a deleted agent", n)
		}
		w.run("import", file("two.jsonl"), "--key-file", "key", "--agent", "support/s", "--as", "support/s2").exits(1, "exists, or did")
	})
}

// What an imported agent did before is found and listed as long as the agent is there, by an index that is built
// again, too.
func TestImportIsFound(t *testing.T) { // A83, A87
	w := newWorld(t)
	w.file("reprise.yaml", exportable)
	node := w.node("dev", "--listen", "127.0.0.1:0")
	w.run("ask", "assistant/a", "please use the dump tool").exits(0)
	w.run("export", "assistant/a", "--to", "a.jsonl").exits(0)
	w.run("import", "a.jsonl", "--as", "assistant/b").exits(0)
	w.listed("assistant/b", 1)
	w.run("doctor", "--deep", "assistant/b").exits(0)
	node.kill()
	w.dropIndex()
	w.node("dev", "--listen", "127.0.0.1:0")
	w.listed("assistant/b", 1)
	w.run("delete", "assistant/b", "--yes").exits(0)
	w.listed("assistant/b", 0)
}

// listed checks how often the lists of all agents have the turn in which an agent was asked for a dump. It
// returns the lines.
func (w *world) listed(agent string, want int) (lines []map[string]any) {
	w.t.Helper()
	for _, args := range [][]string{{"find", "please", "dump"}, {"effects"}} {
		seen := 0
		for _, row := range w.run(append(args, "-o", "json")...).exits(0).objects() {
			if strings.HasSuffix(row["agent"].(string), agent) {
				seen, lines = seen+1, append(lines, row)
			}
		}
		if seen != want {
			w.t.Errorf("%s: got %d rows of %s, want %d", args[0], seen, agent, want)
		}
	}
	return lines
}

// dropIndex removes the file of the node's index.
func (w *world) dropIndex() {
	w.t.Helper()
	for _, file := range []string{"index.db", "index.db-wal", "index.db-shm"} {
		if err := os.Remove(filepath.Join(w.dir, ".reprise", "index", file)); err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
	}
}

// other returns another folder, for nodes of another installation.
func (w *world) other() *world {
	own := *w
	own.dir = w.t.TempDir()
	return &own
}

// withoutLast returns events without agent.imported, which is the last of them.
func withoutLast(events []map[string]any) []map[string]any { return events[:len(events)-1] }

func importRefused(t *testing.T, w *world, file func(string) string) {
	packed, err := os.Open(file("a.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(text)
	middle := len(whole) / 2
	for name, c := range map[string]struct{ file, want string }{
		"foreign.jsonl": {"{\"hello\":1}\n", "line 1"},
		"empty.jsonl":   {"", "it is empty"},
		"newer.jsonl":   {strings.Replace(whole, `"format":1`, `"format":2`, 1), "line 1"},
		"cut.jsonl":     {whole[:middle], "cut off"},
		"spoilt.jsonl":  {whole[:middle] + "~" + whole[middle+1:], "line "},
	} {
		w.file(name, c.file)
		w.run("import", name, "--key-file", "key").exits(1, name, c.want)
	}
	w.run("import", "-").exits(2, "reads the file twice")
	w.run("import", "none.jsonl").exits(1, "no such file")
	w.run("import", file("a.jsonl.gz"), "--key-file", "key", "--as", "nobody/x").exits(1, "nobody")
	w.run("show", "assistant/a").exits(1, "does not exist")
	if n := w.blobs("assistant/a"); n != 0 {
		t.Errorf("refused imports have left %d messages of blobs", n)
	}
}

// blobs counts the messages that payloads of an agent take.
func (w *world) blobs(agent string) uint64 {
	w.t.Helper()
	id, err := messages.ParseAgentID(agent)
	if err != nil {
		w.t.Fatal(err)
	}
	return countOn(w.t, connected(w.t, w.address()), messages.Subjects{}.Blobs(id))
}

func countOn(t *testing.T, js jetstream.JetStream, subject string) (n uint64) {
	t.Helper()
	name, err := js.StreamNameBySubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(subject+".>"))
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range info.State.Subjects {
		n += count
	}
	return n
}

// An import that is killed in the middle has begun no agent, and is whole when it is run again.
func TestImportKilled(t *testing.T) { // A83
	w := newWorld(t)
	w.file("reprise.yaml", exportable)
	w.node("dev", "--listen", "127.0.0.1:0")
	w.run("ask", "assistant/a", "please use the dump tool").exits(0)
	w.run("export", "assistant/a", "--to", "a.jsonl").exits(0)
	js := connected(t, w.address())
	for i := range 50 {
		id := messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}
		cmd := w.command(t.Context(), "import", "a.jsonl", "--as", id.String())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(ended) == 0 && countOn(t, js, messages.Subjects{}.Blobs(id)) == 0 {
		}
		_ = cmd.Process.Kill()
		if <-ended; cmd.ProcessState.Success() {
			continue
		}
		w.run("import", "a.jsonl", "--as", id.String()).exits(0, id.String()+": imported")
		if got, want := w.run("history", id.String(), "-o", "json").exits(0).out, w.run("history", "assistant/a", "-o", "json").exits(0).out; got != want {
			t.Errorf("got %.2000s\nwant %.2000s", got, want)
		}
		return
	}
	t.Fatal("every import was through before it was killed")
}
