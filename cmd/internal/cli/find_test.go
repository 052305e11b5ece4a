//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// From a complaint to the agent: its words, a call that was made twice, its key, and the same answer
// once the index is built again.
func TestFind(t *testing.T) { // A87
	w := newWorld(t)
	node := w.dev()
	w.run("find", "refund").exits(0, "nothing was found")
	for i := range 2 {
		w.run("ask", "support/t1", "Refund 9900 cents for order 7", "--id", []string{"complaint-1", "complaint-2"}[i]).exits(3)
		w.run("approve", "support/t1", w.pendingCalls("support/t1")[0]).exits(0)
		for strings.Count(w.run("turns", "support/t1", "-o", "json").exits(0).out, `"phase":"completed"`) <= i {
			if t.Context().Err() != nil {
				t.Fatal("the turn does not end")
			}
		}
	}
	w.run("ask", "parrot/p", "an \x1b[31m escape \x1b[0m code").exits(0)

	w.run("find", "order", "7").exits(0, "AGENT", "SNIPPET", "support/t1", "input", `refund {"order":7,"cents":9900}`)
	calls := w.run("effects", "--repeated", "-o", "json").exits(0).objects()
	if len(calls) != 1 || calls[0]["repeats"] != 7.0 {
		t.Fatalf("repeated calls: got %v, want one of event 7", calls)
	}
	w.run("effects", "--repeated").exits(0, "TURN", "KEY", "(as event 7 before)")
	w.run("effects", "support/t1").exits(0, "(as event 7 before)")
	for _, id := range []string{calls[0]["key"].(string), calls[0]["call"].(string)} {
		if r := w.run("find", id, "-o", "json").exits(0).objects(); len(r) != 1 || r[0]["n"] != calls[0]["n"] || r[0]["id"] != id {
			t.Errorf("find %s: got %v, want event %v", id, r, calls[0]["n"])
		}
	}
	if r := w.run("find", "complaint-2", "-o", "json").exits(0).objects(); len(r) != 1 || r[0]["what"] != "input id" {
		t.Errorf("find an input: got %v, want its event", r)
	}
	if r := w.run("find", "default/support/t1/", "--limit", "1", "-o", "json").exits(0).objects(); len(r) != 1 || r[0]["n"] != calls[0]["n"] {
		t.Errorf("the beginning of a key: got %v, want the newest of two", r)
	}
	if r := w.run("find", "escape").exits(0, `\x1b[31m escape`); strings.Contains(r.out, "\x1b") {
		t.Errorf("find escape: got %q, want no escape codes", r.out)
	}
	for _, none := range [][]string{{"refund", "--kind", "parrot"}, {"refund", "--until", "2020-01-01"}, {"refund", "--tenant", "other"}, {"refund", "NOT", "order"}, {"refun*"}} {
		w.run(append([]string{"find"}, none...)...).exits(0, "nothing was found")
	}
	for _, wrong := range [][]string{
		{}, {""}, {"  "}, {"---"}, {strings.Repeat("x", 10<<10)}, {"x", "--limit", "-1"}, {"x", "--kind", "a b"}, {"x", "--tenant", "a/b"}, {"x", "--since", "soon"},
	} {
		w.run(append([]string{"find"}, wrong...)...).exits(2)
	}
	said := func() string {
		return w.run("find", "order", "-o", "json").exits(0).out + w.run("find", "default/support", "-o", "json").exits(0).out + w.run("effects", "-o", "json").exits(0).out
	}
	want := said()
	node.kill()
	for _, file := range []string{"index.db", "index.db-wal", "index.db-shm"} {
		if err := os.Remove(filepath.Join(w.dir, ".reprise", "index", file)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	w.dev()
	if got := said(); got != want {
		t.Errorf("built again, the index finds\n%s\nit found\n%s", got, want)
	}
}

// Words of an agent that is encrypted are not found, neither as it commits them nor once they are read
// again; its ids are.
func TestFindEncrypted(t *testing.T) { // A108
	w := newWorld(t)
	w.file("key", strings.Repeat("4f", 32))
	find := func() {
		t.Helper()
		w.run("find", "order", "7").exits(0, "nothing was found", "1 encrypted agents were not searched for words")
		if r := w.run("find", "complaint-1", "-o", "json").exits(0).objects(); len(r) != 1 || r[0]["what"] != "input id" || r[0]["snippet"] != nil {
			t.Errorf("find an input: got %v, want its id alone", r)
		}
	}
	node := w.node("dev", "--listen", "127.0.0.1:0", "--sync", "relaxed", "--key-file", "key")
	w.run("ask", "parrot/p", "What of order 7?", "--id", "complaint-1").exits(0)
	find()
	node.kill()
	w.node("dev", "--listen", "127.0.0.1:0", "--sync", "relaxed", "--key-file", "key")
	find()
	w.run("delete", "parrot/p", "--yes").exits(0)
	if r := w.run("find", "complaint-1").exits(0, "nothing was found"); strings.Contains(r.err, "encrypted") {
		t.Errorf("after the delete: got %s, want no encrypted agents", r.err)
	}
}
