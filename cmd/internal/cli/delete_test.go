//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestDelete(t *testing.T) { // A108
	w := holder(t)
	w.dev()
	w.run("ask", "worker/a", "hello", "--id", "first").exits(0)
	asking := w.begin("", "ask", "worker/a", "use hold")
	w.started()
	waiting := w.begin("", "ask", "worker/a", "and then", "--id", "second")
	w.awaitInput("worker/a", "second")
	w.run("delete", "worker/a").exits(2, "--dry-run", "--yes")
	w.run("delete", "worker/a", "--dry-run").exits(0, "worker/a would lose", "events in", "0 blobs", "0 dead letters")
	dry := w.run("delete", "worker/a", "--dry-run", "-o", "json").exits(0).objects()[0]
	wantKeys(t, dry, "agent", "last", "frames", "events", "bytes", "blobs", "blob_bytes", "snapshots", "dead_letters", "encrypted", "waiting")
	w.run("show", "worker/a").exits(0, "running")
	w.run("delete", "worker/a", "--yes", "--id", "d", "--reason", "the customer asked").exits(0, "worker/a: deleted", "was aborted")
	w.run("delete", "worker/a", "--yes", "--id", "d").exits(0, "applied before")
	asking().exits(1, "aborted by delete")
	waiting().exits(1, "dropped by delete", "the customer asked")
	w.run("show", "worker/a").exits(0, "deleted", "the customer asked")
	if r := w.run("history", "worker/a").exits(0); r.out != "" {
		t.Errorf("its history is %s", r.out)
	}
	if events := w.run("events", "worker/a", "-o", "json").exits(0).objects(); len(events) != 1 || events[0]["type"] != "agent.deleted" {
		t.Errorf("its events are %v", events)
	}
	w.run("replay", "worker/a", "--wide").exits(0, "agent.deleted")
	w.run("replay", "worker/a").exits(0, "what came before is gone", "deleted")
	w.run("history", "worker/a", "--at", "2").exits(1, "deleted")
	w.run("ls").exits(0, "no agents")
	w.run("ls", "--deleted").exits(0, "worker/a", "deleted")
	w.run("ls", "--phase", "deleted").exits(0, "worker/a")
	w.run("delete", "worker/a", "--yes").exits(1, "was deleted")
	w.run("delete", "worker/a", "--dry-run").exits(0, "is deleted")
	w.run("delete", "worker/none", "--yes").exits(1, "does not exist")
	w.run("delete", "worker/none", "--dry-run").exits(1, "does not exist")
	w.run("ask", "worker/a", "hello", "--id", "first").exits(0)
	w.run("ls").exits(0, "worker/a", "idle")
	if r := w.run("history", "worker/a").exits(0); strings.Contains(r.out, "use hold") {
		t.Errorf("the new life has the history of the old one:\n%s", r.out)
	}
}

// A tree that is at work is stopped and deleted, and so is one whose kinds are
// no longer defined.
func TestDeleteTreeAtWork(t *testing.T) { // A108
	w := holder(t)
	agents := strings.Replace(holding, "agents:\n", "agents:\n  boss: {model: demo/demo, tools: [worker]}\n", 1)
	w.file("reprise.yaml", strings.Replace(agents, "tools:\n  hold", "tools:\n  worker: {agent: worker, description: Ask the worker}\n  hold", 1))
	node := w.node("dev", "--listen", "127.0.0.1:0")
	begin := func(boss string) {
		w.run("send", boss, "Ask the worker to use hold").exits(0)
		w.started()
	}
	begin("boss/b")
	w.run("delete", "boss/b", "--children", "--yes").exits(0, "worker/sub-", "boss/b: deleted")
	w.run("ls").exits(0, "no agents")

	begin("boss/c")
	node.end(syscall.SIGTERM)
	w.file("reprise.yaml", "agents:\n  other: {model: demo/demo}\n")
	w.dev()
	w.run("delete", "boss/c", "--children", "--yes").exits(0, "worker/sub-", "boss/c: deleted")
	w.run("ls").exits(0, "no agents")
}

