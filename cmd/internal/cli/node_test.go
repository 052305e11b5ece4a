package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDevSays(t *testing.T) {
	w := newWorld(t)
	node := w.dev()
	address, err := os.ReadFile(filepath.Join(w.dir, ".reprise", "address"))
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(address))
	for _, part := range []string{url, "./.reprise", "sync relaxed", "0 agents known"} {
		if !strings.Contains(node.ready, part) {
			t.Errorf("%q is missing in %q", part, node.ready)
		}
	}
	if r := w.run("ls", "--timeout", "1ns").exits(1, "does not answer", "raise --timeout"); strings.Contains(r.err, "gone") {
		t.Errorf("a node that runs is said to be gone: %s", r.err)
	}
	w.env = append(w.env, "NATS_URL=nats://127.0.0.1:1")
	w.run("ls").exits(1, "127.0.0.1:1")
	w.run("ls", "--nats", url).exits(0)
	w.run("ls", "--data", ".reprise").exits(0)
	w.file(".config/nats/context/here.json", `{"url":"`+url+`"}`)
	w.run("ls", "--context", "here").exits(0)
	w.run("ls", "--context", "there").exits(1, "there.json")
	w.run("ls", "--context", "../there").exits(1, "nats context ls")
	w.file(".config/nats/context/far.json", `{"url":"`+url+`","jetstream_domain":"hub"}`)
	w.run("ls", "--context", "far").exits(1, "jetstream_domain")
	w.file(".config/nats/context/broken.json", `{"url`)
	w.run("ls", "--context", "broken").exits(1, "broken.json is not JSON")
	w.run("ls", "--nats", url, "--creds", "none.creds").exits(1, "none.creds")
	w.run("ls", "--nats", url, "--root", "other").exits(1, "no Reprise node")
	w.run("send", "--nats", url, "--root", "other", "assistant/x", "hi").exits(1, "no Reprise streams")
	w.run("dev", "--listen", "127.0.0.1:0").exits(1, "in use by process")
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
	if text := node.rest.String(); !strings.Contains(text, binary+` ask assistant/main "What is 17 times 3?"`) ||
		!strings.Contains(text, "nats pub -s "+url+" reprise.in.default.assistant.main") {
		t.Errorf("what to try: %s", text)
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".reprise", "address")); err == nil {
		t.Error("the address file is still there after a clean exit")
	}
}

// What to try is something that the first agent can do.
func TestDevWithoutCalculator(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", "agents: {clerk: {model: demo/demo, tools: [clock]}}\n")
	node := w.dev()
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
	if text := node.rest.String(); strings.Count(text, `"What can you do?"`) != 2 || strings.Contains(text, "17 times 3") {
		t.Errorf("what to try: %s", text)
	}
}

func TestNoNode(t *testing.T) {
	w := newWorld(t)
	w.run("ls").exits(1, "no node is known", "dev", "--nats")
	w.file(".reprise/address", "nats://127.0.0.1:1\n")
	w.run("ls").exits(1, "nats://127.0.0.1:1", "address", "is gone", "dev")
	w.run("doctor").exits(1, "fail", "127.0.0.1:1")
	for _, damaged := range []string{"", "\n", "not an address\n", "\x00\x01:"} {
		w.file(".reprise/address", damaged)
		if r := w.run("ls").exits(1, "address does not hold the address of a node", "--nats"); strings.Contains(r.err, "gone") || strings.Contains(r.err, "4222") {
			t.Errorf("address %q: %s", damaged, r.err)
		}
	}
	w.run("ask", "assistant/main", "hi", "--nats", "nats://127.0.0.1:1").exits(1, "no NATS server answers")
	w.run("ls", "--nats", "nats://user:verysecret@127.0.0.1:1").exits(1)
}

