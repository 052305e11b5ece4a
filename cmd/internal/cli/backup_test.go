package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// load publishes inputs to a few agents until it is stopped, and knows which
// the server has acknowledged.
type load struct {
	t      *testing.T
	js     jetstream.JetStream
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	acked []string
}

const (
	loaded   = 4    // agents under load
	mostLoad = 2000 // inputs, so that a slow machine does not fill its disk
)

// loads begins to publish. Every second input has an id of its own.
func (w *world) loads() *load {
	w.t.Helper()
	js, err := jetstream.New(connect(w.t, w))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour) // else each input is given up after seconds
	l := &load{t: w.t, js: js, cancel: cancel, done: make(chan struct{})}
	w.t.Cleanup(cancel)
	go func() {
		defer close(l.done)
		for i := 0; i < mostLoad && ctx.Err() == nil; i++ {
			text := fmt.Sprintf("input %d.", i)
			msg := &nats.Msg{Subject: fmt.Sprintf("reprise.in.default.assistant.load%d", i%loaded), Data: []byte(text), Header: nats.Header{}}
			if i/loaded%2 == 0 {
				msg.Header.Set("Reprise-Id", fmt.Sprintf("load-%d", i))
			}
			if _, err := js.PublishMsg(ctx, msg); err != nil {
				return // the node was killed
			}
			l.mu.Lock()
			l.acked = append(l.acked, text)
			l.mu.Unlock()
		}
	}()
	return l
}

// so is what was acknowledged so far.
func (l *load) so() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acked)
}

// accepted counts the inputs that agents under load have accepted, by text, and
// says which have ended.
func (w *world) accepted() (times map[string]int, ended map[string]bool) {
	w.t.Helper()
	times, ended = make(map[string]int), make(map[string]bool)
	for i := range loaded {
		texts := make(map[string]string) // by id
		for _, ev := range w.run("events", fmt.Sprintf("assistant/load%d", i), "-o", "json").exits(0).objects() {
			switch ev["type"] {
			case "input.accepted":
				text, _ := data(ev)["content"].(string)
				id, _ := data(ev)["input"].(string)
				texts[id] = text
				times[text]++
			case "turn.completed":
				ids, _ := data(ev)["inputs"].([]any)
				for _, id := range ids {
					ended[texts[fmt.Sprint(id)]] = true
				}
			}
		}
	}
	return times, ended
}

// awaitLoad waits until an input of the load, by text, has ended.
func (w *world) awaitLoad(agent, text string) {
	w.t.Helper()
	id := ""
	w.until(agent, "the end of "+text, func(ev map[string]any) bool {
		if ev["type"] == "input.accepted" && data(ev)["content"] == text {
			id, _ = data(ev)["input"].(string)
		}
		ids, _ := data(ev)["inputs"].([]any)
		return ev["type"] == "turn.completed" && id != "" && slices.Contains(ids, any(id))
	})
}

const loadedConfig = `
agents:
  assistant: {model: demo/demo, tools: [calculator], max_queue: 2000}
`

// TestBackupUnderLoad rehearses the loss of a machine: a backup is taken while
// inputs flow, the node is killed, its folder is gone, and another continues.
func TestBackupUnderLoad(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", loadedConfig)
	node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	l := w.loads()
	for i := range loaded {
		w.awaitLoad(fmt.Sprintf("assistant/load%d", i), fmt.Sprintf("input %d.", 20+i))
	}
	_, over := w.accepted()
	before := l.so()
	w.run("backup", "store.tar").exits(0, "store.tar: ", "streams of root reprise")
	l.cancel()
	node.kill()
	<-l.done
	if err := os.RemoveAll(filepath.Join(w.dir, ".reprise")); err != nil {
		t.Fatal(err)
	}

	w.run("restore", "store.tar", "--dry-run").exits(0, "store.tar is whole")
	w.run("restore", "store.tar").exits(0, "store.tar is whole", "restored to .reprise", "serve --data .reprise")
	node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	last := make(map[int]string)
	for i, text := range before {
		last[i%loaded] = text
	}
	for i, text := range last {
		w.awaitLoad(fmt.Sprintf("assistant/load%d", i), text)
	}
	times, ended := w.accepted()
	for _, text := range before {
		if times[text] != 1 || !ended[text] {
			t.Errorf("%s was accepted %d times, ended: %v", text, times[text], ended[text])
		}
	}
	for text := range over {
		if !ended[text] {
			t.Errorf("%s had ended before the backup, and has not after it", text)
		}
	}
	for text, n := range times {
		if n != 1 {
			t.Errorf("%s was accepted %d times", text, n)
		}
	}
	w.run("ask", "assistant/load0", "What is 17 times 3?").exits(0, "51")
	w.run("doctor", "--deep").exits(0)
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
}

