package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cluster/integrity"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// examined asks a node to examine the whole store.
func (w *world) examined(c *client.Client, q messages.Query) (found []doctor.Finding, sum doctor.Counts) {
	w.t.Helper()
	q.View = "doctor"
	for line, err := range c.QueryStore(w.ctx, q) {
		w.ok(err)
		var e gateway.Examined
		w.ok(json.Unmarshal(line, &e))
		if e.Finding != nil && !strings.HasPrefix(e.Finding.Detail, "there are several tenants") { // all are in one account here
			found = append(found, *e.Finding)
		}
		if e.Type == "examined" {
			sum.Add(*e.Counts)
		}
	}
	return found, sum
}

func TestDoctorView(t *testing.T) { // A29, A36
	w := newWorld(t)
	text := lines("d", 300<<10)
	cfg := agents(scripted.Func(func(r messagesRequest) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Role == messages.RoleUser && last.Content.Text() == "go" {
			return calling("function")
		}
		return scripted.Say("done")
	}), func(d *actors.Definition) { d.Tools = []tool.Tool{giving("function", text)} })
	c := w.node(cfg).Client()
	w.say(c, "assistant/large", "u1", "go")
	w.say(c, "other/assistant/small", "u1", "hello")
	found, sum := w.examined(c, messages.Query{Deep: true})
	if len(found) != 0 || sum.Agents != 2 || sum.Blobs != 1 || sum.Problems != 0 {
		t.Fatalf("%+v %+v", found, sum)
	}
	var both sync.WaitGroup // two who ask take turns
	for range 2 {
		both.Go(func() {
			if found, sum := w.examined(c, messages.Query{}); len(found) != 0 || sum.Agents != 2 {
				t.Errorf("%+v %+v", found, sum)
			}
		})
	}
	both.Wait()

	// The payload's first chunk is spoilt, then all of it is gone.
	done := w.until(c, "assistant/large", ofType("tool.completed")).N
	chunk := w.stored("REPRISE_BLOB")[0]
	name, err := w.js.StreamNameBySubject(w.ctx, chunk.Subject)
	w.ok(err)
	stream, err := w.js.Stream(w.ctx, name)
	w.ok(err)
	w.ok(stream.DeleteMsg(w.ctx, chunk.Sequence))
	chunk.Data[7] ^= 1
	_, err = w.js.PublishMsg(w.ctx, &nats.Msg{Subject: chunk.Subject, Header: chunk.Header, Data: chunk.Data})
	w.ok(err)
	if found, _ := w.examined(c, messages.Query{}); len(found) != 0 {
		t.Errorf("payloads were read without Deep: %+v", found)
	}
	ill := func(what string, q messages.Query, parts ...string) {
		t.Helper()
		found, sum := w.examined(c, q)
		if len(found) != 1 || sum.Problems != 1 || found[0].Check != "blob" || found[0].Agent.String() != "assistant/large" || found[0].Event > done || found[0].Event == 0 {
			t.Fatalf("%s: %+v %+v", what, found, sum)
		}
		for _, part := range append(parts, string(messages.DigestOf([]byte(text)))) {
			if !strings.Contains(found[0].Detail, part) {
				t.Errorf("%s: %q is missing in %q", what, part, found[0].Detail)
			}
		}
	}
	ill("spoilt", messages.Query{Deep: true, Repair: true}, "cannot be read")
	w.ok(stream.Purge(w.ctx))
	ill("gone", messages.Query{Rate: 1000}, "is not stored")

	refused := func(q messages.Query, code messages.Code) {
		t.Helper()
		for _, err := range c.QueryStore(w.ctx, q) {
			if codeOf(err) != code {
				t.Errorf("%+v: %v", q, err)
			}
		}
	}
	refused(messages.Query{View: "agents"}, messages.BadInput)
	refused(messages.Query{View: "doctor", From: 17}, messages.BadInput)
	refused(messages.Query{View: "doctor", Rate: -1}, messages.BadInput)
	for _, err := range c.Query(w.ctx, "assistant/large", messages.Query{View: "doctor", Repair: true}) {
		if codeOf(err) != messages.BadInput {
			t.Errorf("an agent was repaired: %v", err)
		}
	}
}

