package cluster_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/archive"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// archived are the lines of the one file that an agent was archived in.
func (w *world) archived(dir, key string) (lines [][]byte) {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "default", "assistant", key, "*"))
	w.ok(err)
	if len(found) != 1 {
		w.t.Fatalf("%s is archived as %v", key, found)
	}
	_, err = archive.Check(found[0])
	w.ok(err)
	whole, err := os.ReadFile(found[0])
	w.ok(err)
	scanner := bufio.NewScanner(bytes.NewReader(whole))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines = append(lines, bytes.Clone(scanner.Bytes()))
	}
	if err := os.WriteFile(found[0], bytes.Replace(whole, []byte("agent"), []byte("agenT"), 1), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if _, err := archive.Check(found[0]); err == nil {
		w.t.Error("a file that was changed is taken for whole")
	}
	return lines
}

// brief retains agents no longer than it must.
func brief(d *actors.Definition) { d.Retain = time.Millisecond }

func TestRetention(t *testing.T) { // A108
	w := newWorld(t)
	before := w.node(agents(echo(), nil)) // which keeps them forever
	w.say(before.Client().As("ann"), "assistant/a", "u1", "remember "+secret)
	events := w.events(before.Client(), "assistant/a")
	w.ok(before.Close())
	dir := t.TempDir()
	ship := tool.New("ship", "", tool.Rerun, func(context.Context, struct{}) (string, error) { return "ok", nil }).ApproveAlways()
	model := scripted.New(scripted.Ask(scripted.Call{ID: "c1", Name: "ship", Arguments: "{}"}))
	n := w.node(agents(model, func(d *actors.Definition) { brief(d); d.Tools = []tool.Tool{ship} }), func(c *cluster.Config) { c.Archive = dir })
	c := n.Client()
	w.ok(w.nc.Publish("reprise.in.default.assistant.waits", []byte("ship it")))
	w.until(c, "assistant/waits", ofType("turn.paused"))
	w.until(c, "assistant/a", ofType("agent.deleted"))
	if s := w.show(c, "assistant/a"); s.Deleted == nil || s.Deleted.Reason != "retention" {
		t.Errorf("show tells %+v", s.Deleted)
	}
	lines := w.archived(dir, "a")
	var head archive.Head
	w.ok(json.Unmarshal(lines[0], &head))
	if head.Agent != "default/assistant/a" || head.Archive != archive.Format || head.Key != nil {
		t.Errorf("the archive begins with %s", lines[0])
	}
	var told []string
	var by []messages.Person
	for _, line := range lines[1 : len(lines)-1] {
		var f archive.Frame
		w.ok(json.Unmarshal(line, &f))
		frame, err := messages.DecodeFrame(messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}, f.Frame)
		w.ok(err)
		if frame.First != f.First || frame.Last() != f.Last || len(f.Events) != len(frame.Events) {
			t.Errorf("a line has the events %d to %d, its frame has %d to %d", f.First, f.Last, frame.First, frame.Last())
		}
		for _, ev := range f.Events {
			told = append(told, ev.Type)
			if ev.Type == "input.accepted" && ev.Person != nil {
				by = append(by, *ev.Person)
			}
		}
	}
	w.named(by, claimed("ann", "prompt"))
	for i, e := range events {
		if i >= len(told) || told[i] != e.Type {
			t.Fatalf("archived are %v, event %d was %s", told, e.N, e.Type)
		}
	}
	if s := w.show(c, "assistant/waits"); s.Phase != "paused" {
		t.Errorf("an agent that waits for a person is %s", s.Phase)
	}
	w.eventually("the doctor reports those that wait", func() bool {
		found, _ := w.examined(c, messages.Query{})
		return len(found) == 1 && found[0].Check == "retention" && strings.HasPrefix(found[0].Detail, "1 agents of kind assistant have waited")
	})
}

