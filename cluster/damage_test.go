package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// till is a node with a server of its own, whose agents pay by a tool that must run at
// most once.
type till struct {
	*world
	cfg  cluster.Config
	n    *cluster.Node
	paid atomic.Int32
}

func newTill(t *testing.T) *till { return newTillOn(t, func(*till) {}) }

// newTillOn is newTill with a store that prepare has changed or begun.
func newTillOn(t *testing.T, prepare func(*till)) *till {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	k := &till{world: &world{t: t, ctx: ctx, dir: t.TempDir(), log: new(embeddedtest.Words)}}
	model := scripted.Func(func(r providers.Request) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Type == "function_call_output" || lastUser(r) != "pay" {
			return scripted.Say("done")
		}
		return scripted.Ask(scripted.Call{Name: "pay", Arguments: `{}`})
	})
	k.cfg = cluster.Config{SnapshotEvery: -1, Logger: k.log.Logger()}
	agents(model, func(d *actors.Definition) { d.Tools = []tool.Tool{paying(&k.paid)} })(&k.cfg)
	prepare(k)
	k.start(k.dir)
	return k
}

// paying is a tool that must run at most once, and counts how often it has.
func paying(paid *atomic.Int32) tool.Tool {
	return tool.New("pay", "pays", tool.Pause, func(context.Context, struct{}) (string, error) {
		paid.Add(1)
		return "paid", nil
	})
}

// start starts a node on a folder, or on the server in k.cfg.
func (k *till) start(dir string) *client.Client {
	k.t.Helper()
	if k.cfg.NATS == "" {
		k.cfg.Data = dir
	}
	n, err := cluster.Start(k.ctx, k.cfg)
	k.ok(err)
	k.t.Cleanup(func() { _ = n.Close() })
	k.n = n
	return n.Client()
}

// doctor returns what doctor says is wrong.
func (k *till) doctor() (failed []string) {
	k.t.Helper()
	for line, err := range k.n.Client().QueryStore(k.ctx, messages.Query{View: "doctor"}) {
		k.ok(err)
		var e gateway.Examined
		k.ok(json.Unmarshal(line, &e))
		if e.Finding != nil && e.Finding.Status == "fail" {
			failed = append(failed, e.Finding.Detail)
		}
	}
	return failed
}

// neighbours returns an agent of the same stream as a, and one of another.
func neighbours(a messages.AgentID) (same, other string) {
	for i := 0; same == "" || other == ""; i++ {
		b := a
		b.Key += strings.Repeat("x", i+1)
		if natslog.NamesOf(messages.Subjects{}).Log(b.Partition()) == natslog.NamesOf(messages.Subjects{}).Log(a.Partition()) {
			same = b.String()
		} else {
			other = b.String()
		}
	}
	return same, other
}

