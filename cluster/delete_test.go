package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// secret is what no one may find without a right to.
const secret = "xyzzy-4711"

// holding returns the subjects of the messages, of all streams, that hold the text, in subject,
// headers or body.
func (w *world) holding(text string) (found []string) {
	w.t.Helper()
	for _, raw := range w.stored("") {
		head, err := json.Marshal(raw.Header)
		w.ok(err)
		if strings.Contains(raw.Subject+string(head)+string(raw.Data), text) {
			found = append(found, raw.Subject)
		}
	}
	return found
}

func (w *world) show(c *client.Client, agent string) (s projections.AgentStatus) {
	w.t.Helper()
	for line, err := range c.Query(w.ctx, agent, messages.Query{View: "show"}) {
		w.ok(err)
		w.ok(json.Unmarshal(line, &s))
	}
	return s
}

func (w *world) inventory(c *client.Client, agent string) (h messages.Inventory) {
	w.t.Helper()
	for line, err := range c.Query(w.ctx, agent, messages.Query{View: "inventory"}) {
		w.ok(err)
		w.ok(json.Unmarshal(line, &h))
	}
	return h
}

func (w *world) listed(c *client.Client, q messages.Query) (agents []string) {
	w.t.Helper()
	q.View = "agents"
	for line, err := range c.QueryTenant(w.ctx, messages.DefaultTenant, q) {
		w.ok(err)
		var row projections.Agent
		w.ok(json.Unmarshal(line, &row))
		agents = append(agents, row.Agent.String()+" "+string(row.Phase))
	}
	return agents
}

func TestDeletedForGood(t *testing.T) { // A108
	w := newWorld(t)
	never := scripted.NewGate()
	model := scripted.New(scripted.Say("you said "+secret), scripted.Held(never, scripted.Say("never")))
	first := w.node(agents(model, nil))
	c := first.Client()
	w.say(c, "assistant/a", "u1", "remember "+secret)
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(`{"content":"","metadata":"`+secret+`"}`)))
	w.letters(c, messages.DefaultTenant, 1)
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(`{"id":"u2","content":"again `+secret+`"}`)))
	<-never.Reached()
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(`{"id":"u3","content":"and again `+secret+`"}`)))
	w.ok(w.nc.Flush()) // the delete goes over another connection
	held := w.inventory(c, "assistant/a")
	if held.DeadLetters != 1 || held.Frames < 3 || held.Events < 9 || held.Bytes == 0 || held.Deleted || held.Encrypted {
		t.Errorf("it holds %+v", held)
	}
	answer, err := c.Do(w.ctx, "assistant/a", messages.Delete{ID: "d1", Reason: "she asked for it"})
	w.ok(err)
	if answer.Turn == "" {
		t.Errorf("no turn was aborted: %+v", answer)
	}
	w.ok(first.Close()) // whatever is left to do is the next one's
	second := w.node()
	c = second.Client()
	w.until(c, "assistant/a", ofType("agent.deleted"))
	w.eventually("what was sent is gone", func() bool { return len(w.holding(secret)) == 0 })
	s := w.show(c, "assistant/a")
	if s.Phase != "deleted" || s.Deleted == nil || s.Deleted.Reason != "she asked for it" || s.Deleted.At.IsZero() {
		t.Errorf("show tells %+v of %+v", s.Deleted, s)
	}
	for line, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: "history"}) {
		t.Errorf("its history is %s, %v", line, err)
	}
	for _, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: "history", At: 2}) {
		if err == nil || codeOf(err) != messages.NotFound || !strings.Contains(err.Error(), "deleted") {
			t.Errorf("its history as of event 2: %v", err)
		}
	}
	if live, all := w.listed(c, messages.Query{}), w.listed(c, messages.Query{Deleted: true}); len(live) != 0 || len(all) != 1 || all[0] != "assistant/a deleted" {
		t.Errorf("listed are %v and %v", live, all)
	}
	if _, err := c.Do(w.ctx, "assistant/none", messages.Delete{}); codeOf(err) != messages.NotFound {
		t.Errorf("the delete of a missing agent: %v", err)
	}
	if again, err := c.Do(w.ctx, "assistant/a", messages.Delete{ID: "d1"}); err != nil || !again.Duplicate {
		t.Errorf("the same delete: %+v, %v", again, err)
	}
	if got := w.say(c, "assistant/a", "u1", "who am I?"); got.text != "you said who am I?" || got.end.N <= s.Deleted.N {
		t.Errorf("the new life says %q, event %d", got.text, got.end.N)
	}
	if live := w.listed(c, messages.Query{}); len(live) != 1 || live[0] != "assistant/a idle" {
		t.Errorf("listed is %v", live)
	}
}

