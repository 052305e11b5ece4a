//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// get asks an HTTP address.
func get(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(b)
}

func TestNodes(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	w.file("other.yaml", "agents:\n  assistant: {model: demo/demo}\n  clerk: {model: demo/demo}\n")
	first := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed", "--http", "127.0.0.1:0", "--payload-memory", "64MiB", "-o", "json")
	ready := object(t, first.ready)
	url, address := ready["nats"].(string), ready["http"].(string)
	status, body := get(t, address, "/readyz")
	for status == 503 && t.Context().Err() == nil { // a slow machine may have missed a heartbeat
		status, body = get(t, address, "/readyz")
	}
	if status != 200 || body != `{"ready":true,"reasons":[]}`+"\n" {
		t.Errorf("readyz: %d %s", status, body)
	}
	if _, body := get(t, address, "/metrics"); !strings.Contains(body, "reprise_members 1\n") || !strings.Contains(body, "reprise_payload_memory_bytes 6.7108864e+07\n") || !strings.Contains(body, `version="v9.8.7-test"`) {
		t.Errorf("metrics: %s", body)
	}
	second := object(t, w.node("serve", "--nats", url, "--config", "other.yaml", "--name", "blue", "--http", "off", "-o", "json").ready)
	if second["http"] != "" {
		t.Errorf("--http off: %v", second)
	}
	var nodes []map[string]any
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); { // a slow machine may be silent for a moment
		nodes = w.run("nodes", "-o", "json").exits(0).objects()
		if len(nodes) == 2 && !slices.ContainsFunc(nodes, func(n map[string]any) bool { return n["ready"] != true }) {
			break
		}
	}
	if len(nodes) != 2 {
		t.Fatalf("nodes: %v", nodes)
	}
	w.run("nodes").exits(0, "PARTITIONS", " *", "blue", "assistant clerk", "v9.8.7-test")
	wantKeys(t, nodes[0], "node", "host", "version", "since", "kinds", "draining", "partitions", "beat_ms", "here", "answers", "ping_ms", "clock_ms", "in_memory", "ready", "definitions", "time", "http")
	w.run("partitions").exits(0, "PARTITIONS", "MOVING", ready["node"].(string))
	w.run("partitions", "--all").exits(0, "EPOCH", "OWNER", ready["node"].(string))
	partitions := w.run("partitions", "-o", "json").exits(0).objects()
	if len(partitions) != 64 {
		t.Fatalf("partitions: %v", partitions)
	}
	wantKeys(t, partitions[0], "partition", "owner", "epoch", "meant_for", "agents", "owing", "waiting", "in_hand")
	found := w.run("doctor").exits(0)
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end) && strings.Contains(found.out, "no answer within"); { // as above
		found = w.run("doctor").exits(0)
	}
	found.exits(0, "does not serve clerk", "assistant is defined in 2 ways")
}

// Of two nodes one is frozen and gets half of what is asked: the other one answers all
// the same, and lists it as silent for as long as its key is there.
func TestFrozenNode(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	url := object(t, w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed", "--http", "off", "-o", "json").ready)["nats"].(string)
	frozen := w.node("serve", "--nats", url, "--http", "off", "-o", "json")
	id := object(t, frozen.ready)["node"].(string)
	if err := frozen.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(frozen.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it is not frozen: %v, status %#x", err, status)
	}
	for _, node := range w.run("nodes", "--nats", url, "-o", "json").exits(0).objects() {
		if node["node"] == id {
			if why := fmt.Sprint(node["error"]); node["answers"] != false || !strings.Contains(why, "no answer within") || node["host"] == "" {
				t.Errorf("the frozen node: %v", node)
			}
		}
	}
	for { // until the other one has what it had
		list := w.run("partitions", "--nats", url, "-o", "json")
		if list.code == 0 {
			return
		}
		list.exits(1, `"type":"uncovered"`, "partition ")
	}
}

func TestHTTPAddressTaken(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	w.run("serve", "--listen", "127.0.0.1:0", "--http", l.Addr().String()).exits(1, l.Addr().String(), "in use")
	w.run("serve", "--listen", "127.0.0.1:0", "--http", "8080").exits(2, "host:port")
	var node *proc
	for taken := false; !taken; { // another process that has it may let it go before the node asks for it
		usual, err := net.Listen("tcp", "127.0.0.1:8080")
		if err == nil {
			defer func() { _ = usual.Close() }()
		}
		node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed", "-o", "json")
		node.end(syscall.SIGTERM) // and all that it said is here
		taken = err == nil || object(t, node.ready)["http"] == ""
	}
	if object(t, node.ready)["http"] != "" || !strings.Contains(node.errs.String(), "127.0.0.1:8080 is in use") {
		t.Errorf("%s%s", node.ready, node.errs)
	}
}

func TestLogOfANode(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	w.run("serve", "--log-level", "loud").exits(2, "debug, info, warn or error")
	w.run("serve", "--log-format", "xml").exits(2, "text or json")
	node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed", "--http", "off", "-o", "json", "--log-format", "json", "--log-level", "info")
	nc, err := nats.Connect(object(t, node.ready)["nats"].(string), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("reprise.ctl.default.assistant.x", []byte(`{"type":"nonsense"}`)); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(node.errs.String(), `"assistant/x"`) || w.run("dlq", "ls", "-o", "json").exits(0).out == "" { // until it is logged, and is one
		if t.Context().Err() != nil {
			t.Fatal("no dead letter came")
		}
	}
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d: %s", code, node.errs)
	}
	var texts []string
	for line := range strings.Lines(node.errs.String()) {
		var record map[string]any
		if json.Unmarshal([]byte(line), &record) != nil {
			t.Errorf("no record: %s", line)
		}
		if record["node"] != object(t, node.ready)["node"] || record["level"] == "DEBUG" {
			t.Errorf("a record: %s", line)
		}
		if record["agent"] == "assistant/x" && (record["partition"] == nil || record["epoch"] == nil) {
			t.Errorf("a record about an agent: %s", line)
		}
		texts = append(texts, fmt.Sprint(record["msg"], " ", record["agent"]))
	}
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(text, " assistant/x") }) {
		t.Errorf("nothing was logged about assistant/x: %q", texts)
	}
}