// Keys are examined with the log: what is missing, what cannot be opened, and what
// is left of those that are gone.
func TestDoctorOfKeys(t *testing.T) { // A108, A29
	w := newWorld(t)
	n := w.node(under(key(1)))
	for _, agent := range []string{"a", "b", "c", "d"} {
		w.say(n.Client(), "assistant/"+agent, "u1", "hello")
	}
	bucket, err := w.js.KeyValue(w.ctx, "reprise_keys")
	w.ok(err)
	kept := func(agent string) []byte {
		entry, err := bucket.Get(w.ctx, "default.assistant."+agent)
		w.ok(err)
		return entry.Value()
	}
	put := func(agent string, value []byte) {
		_, err := bucket.Put(w.ctx, "default.assistant."+agent, value)
		w.ok(err)
	}
	if found, sum := w.examined(n.Client(), messages.Query{Deep: true}); len(found) != 0 || sum.Agents != 4 {
		t.Fatalf("%+v %+v", found, sum)
	}
	gone := kept("c")
	_, err = n.Client().Do(w.ctx, "assistant/c", messages.Delete{})
	w.ok(err)
	w.until(n.Client(), "assistant/c", ofType("agent.deleted"))
	w.ok(n.Close())
	put("c", gone)
	put("never", gone)
	w.ok(bucket.Purge(w.ctx, "default.assistant.a"))
	put("b", bytes.ReplaceAll(kept("b"), []byte(key(1).ID()), []byte(key(9).ID())))
	n = w.node(under(key(1)))
	found, sum := w.examined(n.Client(), messages.Query{})
	want := map[string]string{"a": "fail is missing", "b": "fail " + key(9).ID(), "c": "fail still exists", "never": "warn not one event"}
	for _, f := range found {
		status, part, _ := strings.Cut(want[f.Agent.Key], " ")
		if f.Check != "key" || f.Status != status || part == "" || !strings.Contains(f.Detail, part) || f.Remedy == "" {
			t.Errorf("found %+v", f)
		}
		delete(want, f.Agent.Key)
	}
	if len(want) > 0 || sum.Problems != 3 {
		t.Errorf("not found: %v; %+v", want, sum)
	}
	for line, err := range n.Client().Query(w.ctx, "assistant/b", messages.Query{View: "doctor"}) {
		if w.ok(err); strings.Contains(string(line), `"finding"`) && !strings.Contains(string(line), key(9).ID()) {
			t.Errorf("of one agent: %s", line)
		}
	}
	w.ok(n.Close())

	// Without keys it sees what can be seen.
	conn, err := natslog.Connect(w.url, unhurried)
	w.ok(err)
	defer conn.Close()
	d, err := integrity.Doctor(w.ctx, conn, "", 1, w.log.Logger())
	w.ok(err)
	agents := make(map[string]int)
	for shard := range d.Shards() {
		_, err := d.Shard(w.ctx, shard, doctor.Options{}, func(f doctor.Finding) { agents[f.Check+" "+f.Agent.Key]++ }, nil)
		w.ok(err)
	}
	if fmt.Sprint(agents) != "map[key a:1 key c:1 key never:1]" {
		t.Errorf("without wrapping keys: %v", agents)
	}
	n = w.node(under(key(1)))
	w.ok(w.js.DeleteStream(w.ctx, "KV_reprise_keys"))
	told := false
	for line, err := range n.Client().QueryStore(w.ctx, messages.Query{View: "doctor"}) {
		if err != nil {
			break // not all can be read
		}
		told = told || strings.Contains(string(line), "KV_reprise_keys") && strings.Contains(string(line), "restore --keys")
	}
	if !told {
		t.Error("that all keys are missing is not told")
	}
}

// What the store stands on is examined too.
func TestDoctorOfStreams(t *testing.T) {
	w := newWorld(t)
	c := w.node(agents(scripted.New(), nil)).Client()
	stream, err := w.js.Stream(w.ctx, "REPRISE_DLQ")
	w.ok(err)
	cfg := stream.CachedInfo().Config
	cfg.MaxAge = cfg.MaxAge / 2
	_, err = w.js.UpdateStream(w.ctx, cfg)
	w.ok(err)
	found, _ := w.examined(c, messages.Query{})
	if len(found) != 1 || found[0].Check != "store" || found[0].Status != doctor.Fail || !strings.Contains(found[0].Detail, "REPRISE_DLQ") || !strings.Contains(found[0].Detail, "max_age") {
		t.Errorf("%+v", found)
	}
}

// Doctor works where no node runs.
func TestDoctorAlone(t *testing.T) {
	w := newWorld(t)
	n := w.node(agents(scripted.New(scripted.Say("done")), nil))
	w.say(n.Client(), "assistant/a", "u1", "hello")
	w.ok(n.Close())
	nc, err := natslog.Connect(w.url, unhurried)
	w.ok(err)
	t.Cleanup(nc.Close)
	d, err := integrity.Doctor(w.ctx, nc, "", 1, nil)
	w.ok(err)
	var sum doctor.Counts
	for shard := range d.Shards() {
		counts, err := d.Shard(w.ctx, shard, doctor.Options{}, func(f doctor.Finding) { t.Errorf("%+v", f) }, nil)
		w.ok(err)
		sum.Add(counts)
	}
	if sum.Agents != 1 || sum.Frames == 0 {
		t.Errorf("%+v", sum)
	}
}