func TestEncryption(t *testing.T) {
	const one, other = "0101010101010101010101010101010101010101010101010101010101010101", "0202020202020202020202020202020202020202020202020202020202020202"
	w := newWorld(t)
	w.file("key", one+"\n")
	w.file("bad", "not a key")
	w.file("other", other+","+one)
	w.run("dev", "--key-file", "none").exits(1, "none")
	w.run("dev", "--key-file", "bad").exits(1, "bad", "openssl rand -hex 32")
	n := w.node("dev", "--listen", "127.0.0.1:0", "--key-file", "key")
	w.run("doctor").exits(0, "ok    encryption", "stored encrypted")
	if !strings.Contains(n.ready, "encryption on") {
		t.Errorf("it says %s", n.ready)
	}
	w.run("ask", "assistant/main", "What is 17 times 3? xyzzy-4711").exits(0, "51")
	w.run("delete", "assistant/main", "--dry-run").exits(0, "the key")
	n.end(syscall.SIGTERM)
	if err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "xyzzy-4711") {
			t.Errorf("%s holds what was said", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.run("dev", "--listen", "127.0.0.1:0").exits(1, "encrypted", "--key-file", "REPRISE_KEY")
	w.file("reprise.yaml", small+"encryption: {key: \""+other+"\"}\n")
	w.run("dev", "--listen", "127.0.0.1:0").exits(1, "not the store's")
	w.file("reprise.yaml", small+"encryption: {key_file: other}\n")
	n = w.node("dev", "--listen", "127.0.0.1:0")
	w.run("history", "assistant/main").exits(0, "xyzzy-4711")
	w.run("backup", "store.tar").exits(0)
	n.end(syscall.SIGTERM)

	// A copy has no keys: it says so, and no node starts on it without them.
	w.run("restore", "store.tar", "--data", "again", "--no-check").exits(0, "KV_reprise_keys", "wrapping key")
	for _, args := range [][]string{nil, {"--key-file", "other"}} {
		w.file("reprise.yaml", small)
		w.run(append([]string{"dev", "--listen", "127.0.0.1:0", "--data", "again"}, args...)...).exits(1, "KV_reprise_keys", "restore --keys")
	}
}

// A node without the key ends, and says why, once another encrypts the store.
func TestNodeEndsByItself(t *testing.T) { // A108
	w := newWorld(t)
	w.file("reprise.yaml", small)
	w.file("key", "0101010101010101010101010101010101010101010101010101010101010101")
	n := w.dev()
	address, err := os.ReadFile(filepath.Join(w.dir, ".reprise", "address"))
	if err != nil {
		t.Fatal(err)
	}
	w.launch("serve", "--nats", strings.TrimSpace(string(address)), "--key-file", "key") // its NATS may end before it is ready
	<-n.done
	if code := n.end(0); code != 1 || !strings.Contains(n.errs.String(), "reprise: this store has been encrypted") {
		t.Errorf("exit code %d: %s", code, n.errs)
	}
	w.run("dev", "--listen", "127.0.0.1:0").exits(1, "encrypted under", "--key-file")
}

func TestKeysCopied(t *testing.T) { // A108, A29
	const one, other = "0101010101010101010101010101010101010101010101010101010101010101", "0202020202020202020202020202020202020202020202020202020202020202"
	w := newWorld(t)
	w.file("reprise.yaml", small)
	w.file("key", one)
	w.file("wrong", other)
	serve := func(data string) *proc {
		return w.node("dev", "--listen", "127.0.0.1:0", "--key-file", "key", "--data", data)
	}
	n := serve(".reprise")
	w.run("ask", "assistant/kept", "xyzzy-4711").exits(0)
	w.run("ask", "assistant/gone", "xyzzy-4711").exits(0)
	w.run("backup", "store.tar").exits(0, "backup --keys")
	w.run("delete", "assistant/gone", "--yes").exits(0)
	w.run("backup", "--keys", "store.keys").exits(0, "1 key of root reprise", "without the wrapping key")
	w.run("backup", "--keys", "store.keys").exits(1, "--force")
	info, err := os.Stat(filepath.Join(w.dir, "store.keys"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	again := w.run("backup", "--keys", "--force", "-o", "json", "store.keys").exits(0).objects()[0]
	wantKeys(t, again, "file", "format", "version", "root", "store", "begun", "marks", "keys", "left_out")
	n.end(syscall.SIGTERM)

	w.run("restore", "store.tar", "--data", "second", "--no-check").exits(0, "restore --keys")
	w.run("restore", "--keys", "store.tar", "--data", "second").exits(1, "store.tar", "backup --keys")
	w.run("restore", "--keys", "store.keys", "--data", "none").exits(1, "no store in none")
	w.run("restore", "--keys", "-").exits(2)
	w.run("restore", "store.tar", "--key-file", "key", "--data", "third").exits(2, "--keys")
	w.run("restore", "--keys", "store.keys", "--data", "second", "--key-file", "wrong").exits(1, "not the store's")
	w.run("restore", "--keys", "--dry-run", "store.keys", "--key-file", "wrong").exits(1, "not the store's")
	w.run("restore", "--keys", "--dry-run", "store.keys").exits(0, "is whole: 1 key")
	if entries, err := os.ReadDir(w.dir); err != nil || len(entries) > 8 {
		t.Errorf("something was left: %v, %v", entries, err)
	}
	w.run("restore", "--keys", "store.keys", "--data", "second").exits(0, "1 key put back", "not tried")
	w.run("restore", "--keys", "store.keys", "--data", "second", "--key-file", "key", "-o", "json").exits(0, `"there":1`)
	n = serve("second")
	w.run("history", "assistant/kept", "--data", "second").exits(0, "xyzzy-4711")
	w.run("history", "assistant/gone", "--data", "second").exits(1, "key that it is encrypted with is missing")
	w.run("restore", "--keys", "store.keys", "--data", "second").exits(0, "1 there already") // beside a node
	w.run("usage", "--data", "second").exits(0, "could not be read")
	w.run("ls", "--data", "second").exits(0, "could not be read")
	n.kill()
	w.run("restore", "--keys", "store.keys", "--data", "second").exits(0, "1 there already") // a node has left its address
}
