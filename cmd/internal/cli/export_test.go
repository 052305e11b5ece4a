package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// exportable is an agent with a large result, one with an approval and one with a child.
const exportable = `agents:
  assistant: {model: demo/demo, tools: [dump, clock], instructions: "Answer ann.lee@example.com"}
  support: {model: demo/demo, tools: [refund]}
  team: {model: demo/demo, tools: [assistant]}
tools:
  dump:
    command: [/bin/sh, -c, "yes ann.lee@example.com | head -c 900000"]
    description: Dump the whole table
    read_only: true
  refund: {command: [/bin/sh, -c, "cat"], description: Pay an order back, approval: always, parameters: {type: object, properties: {order: {type: integer}, cents: {type: integer}}}}
  assistant: {agent: assistant, description: Ask the assistant}
`

// exported returns the agents of a file.
func (w *world) exported(file string) (agents []*export.Agent) {
	w.t.Helper()
	f, err := os.Open(filepath.Join(w.dir, file))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for a, err := range export.Agents(f) {
		if err != nil {
			w.t.Fatalf("%s: %v", file, err)
		}
		agents = append(agents, a)
	}
	return agents
}

func (w *world) absent(file string) {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(w.dir, file+"*"))
	if err != nil || len(left) > 0 {
		w.t.Errorf("there are %q, error %v, want nothing", left, err)
	}
}

// sameEvents checks that a file holds the events that the node shows, but for where a blob is stored.
func sameEvents(t *testing.T, a *export.Agent, shown []map[string]any) {
	t.Helper()
	i := 0
	for _, f := range a.Frames {
		for n, ev := range f.Events {
			b, err := json.Marshal(ev)
			if blob, is := data(shown[i])["blob"].(map[string]any); is {
				delete(blob, "stored")
			}
			want, _ := json.Marshal(shown[i]["data"])
			var got any
			if err == nil {
				err = json.Unmarshal(b, &got)
			}
			again, _ := json.Marshal(got)
			if err != nil || ev.EventType() != shown[i]["type"] || float64(f.First)+float64(n) != shown[i]["n"] || !bytes.Equal(again, want) {
				t.Errorf("event %d: got %s %s, error %v, want %v", i, ev.EventType(), again, err, shown[i])
			}
			i++
		}
	}
	if i != len(shown) {
		t.Errorf("got %d events, want %d", i, len(shown))
	}
}

func TestExport(t *testing.T) { // A83
	w := newWorld(t)
	w.file("reprise.yaml", exportable)
	w.file("key", strings.Repeat("01", 32)+"\n")
	w.node("dev", "--listen", "127.0.0.1:0", "--key-file", "key") // what is exported is in clear
	w.run("ask", "assistant/a", "please use the dump tool").exits(0)
	w.run("ask", "assistant/a", "what time is it? ```\x1b[2Jann.lee@example.com").exits(0)
	w.run("ask", "team/t", "Ask the assistant for the time").exits(0)
	w.run("send", "support/s", "refund 9900 cents for order 7").exits(0)
	w.await("support/s", "turn.paused")
	w.run("ask", "assistant/gone", "hello").exits(0)
	w.run("delete", "assistant/gone", "--yes").exits(0)

	w.part("whole", func(t *testing.T, w *world) {
		w.run("export", "assistant/a", "--to", "a.jsonl.gz").exits(0, "a.jsonl.gz: 1 agent,", "1 definition, 1 payload")
		a := w.exported("a.jsonl.gz")[0]
		sameEvents(t, a, w.run("events", "assistant/a", "-o", "json").exits(0).objects())
		for hash, data := range a.Blobs {
			if want := w.run("blob", "assistant/a", string(hash)).exits(0).out; string(data) != want {
				t.Errorf("blob %s: got %d bytes, want %d", hash, len(data), len(want))
			}
		}
		w.run("export", "assistant/a", "--to", "a.jsonl", "--no-blobs", "-o", "json").exits(0, `"blobs":0`)
		if plain := w.exported("a.jsonl")[0]; len(plain.Blobs) != 0 || plain.Head.Blobs || len(plain.Frames) != len(a.Frames) {
			t.Errorf("got %+v with %d blobs", plain.Head, len(plain.Blobs))
		}
		w.run("export", "assistant/a", "--to", "at.jsonl", "--at", "3").exits(0)
		if at := w.exported("at.jsonl")[0]; len(at.Frames) != 1 || at.End.Last != a.Frames[0].Last() {
			t.Errorf("got %+v, want the frame that holds event 3", at.End)
		}
	})
	w.part("several", func(t *testing.T, w *world) {
		w.run("export", "--all", "--to", "all.gz").exits(0, "all.gz: ")
		var names []string
		for _, a := range w.exported("all.gz") {
			names = append(names, strings.TrimPrefix(a.Head.Agent, "default/"))
		}
		if got := strings.Join(names, " "); !strings.Contains(got, "assistant/a assistant/sub-") || !strings.Contains(got, "support/s team/t") || strings.Contains(got, "gone") {
			t.Errorf("got %s", got)
		}
		w.run("export", "--kind", "support", "--to", "-").exits(0)
		if r := w.run("export", "support/s", "team/t", "--to", "two.jsonl").exits(0, "2 agents"); r.code == 0 && len(w.exported("two.jsonl")) != 2 {
			t.Error("two.jsonl does not hold two agents")
		}
	})
	w.part("refused", func(t *testing.T, w *world) {
		w.file("there.jsonl", "mine")
		w.run("export", "assistant/a", "--to", "there.jsonl").exits(1, "is there already", "--force")
		w.run("export", "assistant/a", "--to", "there.jsonl", "--force").exits(0)
		w.run("export", "assistant/none", "--to", "no.jsonl").exits(1, "does not exist")
		w.run("export", "assistant/gone", "--to", "no.jsonl").exits(1, "was deleted")
		w.run("export", "assistant/a", "--to", "no.jsonl", "--at", "9999").exits(1, "there is no event 9999")
		for _, as := range []string{"file", "markdown", "openai"} {
			if r := w.run("export", "assistant/a", "--to", "-", "--at", "9999", "--as", as).exits(1, "there is no event 9999"); r.out != "" {
				t.Errorf("as %s, standard output has %q", as, r.out)
			}
		}
		w.run("export", "assistant/a", "--to", "no/no.jsonl").exits(1, "the folder no does not exist")
		w.run("export", "--kind", "nothing", "--to", "no.jsonl").exits(1, "no such agents")
		w.run("export", "assistant/a").exits(2, "--to is missing")
		w.run("export", "--to", "no.jsonl").exits(2, "one of the three")
		w.run("export", "assistant/a", "--all", "--to", "no.jsonl").exits(2, "one of the three")
		w.run("export", "assistant/a", "assistant/a", "--to", "no.jsonl").exits(2, "named twice")
		w.run("export", "assistant/a", "--as", "pdf", "--to", "no.jsonl").exits(2, "file, markdown, openai")
		w.absent("no")
	})
	w.part("redacted", redactedExport)
	w.part("markdown", markdownExport)
	w.part("openai", openaiExport)
}