func TestBackupRefuses(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	w.run("backup", "store.tar").exits(1, "no node is known")
	w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
	w.file("there.tar", "precious")
	w.run("backup", "there.tar").exits(1, "there.tar is there already", "--force")
	w.run("backup", "there.tar", "--force").exits(0)
	w.run("backup", "--root", "other", "o.tar").exits(1, `root "other"`)
	w.run("backup", "none/store.tar").exits(1, "none")
	if r := w.run("backup", "-").exits(0, "streams of root"); !strings.Contains(r.out, "manifest.json") {
		t.Error("nothing came on standard output")
	}
	if o := w.run("backup", "j.tar", "-o", "json").exits(0).objects()[0]; o["format"] != 1.0 || o["root"] != "reprise" {
		t.Errorf("backup: %v", o)
	}
	url := w.address()
	w.run("restore", "there.tar").exits(1, "not empty", "--data")
	w.run("restore", "there.tar", "--nats", url).exits(1, "nodes are alive")
	w.run("restore", "-").exits(2, "twice")
	w.run("restore", "gone.tar", "--nats", url, "--data", "new").exits(2, "leave one of them out")
	w.run("restore", "gone.tar", "--replicas", "3", "--data", "new").exits(2, "stands alone")
	w.run("restore", "gone.tar").exits(1, "not empty") // before the file is read
	w.run("restore", "there.tar", "--data", "reprise.yaml").exits(1, "name a folder", "--data")
	w.run("backup", "--force", ".").exits(1, "is a folder", "name a file")
	w.run("backup", "no/such/o.tar").exits(1, "no/such does not exist")
	w.run("restore", "").exits(2, "is empty")
	w.run("backup", "").exits(2, "is empty")
	w.run("restore", "gone.tar", "--data", "new").exits(1, "gone.tar")
	w.run("restore", "reprise.yaml", "--data", "new").exits(1, "reprise.yaml: the file is no whole backup")
	whole, err := os.ReadFile(filepath.Join(w.dir, "there.tar"))
	if err != nil {
		t.Fatal(err)
	}
	w.file("half.tar", string(whole[:len(whole)/2]))
	w.run("restore", "half.tar", "--data", "new").exits(1, "cut short")
	w.run("restore", "there.tar", "--root", "other", "--data", "new").exits(1, "--root reprise")
	for _, left := range []string{"new", "o.tar", "new.restoring-*", "*.part"} {
		if found, _ := filepath.Glob(filepath.Join(w.dir, left)); len(found) > 0 {
			t.Errorf("%v was left", found)
		}
	}
}

// TestBackupKilled kills a backup at its first byte and a restore at any: no
// half file has the name, and no half store the folder.
func TestBackupKilled(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
	w.run("backup", "store.tar").exits(0)

	w.killed(w.there("cut.tar*.part"), w.without("cut.tar"), "backup", "cut.tar")
	w.run("restore", "cut.tar", "--data", "cut").exits(1, "cut.tar")

	w.killed(w.there("new.restoring-*/jetstream"), w.without("new"), "restore", "store.tar", "--data", "new")
	if _, err := os.Stat(filepath.Join(w.dir, "new")); err == nil {
		t.Error("half a store has the folder's name")
	}
	w.file("new.restoring-9999999999/x", "") // named last, whatever number the other one has
	w.run("restore", "store.tar", "--data", "new").exits(0, "an earlier restore was cut short", "new.restoring-", " new.restoring-9999999999:")
	w.file("cut.tar.8.part", "")
	w.file("cut.tar.gz.part", "of somebody else")
	if r := w.run("backup", "cut.tar").exits(0, "an earlier backup was cut short", " cut.tar.8.part"); strings.Contains(r.err, "gz") {
		t.Error(r.err)
	}
	node := w.node("serve", "--data", "new", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.run("history", "assistant/main", "--data", "new").exits(0, "51")
	node.end(syscall.SIGTERM)
}

// TestRestoreToServer restores to a NATS server of its own, is killed in the
// middle, and begins again.
func TestRestoreToServer(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
	w.run("backup", "store.tar").exits(0)
	node.end(syscall.SIGTERM)

	srv, err := embedded.Start(embedded.Config{Dir: filepath.Join(w.dir, "server"), Sync: embedded.SyncRelaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Shutdown() }()
	url := srv.ClientURL()
	js := connected(t, url)
	restoring := func() bool {
		_, err := js.Stream(t.Context(), "REPRISE_RESTORE")
		return err == nil
	}
	w.killed(restoring, func() error { return emptied(t, js) }, "restore", "store.tar", "--nats", url)
	w.run("serve", "--nats", url).exits(1, "cut short", "restore --again")
	w.run("backup", "half.tar", "--nats", url).exits(1, "cut short")
	w.run("restore", "store.tar", "--nats", url).exits(1, "cut short", "--again")
	w.run("restore", "store.tar", "--nats", url, "--replicas", "3").exits(1)
	w.run("restore", "store.tar", "--nats", url, "--again", "-o", "json").exits(0, `"format":1`)
	w.run("restore", "store.tar", "--nats", url, "--again").exits(1, "there is an installation already")
	w.node("serve", "--nats", url)
	w.env = append(w.env, "NATS_URL="+url)
	w.run("history", "assistant/main").exits(0, "51")
	w.run("ask", "assistant/main", "What is 4 times 3?").exits(0, "12")
	w.run("doctor").exits(0)
}

// killed runs the program and kills it as soon as it has done half of its work, and no
// more. One that was faster is undone and tried again.
func (w *world) killed(half func() bool, undo func() error, args ...string) {
	w.t.Helper()
	for range 50 {
		cmd := w.command(w.t.Context(), args...)
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(ended) == 0 && !half() {
		}
		_ = cmd.Process.Kill()
		if <-ended; !cmd.ProcessState.Success() && half() {
			return
		}
		if err := undo(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Fatalf("%v was always through before it was killed", args)
}

// there reports whether a file that matches exists.
func (w *world) there(pattern string) func() bool {
	return func() bool {
		found, _ := filepath.Glob(filepath.Join(w.dir, pattern))
		return len(found) > 0
	}
}

// without removes what a program has made.
func (w *world) without(made string) func() error {
	return func() error { return os.RemoveAll(filepath.Join(w.dir, made)) }
}

// connected is JetStream of a server, until the test ends.
func connected(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// emptied removes all streams of a server.
func emptied(t *testing.T, js jetstream.JetStream) error {
	for name := range js.StreamNames(t.Context()).Name() {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			return err
		}
	}
	return nil
}

// address is the URL of the world's own node.
func (w *world) address() string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, ".reprise", "address"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}