func TestRetentionOfEncryptedAgents(t *testing.T) { // A108
	w := newWorld(t)
	dir := t.TempDir()
	n := w.node(agents(echo(), brief), under(key(1)), func(c *cluster.Config) { c.Archive = dir })
	w.say(n.Client(), "assistant/a", "u1", "remember "+secret)
	w.until(n.Client(), "assistant/a", ofType("agent.deleted"))
	if found := files(t, dir, secret); len(found) > 0 {
		t.Errorf("%v hold what was said", found)
	}
	var head archive.Head
	w.ok(json.Unmarshal(w.archived(dir, "a")[0], &head))
	if len(head.Key) == 0 {
		t.Error("the archive has no key: it cannot be read any more")
	}
}

// A fork stays, for a file of it would not be whole, and so does its parent until it is gone.
func TestRetentionOfForks(t *testing.T) { // A108
	w := newWorld(t)
	before := w.node(agents(echo(), nil))
	w.say(before.Client(), "assistant/p", "u1", "hello")
	_, err := before.Client().Do(w.ctx, "assistant/p", messages.Fork{ID: "f1", Fork: "default/assistant/f"})
	w.ok(err)
	w.until(before.Client(), "assistant/p", ofType("fork.settled"))
	w.ok(before.Close())
	dir := t.TempDir()
	n := w.node(agents(echo(), brief), func(c *cluster.Config) {
		c.Archive, c.Logger = dir, slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	c := n.Client()
	w.say(c, "assistant/a", "u1", "hello")
	w.until(c, "assistant/a", ofType("agent.deleted"))
	w.eventually("both are tried", func() bool { return strings.Count(w.log.String(), archive.ErrFork.Error()) > 2 })
	if strings.Contains(w.log.String(), "level=WARN msg=\"an agent whose time is over") {
		t.Error("a fork that stays, as it should, is a warning")
	}
	for _, agent := range []string{"assistant/p", "assistant/f"} {
		if s := w.show(c, agent); s.Phase != "idle" {
			t.Errorf("%s is %s", agent, s.Phase)
		}
	}
	_, err = c.Do(w.ctx, "assistant/f", messages.Delete{ID: "d1"})
	w.ok(err)
	w.until(c, "assistant/p", ofType("agent.deleted"))
	if letters := w.letters(c, "default", 0); len(letters) > 0 {
		t.Errorf("got dead letters %+v", letters)
	}
	for key, want := range map[string]int{"p": 1, "f": 0} {
		if found, err := filepath.Glob(filepath.Join(dir, "default", "assistant", key, "*")); err != nil || len(found) != want {
			t.Errorf("%s is archived as %v, %v", key, found, err)
		}
	}
}

// A node that is to archive agents and has no folder for them does not connect.
func TestRetentionNeedsAFolder(t *testing.T) { // A108
	w := newWorld(t)
	n, err := cluster.Start(w.ctx, cluster.Config{NATS: "nats://127.0.0.1:1", Agents: []actors.Definition{{Kind: "assistant", Model: "demo/demo", Retain: time.Hour}}})
	if err == nil || !strings.Contains(err.Error(), "agents assistant") || !strings.Contains(err.Error(), "set Archive") {
		t.Error(err)
	}
	if err == nil {
		_ = n.Close()
	}
}

func TestRetentionKeepsWhatItCannotArchive(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "file")
	w.ok(os.WriteFile(dir, nil, 0o600))
	n := w.node(agents(echo(), brief), func(c *cluster.Config) { c.Archive = dir })
	w.say(n.Client(), "assistant/a", "u1", "hello")
	w.eventually("it is tried", func() bool { return strings.Contains(w.log.String(), "whose time is over is still there") })
	if s := w.show(n.Client(), "assistant/a"); s.Phase != "idle" {
		t.Errorf("it is %s", s.Phase)
	}
	if found, _ := w.examined(n.Client(), messages.Query{}); len(found) != 1 || found[0].Check != "retention" || !strings.Contains(found[0].Detail, dir) {
		t.Errorf("the doctor finds %+v", found)
	}
}