// shape is what an agent folds to, without its texts.
func shape(a *export.Agent) string {
	var turns projections.Turns
	var effects projections.Effects
	var history projections.History
	var children projections.Children
	for _, f := range a.Frames {
		projections.Fold(f, 0, &turns, &effects, &history, &children)
	}
	var text strings.Builder
	for _, l := range turns.List() {
		_, _ = fmt.Fprintln(&text, l.ID, l.Phase, l.Inputs, l.Started, l.Ended, l.Reason, l.Waiting)
	}
	for _, e := range effects.List(messages.AgentID{}) {
		_, _ = fmt.Fprintln(&text, e.N, e.Turn, e.ID, e.Tool, e.Outcome, e.Key, e.Approval, e.Asked, e.ArgsHash == "" || e.ArgsHash == messages.HashArguments(e.Arguments))
	}
	for _, it := range history.View() {
		_, _ = fmt.Fprintln(&text, it.N, it.Turn, it.Type, it.Role, it.CallID, it.Name, it.Status)
	}
	for _, c := range children.List() {
		_, _ = fmt.Fprintln(&text, c.N, c.Agent, c.Call, c.Status)
	}
	return text.String()
}

func redactedExport(t *testing.T, w *world) {
	w.file("rules.yaml", "patterns:\n  email: '[\\w.]+@[\\w.]+\\w'\npaths:\n  order: tool.requested.arguments.order\n")
	w.run("export", "--all", "--to", "r.jsonl", "--redact", "rules.yaml").exits(0, "email replaced", "order replaced")
	file, err := os.ReadFile(filepath.Join(w.dir, "r.jsonl"))
	if err != nil || bytes.Contains(file, []byte("ann.lee")) || bytes.Contains(file, []byte(`order\":7`)) {
		t.Errorf("error %v; the file holds what was to be redacted", err)
	}
	w.run("export", "--all", "--to", "plain.jsonl").exits(0)
	plain := w.exported("plain.jsonl")
	for i, a := range w.exported("r.jsonl") {
		if got, want := shape(a), shape(plain[i]); got != want {
			t.Errorf("%s: redacted it folds to\n%s\nand before to\n%s", a.Head.Agent, got, want)
		}
		for hash, data := range a.Blobs {
			if bytes.Contains(data, []byte("ann.lee")) {
				t.Errorf("blob %s holds what was to be redacted", hash)
			}
		}
	}
	w.run("export", "assistant/a", "--to", "u.jsonl", "--redact", `ann\.lee`, "--redact", `DE\d{20}`).exits(1, "nothing was written", "redacted2", "--allow-unmatched")
	w.absent("u.jsonl")
	if r := w.run("export", "assistant/a", "--to", "-", "--as", "openai", "--redact", `DE\d{20}`).exits(1, "nothing was written"); r.out != "" {
		t.Errorf("standard output has %s", r.out)
	}
	w.run("export", "assistant/a", "--to", "u.jsonl", "--redact", `ann\.lee`, "--redact", `DE\d{20}`, "--allow-unmatched").exits(0)
	w.file("bad.yaml", "patterns: {email: '('}\nwhat: {}\n")
	w.run("export", "assistant/a", "--to", "b.jsonl", "--redact", "bad.yaml").exits(1, "bad.yaml:1:19", "cannot be read", `unknown field "what"`)
	w.run("export", "assistant/a", "--to", "b.jsonl", "--redact", "none.yaml").exits(1, "there is no such file; give the path of a file of rules")
	w.run("export", "assistant/a", "--to", "b.jsonl", "--redact", "(").exits(2, "regular expression")
	w.absent("b.jsonl")
}

