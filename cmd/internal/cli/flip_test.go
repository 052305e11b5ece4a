package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

const paying = `
agents:
  assistant: {model: demo/demo, tools: [pay]}
tools:
  pay:
    command: [/bin/sh, ./pay.sh]
    description: Pay once
    on_unknown: pause
`

// TestFlippedBit flips one bit of the log, after a kill and after a stop in order. What
// was acknowledged is there, or its agents say that it is not, and no payment is made
// twice.
func TestFlippedBit(t *testing.T) { // A29
	for name, end := range map[string]func(w *world, node *proc){
		"kill": func(w *world, node *proc) {
			w.recorded("bank")
			node.kill()
			w.spoil("bank", 2) // and all behind it is dropped
		},
		"stop": func(w *world, node *proc) {
			newest := w.frames("bank")
			if code := node.end(syscall.SIGTERM); code != 0 {
				w.t.Fatalf("exit code %d\n%s", code, node.errs)
			}
			w.spoil("bank", newest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.file("reprise.yaml", paying)
			w.file("pay.sh", "echo paid >>payments; echo paid\n")
			node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "always")
			w.run("ask", "assistant/bank", "--id", "one", "hello").exits(0)
			w.run("ask", "assistant/bank", "--id", "pay-1", "use pay").exits(0)
			w.run("ask", "assistant/bank", "--id", "two", "hello").exits(0)
			w.run("doctor", "--data", ".reprise", "--quick").exits(0, "a node answers") // it runs there
			end(w, node)
			w.run("doctor", "--data", ".reprise").exits(1, "fail  file", "assistant/bank", logOf("bank"), "1.blk at byte", "1 place is damaged", "--quarantine")
			w.run("doctor", "--data", ".reprise", "--deep").exits(1, "fail  server") // which only a node does
			w.run("doctor", "--data", "nowhere").exits(1, "nowhere")
			node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "always")
			w.run("ask", "assistant/bank", "--id", "pay-1", "use pay").exits(1, "damaged")
			w.run("events", "assistant/bank").exits(1, "damaged")
			w.run("doctor").exits(1, "fail", logOf("bank"))
			w.run("ask", "assistant/"+elsewhere("bank"), "What is 17 times 3?").exits(0)
			w.run("doctor", "--data", ".reprise", "--quarantine").exits(1, "in use by process")
			if code := node.end(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d\n%s", code, node.errs)
			}
			w.run("doctor", "--data", ".reprise", "--quarantine", "--deep").exits(2, "leave all else out")
			w.run("doctor", "--data", ".reprise", "--quarantine").exits(0, "warn  file", "assistant/bank", "1 place in 1 stream of", "quarantine/"+logOf("bank"))
			w.run("doctor", "--data", ".reprise").exits(0)
			node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "always")
			w.run("ask", "assistant/bank", "--id", "pay-1", "use pay").exits(1, "damaged")
			w.run("ask", "assistant/"+neighbour("bank"), "What is 17 times 3?").exits(0)
			r := w.run("doctor").exits(1, "fail", "assistant/bank", "delete the agent")
			newest := name == "stop" // was lost
			if strings.Contains(r.out, "--accept-loss") != newest {
				t.Errorf("got the advice\n%s\nwant --accept-loss in it: %v", r.out, newest)
			}
			payments, err := os.ReadFile(filepath.Join(w.dir, "payments"))
			if err != nil || string(payments) != "paid\n" {
				t.Errorf("payments: %q, %v", payments, err)
			}
			w.run("doctor", "--accept-loss", logOf("bank"), "--reason", "a test").exits(0)
			if code := node.end(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d\n%s", code, node.errs)
			}
			node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "always")
			if again := w.run("ask", "assistant/bank", "hello"); newest {
				again.exits(0)
			} else {
				again.exits(1, "damaged")
			}
			if code := node.end(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d\n%s", code, node.errs)
			}
		})
	}
}

// elsewhere is a key whose log is another stream.
func elsewhere(key string) string {
	other := key
	for logOf(other) == logOf(key) {
		other += "x"
	}
	return other
}

// neighbour is another key whose log is the same stream.
func neighbour(key string) string {
	other := key + "x"
	for logOf(other) != logOf(key) {
		other += "x"
	}
	return other
}

// frames is how many frames an agent has.
func (w *world) frames(key string) int { return int(w.stored(key)) }

// recorded waits until what an agent's log holds is on record elsewhere.
func (w *world) recorded(key string) {
	w.t.Helper()
	last := w.stream(key).CachedInfo().State.LastSeq
	js, err := jetstream.New(connect(w.t, w))
	if err != nil {
		w.t.Fatal(err)
	}
	marks, err := js.Stream(w.t.Context(), natslog.MarksOf(messages.Subjects{}))
	if err != nil {
		w.t.Fatal(err)
	}
	for {
		var mark struct{ Last uint64 }
		m, err := marks.GetLastMsgForSubject(w.t.Context(), fmt.Sprintf("$KV.reprise_marks.p.%02d", int(agentID(key).Partition())))
		if err == nil {
			err = json.Unmarshal(m.Data, &mark)
		}
		if err == nil && mark.Last >= last {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-w.t.Context().Done():
			w.t.Fatal(err)
		}
	}
}

// spoil flips a bit of the n-th frame of an agent, while no node runs.
func (w *world) spoil(key string, n int) {
	w.t.Helper()
	subject := messages.Subjects{}.Log(agentID(key))
	data := filepath.Join(w.dir, ".reprise")
	for _, path := range embeddedtest.Blocks(w.t, data, logOf(key)) {
		block, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		at := 0
		for range n {
			next := strings.Index(string(block[at:]), subject)
			if next < 0 {
				w.t.Fatalf("%s has no frame %d", path, n)
			}
			at += next + len(subject)
		}
		block[at+200] ^= 1
		if err := os.WriteFile(path, block, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}
