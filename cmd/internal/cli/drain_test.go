//go:build unix

package cli_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// drain runs drain, again while the node that it names is not listed: that of a slow
// machine may have missed a heartbeat.
func (w *world) drain(args ...string) result {
	w.t.Helper()
	args = append([]string{"drain"}, args...)
	r := w.run(args...)
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end) && strings.Contains(r.err, "no node has the id"); {
		r = w.run(args...)
	}
	return r
}

// Two nodes: one is drained by an operator, takes part again, and is stopped by a
// signal, which drains it; agents answer at the other.
func TestDrain(t *testing.T) { // A91
	w := newWorld(t)
	w.file("reprise.yaml", "agents:\n  assistant: {model: demo/demo, tools: [calculator]}\n")
	first := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed", "-o", "json")
	id, url := object(t, first.ready)["node"].(string), object(t, first.ready)["nats"].(string)
	w.run("drain", id).exits(1, "no other node takes partitions", "start one first")
	second := w.node("serve", "--nats", url, "-o", "json")
	other := object(t, second.ready)["node"].(string)
	w.run("ask", "assistant/a", "What is 2 times 3?").exits(0, "6")
	drained := w.drain(id[:25], "-o", "json").exits(0).objects()[0]
	if drained["node"] != id || drained["draining"] != true || drained["partitions"] != 0.0 {
		t.Errorf("it says %v", drained)
	}
	w.drain(id).exits(0, "has no partitions now and can be stopped") // it has none already
	w.drain(other).exits(1, "no other node takes partitions")
	w.run("ask", "assistant/a", "What is 5 times 3?").exits(0, "15")
	w.drain(id, "--off").exits(0, "takes partitions again")
	w.drain(other).exits(0, "has no partitions now")
	w.run("ask", "assistant/a", "What is 7 times 3?").exits(0, "21")
	w.drain(other, "--off").exits(0)
	nobody := w.run("drain", "nobody")
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end) && !(strings.Contains(nobody.err, id) && strings.Contains(nobody.err, other)); { // as above
		nobody = w.run("drain", "nobody")
	}
	nobody.exits(1, `no node has the id or host "nobody"`, id, other)
	w.run("drain", id[:1]).exits(1, "write more of the id")
	if code := second.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, second.errs)
	}
	_, log, stopping := strings.Cut(second.errs.String(), "stopping; ")
	for line := range strings.Lines(log) { // a slow machine may have missed a heartbeat
		stopping = stopping && (!strings.Contains(line, "level=WARN") || strings.Contains(line, "membership was not renewed in time"))
	}
	if !stopping {
		t.Errorf("it is not stopped in order:\n%s", second.errs)
	}
	w.run("ask", "assistant/a", "What is 9 times 3?").exits(0, "27")
	w.run("drain", other).exits(1, "no node has the id or host")
	first.end(syscall.SIGTERM)
	w.run("drain", id, "--nats", url).exits(1, "no NATS server answers")
	w.run("serve", "--listen", "127.0.0.1:0", "--drain-limit", "0s").exits(2, "--drain-limit must be positive")
}