// TestFlipAndKill flips one bit of an early frame in what a killed node leaves. The NATS
// server would drop that frame and all behind it, of every agent there, so it is not given
// the stream. Once the frame is taken out, its agent alone is damaged.
func TestFlipAndKill(t *testing.T) { // A29
	k := newTill(t)
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	same, other := neighbours(bank)
	c := k.n.Client()
	k.history(bank, same, other)
	frame := k.events(c, "assistant/bank")[2].Frame
	dir := k.killed(bank)
	k.flip(dir, bank, frame)
	c = k.start(dir)

	stream := natslog.NamesOf(messages.Subjects{}).Log(bank.Partition())
	k.damaged(bank, same, other, "1.blk at byte")
	if failed := k.doctor(); len(failed) != 1 || !strings.Contains(failed[0], "stream "+stream) || !strings.Contains(failed[0], "1.blk at byte") || !strings.Contains(failed[0], "agent assistant/bank") {
		t.Errorf("doctor says %q", failed)
	}
	if why := k.n.Unready(); len(why) != 1 || why[0].Code != "damage" || !strings.Contains(why[0].Text, stream) || strings.Contains(why[0].Text, "bank") || strings.Contains(why[0].Text, dir) {
		t.Errorf("not ready because of %+v", why)
	}
	if _, err := c.AcceptLoss(k.ctx, client.AcceptLoss{Stream: stream, By: "ada", Reason: "it was a test"}); codeOf(err) != messages.Conflict || !strings.Contains(err.Error(), "--quarantine") {
		t.Errorf("accepted what is not lost yet: %v", err)
	}

	// What cannot be read is taken out.
	k.ok(k.n.Close())
	k.ok(embedded.Quarantine(k.ctx, dir, messages.DefaultRoot, func(q embedded.Quarantined) { k.ok(q.Err) }, nil))
	for range 2 {
		c = k.start(dir)
		k.say(c, same, "the neighbour works", "hello")
		if _, err := k.ask(c, "assistant/bank", input("pay-1", "pay")); codeOf(err) != messages.Damaged {
			t.Errorf("the agent answered %v", err)
		}
		if failed := k.doctor(); len(failed) == 0 || !strings.Contains(failed[0], "taken out") {
			t.Errorf("doctor says %q", failed)
		}
		if why := k.n.Unready(); len(why) > 0 {
			t.Errorf("not ready: %+v", why)
		}
		k.ok(k.n.Close())
	}
	c = k.start(dir)
	if _, err := c.Do(k.ctx, "assistant/bank", messages.Delete{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	k.until(c, "assistant/bank", ofType("agent.deleted"))
	k.eventually("it works in its next life", func() bool {
		_, err := k.ask(c, "assistant/bank", input("again", "hello"))
		return err == nil
	})
	if failed := k.doctor(); len(failed) != 0 {
		t.Errorf("doctor says %q", failed)
	}
	if paid := k.paid.Load(); paid != 1 {
		t.Errorf("paid %d times", paid)
	}
}

// TestNewestFrameTakenOut takes an agent's newest frame out, which its log does not show.
func TestNewestFrameTakenOut(t *testing.T) { // A29
	k := newTill(t)
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	same, other := neighbours(bank)
	k.history(bank, same, other)
	all := k.events(k.n.Client(), "assistant/bank")
	dir := k.killed(bank)
	k.flip(dir, bank, all[len(all)-1].Frame)
	k.ok(k.n.Close())
	k.ok(embedded.Quarantine(k.ctx, dir, messages.DefaultRoot, func(q embedded.Quarantined) { k.ok(q.Err) }, nil))
	k.ok(os.RemoveAll(filepath.Join(dir, "views"))) // the views know of the frame as well
	c := k.start(dir)
	if _, err := k.ask(c, "assistant/bank", input("pay-1", "pay")); codeOf(err) != messages.Damaged || !strings.Contains(err.Error(), "was taken out") {
		t.Errorf("the agent answered %v", err)
	}
	var end error
	for _, end = range c.Query(k.ctx, "assistant/bank", messages.Query{View: "events"}) {
	}
	if messages.AsError(end).Code != messages.Damaged || !strings.Contains(end.Error(), "this may not be all") {
		t.Errorf("its events end with %v", end)
	}
	k.say(c, same, "2", "the neighbour works")
	if paid := k.paid.Load(); paid != 1 {
		t.Errorf("paid %d times", paid)
	}
}

// history has the agents of a test talk: the first pays.
func (k *till) history(bank messages.AgentID, same, other string) {
	k.t.Helper()
	c := k.n.Client()
	k.say(c, bank.String(), "1", "hello")
	k.say(c, bank.String(), "pay-1", "pay")
	k.say(c, same, "1", "hello")
	k.say(c, other, "1", "hello")
}

// damaged checks that the agents of a stream refuse to work and say why, and that others
// work.
func (k *till) damaged(bank messages.AgentID, same, other, why string) {
	k.t.Helper()
	c := k.n.Client()
	for _, agent := range []string{bank.String(), same} {
		if _, err := k.ask(c, agent, input("pay-1", "pay")); codeOf(err) != messages.Damaged || !strings.Contains(err.Error(), why) {
			k.t.Errorf("%s answered %v", agent, err)
		}
	}
	k.say(c, other, "2", "the rest works")
	if paid := k.paid.Load(); paid != 1 {
		k.t.Errorf("paid %d times", paid)
	}
	for line, err := range c.Query(k.ctx, same, messages.Query{View: "events"}) {
		if err != nil && codeOf(err) != messages.Damaged {
			k.t.Errorf("of an agent that was lost whole: %s, %v", line, err)
		}
	}
}

// TestFlipAndKillExternal flips one bit as TestFlipAndKill does, in the folder of a NATS
// server that stands by itself. It drops that frame and all behind it, and a person accepts
// the loss.
func TestFlipAndKillExternal(t *testing.T) { // A29
	k := newTillOn(t, func(k *till) {
		nc, _ := embeddedtest.Plain(k.t, embeddedtest.PlainConfig{Dir: k.dir})
		k.cfg.NATS = nc.ConnectedUrl()
	})
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	same, other := neighbours(bank)
	k.history(bank, same, other)
	frame := k.events(k.n.Client(), "assistant/bank")[2].Frame
	dir := k.killed(bank)
	k.flip(dir, bank, frame)
	k.ok(k.n.Close())
	nc, _ := embeddedtest.Plain(t, embeddedtest.PlainConfig{Dir: dir})
	k.cfg.NATS = nc.ConnectedUrl()
	c := k.start("")

	stream := natslog.NamesOf(messages.Subjects{}).Log(bank.Partition())
	k.damaged(bank, same, other, "REPRISE_LOG_")
	if failed := k.doctor(); len(failed) == 0 || !strings.Contains(failed[0], stream+": messages that were acknowledged are lost: it was known to reach sequence") {
		t.Errorf("doctor says %q", failed)
	}
	if why := k.n.Unready(); len(why) != 1 || why[0].Code != "damage" || !strings.Contains(why[0].Text, stream) {
		t.Errorf("ready in spite of %+v", why)
	}

	// A person accepts the loss, and the agents continue with what is there.
	k.accept(stream)
	k.eventually("the stream is relied on again", func() bool { return len(k.n.Unready()) == 0 })
	k.eventually("its agents work", func() bool {
		_, err := k.ask(c, "assistant/bank", input("2", "hello again"))
		return err == nil
	})
	if failed := k.doctor(); len(failed) != 0 {
		t.Errorf("doctor says %q", failed)
	}
}

// TestFlipAndStop flips one bit of an agent's newest frame while the node is stopped.
// The NATS server then answers as if the agent had never been.
func TestFlipAndStop(t *testing.T) { // A29
	k := newTill(t)
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	same, _ := neighbours(bank)
	c := k.n.Client()
	k.say(c, "assistant/bank", "pay-1", "pay")
	k.say(c, same, "1", "hello")
	all := k.events(c, "assistant/bank")
	k.ok(k.n.Close())
	k.flip(k.dir, bank, all[len(all)-1].Frame)
	c = k.start(k.dir)

	if _, err := k.ask(c, "assistant/bank", input("pay-1", "pay")); codeOf(err) != messages.Damaged {
		t.Errorf("answered %v", err)
	}
	if paid := k.paid.Load(); paid != 1 {
		t.Errorf("paid %d times", paid)
	}
	for line, err := range c.Query(k.ctx, "assistant/bank", messages.Query{View: "events"}) {
		if codeOf(err) != messages.Damaged {
			t.Errorf("its events: %s, %v", line, err)
		}
	}
	k.say(c, same, "2", "the neighbour is fine")
}

// killed returns a copy of the node's folder, once all that it has stored is on record.
func (k *till) killed(a messages.AgentID) string {
	k.t.Helper()
	k.eventually("how far the log went is on record", func() bool { return k.n.Marked(a.Partition()) })
	return embeddedtest.Crash(k.t, k.dir)
}

func (k *till) flip(dir string, a messages.AgentID, frame string) {
	k.t.Helper()
	embeddedtest.Flip(k.t, dir, natslog.NamesOf(messages.Subjects{}).Log(a.Partition()), frame)
}

func (k *till) accept(stream string) {
	k.t.Helper()
	loss, err := k.n.Client().AcceptLoss(k.ctx, client.AcceptLoss{Stream: stream, By: "ada", Reason: "it was a test"})
	k.ok(err)
	if !strings.Contains(loss, "are lost") {
		k.t.Errorf("accepted %q", loss)
	}
}

// TestServerLosesMessages has the NATS server, restarted while the node lives, drop what
// the node had acknowledged only just now.
func TestServerLosesMessages(t *testing.T) { // A29
	w := newWorld(t)
	n := w.node()
	c := n.Client()
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	same, other := neighbours(bank)
	stream := natslog.NamesOf(messages.Subjects{}).Log(bank.Partition())
	for _, agent := range []string{"assistant/bank", same, other} {
		w.say(c, agent, "1", "hello")
	}
	w.say(c, "assistant/bank", "2", "hello")
	first := w.events(c, "assistant/bank")[0].Frame
	w.moved.Store(new(string))
	w.ok(w.srv.Shutdown())
	embeddedtest.Flip(t, w.dir, stream, first)
	w.ok(os.Remove(filepath.Join(w.dir, "jetstream", "$G", "streams", stream, "msgs", "index.db")))
	nc, _ := embeddedtest.Plain(t, embeddedtest.PlainConfig{Dir: w.dir}) // which examines nothing
	address := strings.TrimPrefix(nc.ConnectedUrl(), "nats://")
	w.moved.Store(&address)
	for _, agent := range []string{"assistant/bank", same} {
		w.eventually(agent+" is damaged", func() bool {
			_, err := w.ask(c, agent, input("3", "hello"))
			if err == nil {
				t.Fatalf("%s continues with a log that was cut", agent)
			}
			return codeOf(err) == messages.Damaged
		})
	}
	w.eventually("the rest works", func() bool {
		_, err := w.ask(c, other, input("3", "hello"))
		return err == nil
	})
}

// TestIndexKnowsLater loses messages of which only the agents index of the node knows.
func TestIndexKnowsLater(t *testing.T) { // A29
	k := newTill(t)
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	c := k.n.Client()
	k.say(c, "assistant/bank", "pay-1", "pay")
	all := k.events(c, "assistant/bank")
	k.eventually("the index has it all", func() bool { return k.n.Indexed(k.ctx) })
	k.ok(k.n.Close())
	stream := natslog.NamesOf(messages.Subjects{}).Log(bank.Partition())
	k.forget()
	embeddedtest.Spoil(t, k.dir, stream, all[len(all)-1].Frame, func(block []byte, at int) []byte { return block[:at] })
	k.ok(os.Remove(filepath.Join(k.dir, "jetstream", "$G", "streams", stream, "msgs", "index.db")))
	c = k.start(k.dir)
	k.eventually("the loss is found", func() bool {
		return slices.ContainsFunc(k.n.Unready(), func(r gateway.Reason) bool {
			return r.Code == "damage" && strings.Contains(r.Text, fmt.Sprintf("%s: messages that were acknowledged are lost: it was known to reach sequence %d and ends with %d", stream, all[len(all)-1].Seq, all[len(all)-1].Seq-1))
		})
	})
	if _, err := k.ask(c, "assistant/bank", input("2", "hello")); err == nil {
		t.Error("the agent continues with a log that was cut")
	}
}

// forget removes the marks of a folder on which no server runs.
func (k *till) forget() {
	k.t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: k.dir, DontListen: true, Logger: k.log.Logger()})
	k.ok(err)
	defer func() { k.ok(srv.Shutdown()) }()
	nc, err := srv.Connect()
	k.ok(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	k.ok(err)
	marks, err := js.Stream(k.ctx, natslog.MarksOf(messages.Subjects{}))
	k.ok(err)
	k.ok(marks.Purge(k.ctx, jetstream.WithPurgeSubject("$KV.reprise_marks.p.>")))
}

// TestDeleteTogether deletes agents of one partition at the same time: what is purged is
// not taken for lost.
func TestDeleteTogether(t *testing.T) {
	w := newWorld(t)
	n := w.node()
	c := n.Client()
	var agents []string
	for i := 0; len(agents) < 4; i++ {
		if a := (messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}); a.Partition() == 7 {
			agents = append(agents, a.String())
		}
	}
	for _, a := range agents {
		w.say(c, a, "1", "hello")
	}
	var deletes sync.WaitGroup
	for _, a := range agents {
		deletes.Go(func() {
			if _, err := c.Do(w.ctx, a, messages.Delete{ID: "d"}); err != nil {
				t.Error(err)
			}
		})
	}
	deletes.Wait()
	for _, a := range agents {
		w.until(c, a, ofType("agent.deleted"))
	}
	n.CheckAll(w.ctx)
	if why := n.Unready(); len(why) > 0 {
		t.Errorf("not ready: %+v", why)
	}
}