// key is a wrapping key made of one byte.
func key(b byte) encrypted.Key { return encrypted.Key(bytes.Repeat([]byte{b}, len(encrypted.Key{}))) }

func under(keys ...encrypted.Key) change { return func(c *cluster.Config) { c.WrappingKeys = keys } }

// files are those below a folder that hold the text.
func files(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEncryptedAtRest(t *testing.T) { // A108
	w := newWorld(t)
	n := w.node(under(key(1)))
	if !n.Encrypted() {
		t.Error("the node does not say that it encrypts")
	}
	w.say(n.Client(), "assistant/a", "u1", "remember "+secret)
	w.say(n.Client(), "assistant/b", "u1", "and "+secret)
	_, err := n.Client().Do(w.ctx, "assistant/a", messages.SetState{Patch: json.RawMessage(`{"x":"` + secret + `"}`), Reason: "to test"})
	w.ok(err)
	if got := w.say(n.Client(), "assistant/a", "u2", "and again "+secret); !strings.Contains(got.text, secret) {
		t.Errorf("it says %q", got.text)
	}
	w.eventually("its inputs are applied", func() bool { return len(w.holding("set_state")) <= 1 })
	w.ok(n.Close())
	for _, cfg := range []cluster.Config{w.config(), w.config(under(key(2)))} {
		if other, err := cluster.Start(w.ctx, cfg); err == nil || !strings.Contains(err.Error(), key(1).ID()) {
			t.Errorf("with %d other keys: %v", len(cfg.WrappingKeys), err)
			if err == nil {
				_ = other.Close()
			}
		}
	}
	w.ok(w.srv.Shutdown())
	if found := files(t, w.dir, secret); len(found) > 0 {
		t.Errorf("%v hold what was said", found)
	}

	// A copy from before the delete, without the keys, as a backup is.
	copied := t.TempDir()
	w.ok(os.CopyFS(copied, os.DirFS(w.dir)))
	w.restart(w.dir)
	n = w.node(under(key(2), key(1)))
	if wrapped, err := n.RotateKeys(w.ctx); err != nil {
		t.Errorf("%d keys were wrapped again, %v", wrapped, err)
	}
	w.ok(n.Close())
	n = w.node(under(key(2)))
	if s := w.inventory(n.Client(), "assistant/a"); !s.Encrypted {
		t.Errorf("it holds %+v", s)
	}
	_, err = n.Client().Do(w.ctx, "assistant/a", messages.Delete{})
	w.ok(err)
	if keys, err := w.js.KeyValue(w.ctx, "reprise_keys"); err != nil {
		t.Error(err)
	} else if names, err := keys.Keys(w.ctx); err != nil || slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".assistant.a") }) {
		t.Errorf("its key is still there: %v, %v", names, err)
	}
	if got := w.say(n.Client(), "assistant/a", "u1", "who am I?"); got.text != "you said who am I?" {
		t.Errorf("the new life says %q", got.text)
	}
	if w.indexOf(n); strings.Contains(w.log.String(), "cannot be read") { // what is gone is not missed
		t.Errorf("logged:\n%s", w.log)
	}
	w.ok(n.Close())
	w.ok(w.srv.Shutdown())

	// Beside what is encrypted no node makes new keys by itself, or goes without.
	w.restart(copied)
	bucket, err := w.js.Stream(w.ctx, "KV_reprise_keys")
	w.ok(err)
	w.ok(w.js.DeleteStream(w.ctx, "KV_reprise_keys"))
	for _, cfg := range []cluster.Config{w.config(), w.config(under(key(2)))} {
		if other, err := cluster.Start(w.ctx, cfg); err == nil || !strings.Contains(err.Error(), "KV_reprise_keys") {
			t.Errorf("without its bucket, with %d keys: %v", len(cfg.WrappingKeys), err)
			if err == nil {
				_ = other.Close()
			}
		}
	}
	_, err = w.js.CreateStream(w.ctx, bucket.CachedInfo().Config)
	w.ok(err)
	n = w.node(under(key(2)))
	for line, err := range n.Client().Query(w.ctx, "assistant/a", messages.Query{View: "history"}) {
		if err == nil || !strings.Contains(err.Error(), encrypted.ErrNoKey.Error()) {
			t.Errorf("the copy tells %s, %v", line, err)
		}
	}
	if _, err := w.ask(n.Client(), "assistant/a", input("u9", "are you there?")); err == nil || codeOf(err) != messages.Damaged {
		t.Errorf("an agent without its key answers: %v", err)
	}
}