func markdownExport(t *testing.T, w *world) {
	r := w.run("export", "assistant/a", "--to", "-", "--as", "markdown").exits(0, "# `assistant/a`", "## Turn `", "### Call `", "of `dump`", "Outcome: completed", "````\nwhat time is it? ```\\x1b[2Jann.lee@example.com\n````")
	if strings.Contains(r.out, "\x1b") || strings.Count(r.out, "ann.lee@example.com\n") < 800_000/20 {
		t.Errorf("the page has %d bytes, with an escape code or without the whole result", len(r.out))
	}
	w.run("export", "support/s", "--to", "s.md", "--as", "markdown").exits(0)
	page, err := os.ReadFile(filepath.Join(w.dir, "s.md"))
	if err != nil || !bytes.Contains(page, []byte("Paused by `approval`")) || !bytes.Contains(page, []byte("Outcome: waiting")) {
		t.Errorf("error %v, got %s", err, page)
	}
	w.run("export", "team/t", "--to", "-", "--as", "markdown").exits(0, "It is the agent `assistant/sub-")
}

func openaiExport(t *testing.T, w *world) {
	r := w.run("export", "--all", "--to", "-", "--as", "openai").exits(0)
	lines := r.objects()
	if len(lines) != 3 {
		t.Fatalf("got %d lines, want those of the three agents that have answered:\n%s", len(lines), r.out)
	}
	for _, line := range lines {
		asked := make(map[any]bool)
		list := line["messages"].([]any)
		for _, m := range list {
			m := m.(map[string]any)
			calls, _ := m["tool_calls"].([]any)
			for _, c := range calls {
				asked[c.(map[string]any)["id"]] = true
			}
			if id, is := m["tool_call_id"]; is {
				if !asked[id] {
					t.Errorf("the result of %v has no call", id)
				}
				delete(asked, id)
			}
		}
		if last := list[len(list)-1].(map[string]any); len(asked) > 0 || last["role"] != "assistant" || len(line["tools"].([]any)) == 0 {
			t.Errorf("calls %v have no result, or the last message is %v", asked, last)
		}
	}
}

// An export that ends in the middle leaves no file of its name, and nothing at all unless it is killed.
func TestExportKilled(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", exportable)
	w.dev()
	w.run("ask", "assistant/a", "please use the dump tool").exits(0)
	file := filepath.Join(w.dir, ".reprise", "address")
	address, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	there, err := url.Parse(strings.TrimSpace(string(address)))
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		through, stalled := stallingProxy(t, there.Host, 600_000)
		w.file(".reprise/address", "nats://"+through)
		cmd := w.command(t.Context(), "export", "assistant/a", "--to", "a.jsonl")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-stalled
		if parts, _ := filepath.Glob(filepath.Join(w.dir, "a.jsonl.*.part")); len(parts) != 1 {
			t.Errorf("got %q: the export has not begun, or under its own name", parts)
		}
		_ = cmd.Process.Signal(end)
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: the export succeeded", end)
		}
		if end != syscall.SIGKILL {
			w.absent("a.jsonl")
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "a.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no file", err)
	}
	w.file(".reprise/address", string(address))
	w.run("export", "assistant/a", "--to", "a.jsonl").exits(0, "an earlier export was cut short", ".part")
	if a := w.exported("a.jsonl"); len(a[0].Blobs) != 1 {
		t.Errorf("got %d blobs", len(a[0].Blobs))
	}
}

// stallingProxy passes connections on to a server, and takes no more of its answers after that many
// bytes; it closes stalled then.
func stallingProxy(t *testing.T, to string, most int64) (address string, stalled <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close(); _ = server.Close() })
		go func() { _, _ = io.Copy(server, conn) }()
		_, _ = io.CopyN(conn, server, most)
		close(reached)
	}()
	return l.Addr().String(), reached
}