func TestFolderAndPort(t *testing.T) {
	w := newWorld(t)
	w.file("newer/VERSION", "99 reprise v99\n")
	w.run("dev", "--data", "newer", "--listen", "127.0.0.1:0").exits(1, "format 99", "newer")
	w.file("plain", "")
	w.run("dev", "--data", "plain", "--listen", "127.0.0.1:0").exits(1, "not a folder")
	w.run("dev", "--sync", "never").exits(2, "always")
	w.run("dev", "--listen", "nonsense").exits(1, "127.0.0.1:4222")
	w.run("dev", "--model", "nobody/gpt").exits(2, "nobody")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	w.run("dev", "--listen", l.Addr().String()).exits(1, "cannot listen", "--listen")
}

// TestUsualPort holds that dev finds a port if the usual one is taken: by this
// test, or by another process before.
func TestUsualPort(t *testing.T) {
	w := newWorld(t)
	const usual = ":4222," // not the beginning of another port
	var node *proc
	for taken := false; !taken; { // another process that has it may let it go before the node asks for it
		l, err := net.Listen("tcp", "127.0.0.1:4222")
		if err == nil {
			defer func() { _ = l.Close() }()
		}
		node = w.node("dev", "--sync", "relaxed")
		w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
		node.end(syscall.SIGTERM) // and all that it said is here
		taken = err == nil || !strings.Contains(node.ready, usual)
	}
	if strings.Contains(node.ready, usual) || !strings.Contains(node.errs.String(), "is in use") {
		t.Errorf("%s%s", node.ready, node.errs)
	}
}

const small = `
agents:
  assistant: {model: demo/demo, tools: [calculator]}
`

func TestServe(t *testing.T) {
	w := newWorld(t)
	w.run("serve").exits(1, "reprise.yaml")
	w.file("reprise.yaml", small)
	w.run("serve", "--nats", "nats://127.0.0.1:1").exits(1, "127.0.0.1:1")
	w.run("serve", "--nats", "nats://x", "--data", "d").exits(2, "--data")
	w.run("serve", "--replicas", "3").exits(2, "--replicas")
	first := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "always", "-o", "json")
	o := object(t, first.ready)
	wantKeys(t, o, "type", "mode", "node", "nats", "http", "data", "sync", "encrypted", "kinds", "agents", "partitions", "version")
	url, _ := o["nats"].(string)
	if o["sync"] != "always" || o["partitions"] != 64.0 || o["version"] != "v9.8.7-test" {
		t.Errorf("ready: %v", o)
	}
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
	second := w.node("serve", "--nats", url)
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end) && !strings.Contains(second.ready, " of 64 partitions"); {
		second.end(syscall.SIGINT) // it had all of them: a slow machine has let the membership of the first one lapse
		second = w.node("serve", "--nats", url)
	}
	none := strings.Contains(second.ready, " 0 of 64 partitions") // a slow machine has moved some to it by then
	if !strings.Contains(second.ready, "sync unknown") || !strings.Contains(second.ready, " of 64 partitions") {
		t.Errorf("the second node: %s", second.ready)
	}
	for range 8 { // some go to the second node, which forwards them
		w.run("history", "assistant/main").exits(0, "51")
	}
	if code := second.end(syscall.SIGINT); code != 0 || strings.Contains(second.rest.String(), "give this one its share") != none {
		t.Errorf("exit code %d, said %s%s", code, second.rest, second.errs)
	}
	if code := first.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, first.errs)
	}
}

// TestLogFromTheFirstLine holds that with --log-format json a node prints nothing else.
func TestLogFromTheFirstLine(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed", "--http", "127.0.0.1:0", "--name", "blue", "--log-format", "json")
	ready := object(t, node.ready)
	for _, key := range []string{"time", "node", "http", "data", "nats"} {
		if ready[key] == nil || ready[key] == "" {
			t.Errorf("%s is missing: %s", key, node.ready)
		}
	}
	if ready["msg"] != "ready" || ready["name"] != "blue" {
		t.Errorf("%s", node.ready)
	}
	node.end(syscall.SIGTERM)
	for line := range strings.Lines(node.rest.String() + node.errs.String()) {
		object(t, line)
	}
}