// Snapshots are held against the log.
func TestDoctorOfSnapshots(t *testing.T) { // A27
	w := newWorld(t)
	owner := w.node(agents(echo(), nil), func(c *cluster.Config) { c.SnapshotEvery = 16 })
	c := owner.Client()
	agent := "assistant/a"
	for range 5 { // more events than lie between two snapshots
		w.say(c, agent, "", "hello")
	}
	nc, err := natslog.Connect(w.url, unhurried)
	w.ok(err)
	t.Cleanup(nc.Close)
	log, err := natslog.Open(w.ctx, natslog.Config{Conns: []*nats.Conn{nc}})
	w.ok(err)
	id, err := messages.ParseAgentID(agent)
	w.ok(err)
	var good []byte
	for good == nil && w.ctx.Err() == nil {
		good, err = log.Snapshot(w.ctx, id, turn.SnapshotName())
		w.ok(err)
	}
	if found, sum := w.examined(c, messages.Query{Deep: true}); len(found) != 0 || sum.Agents != 1 {
		t.Fatalf("%+v %+v", found, sum)
	}
	only := func(what string, q messages.Query, status, detail string) doctor.Finding {
		t.Helper()
		found, _ := w.examined(c, q)
		if len(found) != 1 || found[0].Check != "snapshot" || found[0].Status != status || !strings.Contains(found[0].Detail, detail) {
			t.Fatalf("%s: %+v", what, found)
		}
		return found[0]
	}
	w.ok(log.PutSnapshot(w.ctx, id, turn.SnapshotName(), good[:len(good)-1]))
	only("cut", messages.Query{}, doctor.Warn, "cannot be read")
	_, err = nc.RequestWithContext(w.ctx, messages.Subjects{}.Snapshots(id)+"."+turn.SnapshotName()+".0", []byte("spoilt"))
	w.ok(err)
	only("spoilt", messages.Query{}, doctor.Warn, "not whole")

	var kept struct {
		Tail    eventlog.Position `json:"tail"`
		State   turn.Snapshot     `json:"state"`
		Replies map[string]any    `json:"replies"`
	}
	w.ok(messages.DecodeSnapshot(id, turn.SnapshotName(), good, &kept))
	state, err := kept.State.State()
	w.ok(err)
	state.Apply(&messages.Frame{Events: []messages.Event{messages.AgentCleared{}}})
	kept.State, err = state.Snapshot()
	w.ok(err)
	wrong, err := messages.EncodeSnapshot(id, turn.SnapshotName(), &kept)
	w.ok(err)
	w.ok(log.PutSnapshot(w.ctx, id, turn.SnapshotName(), wrong))
	if found, _ := w.examined(c, messages.Query{}); len(found) != 0 {
		t.Errorf("it was not to look deep: %+v", found)
	}
	behind := kept
	behind.Tail.Last += 1000
	ahead, err := messages.EncodeSnapshot(id, turn.SnapshotName(), &behind)
	w.ok(err)
	w.ok(log.PutSnapshot(w.ctx, id, turn.SnapshotName(), ahead))
	only("ahead of the log", messages.Query{}, doctor.Fail, "events were lost at its end")
	if f := only("evidence is kept", messages.Query{Repair: true}, doctor.Fail, "events were lost at its end"); f.Repaired || strings.Contains(f.Remedy, "--repair") {
		t.Errorf("%+v", f)
	}
	if b, err := log.Snapshot(w.ctx, id, turn.SnapshotName()); err != nil || !bytes.Equal(b, ahead) {
		t.Errorf("the evidence is gone: %v", err)
	}
	w.ok(log.PutSnapshot(w.ctx, id, turn.SnapshotName(), wrong))
	only("wrong", messages.Query{Deep: true}, doctor.Fail, "not what a replay")
	if f := only("repaired", messages.Query{Deep: true, Repair: true}, doctor.Fail, "not what a replay"); !f.Repaired {
		t.Errorf("%+v", f)
	}
	if b, err := log.Snapshot(w.ctx, id, turn.SnapshotName()); b != nil || err != nil {
		t.Errorf("it is still there: %v", err)
	}
	_, err = c.Do(w.ctx, agent, messages.Delete{})
	w.ok(err)
	w.ok(owner.Close()) // it would find what comes late itself
	c = w.node().Client()
	w.ok(log.PutSnapshot(w.ctx, id, "turn-1", good))
	if f := only("left", messages.Query{Repair: true}, doctor.Fail, "the agent was deleted, and snapshots of it are stored: turn-1"); !f.Repaired {
		t.Errorf("%+v", f)
	}
	if found, _ := w.examined(c, messages.Query{Deep: true}); len(found) != 0 {
		t.Errorf("after the repair: %+v", found)
	}
}