// restart runs the world's server on another folder.
func (w *world) restart(dir string) {
	w.t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: dir, Sync: embedded.SyncRelaxed, Logger: w.log.Logger()})
	w.ok(err)
	w.srv, w.url = srv, srv.ClientURL()
	w.nc = w.connect()
	w.js, err = jetstream.New(w.nc)
	w.ok(err)
}

// An agent whose key is gone, or cannot be unwrapped, can be deleted, and lives again
// after that.
func TestDeletedWithoutItsKey(t *testing.T) { // A108
	w := newWorld(t)
	n := w.node(under(key(1)))
	for _, a := range []string{"gone", "spoilt"} {
		w.say(n.Client(), "assistant/"+a, "u1", "remember "+secret)
	}
	w.ok(n.Close())
	keys, err := w.js.Stream(w.ctx, "KV_reprise_keys")
	w.ok(err)
	names := make(map[string]string) // of the keys, by agent
	info, err := keys.Info(w.ctx, jetstream.WithSubjectFilter(">"))
	w.ok(err)
	for subject := range info.State.Subjects {
		for _, a := range []string{"gone", "spoilt"} {
			if strings.HasSuffix(subject, a) {
				names[a] = subject
			}
		}
	}
	w.ok(keys.Purge(w.ctx, jetstream.WithPurgeSubject(names["gone"])))
	_, err = w.js.Publish(w.ctx, names["spoilt"], []byte("no key at all"))
	w.ok(err)
	n = w.node(under(key(1)))
	for _, a := range []string{"gone", "spoilt"} {
		if held := w.inventory(n.Client(), "assistant/"+a); held.Damaged == "" || held.Last == 0 || held.Encrypted != (a == "spoilt") {
			t.Errorf("%s holds %+v", a, held)
		}
		_, err = n.Client().Do(w.ctx, "assistant/"+a, messages.Delete{Reason: "its key is gone"})
		w.ok(err)
		w.until(n.Client(), "assistant/"+a, ofType("agent.deleted"))
		if got := w.say(n.Client(), "assistant/"+a, "u1", "who am I?"); got.text != "you said who am I?" {
			t.Errorf("the new life of %s says %q", a, got.text)
		}
	}
}

// Prompts that come one behind the other after a deletion are for the agent's next life, in
// that order.
func TestOrderInTheNextLife(t *testing.T) { // A7 A108
	w := newWorld(t)
	c := w.node().Client()
	inbox, err := w.nc.SubscribeSync(w.nc.NewInbox() + ".*")
	w.ok(err)
	var agents []string
	for i := range 20 {
		agent := fmt.Sprintf("assistant/a%d", i)
		w.say(c, agent, "u1", "hello")
		_, err := c.Do(w.ctx, agent, messages.Delete{})
		w.ok(err)
		w.until(c, agent, ofType("agent.deleted"))
		for n := range 4 {
			reply := strings.Replace(inbox.Subject, "*", fmt.Sprint(i, "-", n), 1)
			w.ok(w.nc.PublishMsg(&nats.Msg{Subject: fmt.Sprintf("agents.prompt.assistant.default.a%d", i), Reply: reply, Data: fmt.Appendf(nil, `{"prompt":"hello","reprise":{"id":"p%d"}}`, n)}))
		}
		agents = append(agents, agent)
	}
	for _, agent := range agents { // all wait for the same beat of the node's lease
		var order []string
		w.until(c, agent, func(e event) bool {
			if e.Type == "input.accepted" {
				order = append(order, e.field("input"))
			}
			return slices.Contains(order, "p3")
		})
		if got := strings.Join(order, " "); got != "p0 p1 p2 p3" {
			t.Errorf("%s: accepted in the order %s", agent, got)
		}
	}
}
