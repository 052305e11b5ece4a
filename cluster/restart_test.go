package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// bounce stops the server and starts it again on the same folder. It gets another port,
// because the first may be in use by then; Dial returns a connection to the current one.
func (w *world) bounce(between func()) {
	w.t.Helper()
	w.moved.Store(new(string))
	w.ok(w.srv.Shutdown())
	between()
	srv, err := embedded.Start(embedded.Config{Dir: w.dir, Sync: embedded.SyncRelaxed, Logger: w.log.Logger()})
	w.ok(err)
	w.srv, w.url = srv, srv.ClientURL()
	address := strings.TrimPrefix(srv.ClientURL(), "nats://")
	w.moved.Store(&address)
	w.t.Cleanup(func() { _ = srv.Shutdown() })
}

func TestServerAwayUnderLoad(t *testing.T) { // A30
	w := newWorld(t)
	n := w.node()
	const senders, agents = 4, 8
	var mu sync.Mutex
	acked := map[string][]string{} // agent → ids
	ctx, stop := context.WithCancel(w.ctx)
	var wg sync.WaitGroup
	enough := make(chan struct{}, 200)
	for s := range senders {
		js, err := jetstream.New(w.connect())
		w.ok(err)
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				agent, id := fmt.Sprintf("a%d", i%agents), fmt.Sprintf("%d-%d", s, i)
				within, done := context.WithTimeout(ctx, time.Second) // an acknowledgement may be lost with the server
				_, err := js.Publish(within, "reprise.in.default.assistant."+agent, fmt.Appendf(nil, `{"id":%q,"content":"hello"}`, id))
				done()
				if err == nil {
					mu.Lock()
					acked[agent] = append(acked[agent], id)
					mu.Unlock()
					select {
					case enough <- struct{}{}:
					case <-ctx.Done():
					}
				}
			}
		})
	}
	wait := func(n int) {
		for range n {
			select {
			case <-enough:
			case <-w.ctx.Done():
				t.Fatalf("inputs are not stored any more; logged:\n%s", w.log)
			}
		}
	}
	wait(200)
	asking := make(chan error, 1)
	w.bounce(func() {
		go func() { // waits inside its deadline, or gets a clear error; here it waits
			got, err := w.ask(n.Client(), "assistant/asked", input("1", "are you there?"))
			if err == nil && got.end.Output != "you said are you there?" {
				err = fmt.Errorf("answered %+v", got)
			}
			var refused *messages.Error
			if errors.As(err, &refused) && refused.Temporary() || errors.Is(err, nats.ErrReconnectBufExceeded) {
				err = nil
			}
			asking <- err
		}()
	})
	wait(200)
	stop()
	wg.Wait()
	w.ok(<-asking)
	for agent, ids := range acked {
		left := map[string]bool{}
		for _, id := range ids {
			left[id] = true
		}
		w.until(n.Client(), "assistant/"+agent, func(e event) bool {
			var end struct{ Inputs []string }
			if e.Type == "turn.completed" {
				w.ok(json.Unmarshal(e.Data, &end))
				for _, id := range end.Inputs {
					delete(left, id)
				}
			}
			return len(left) == 0
		})
		ended := map[string]int{}
		for _, e := range w.events(n.Client(), "assistant/"+agent) {
			if strings.HasPrefix(e.Type, "turn.") && e.Type != "turn.started" {
				var end struct{ Inputs []string }
				w.ok(json.Unmarshal(e.Data, &end))
				for _, id := range end.Inputs {
					ended[id]++
				}
			}
		}
		for id, n := range ended {
			if n != 1 {
				t.Errorf("%s of %s ended %d times", id, agent, n)
			}
		}
	}
	w.say(n.Client(), "assistant/asked", "2", "and afterwards?")
}

// A fresh node that has nothing but the log shows the same of every agent, and its epochs are
// higher.
func TestNothingButTheLog(t *testing.T) { // A27
	w := newWorld(t)
	never := scripted.NewGate()
	model := scripted.New(scripted.Say("one")).Then(scripted.Held(never, scripted.Say("no")))
	n := w.node(agents(model, nil))
	w.say(n.Client(), "assistant/a", "1", "hello")
	_, err := n.Client().Do(w.ctx, "assistant/a", messages.SetState{Patch: json.RawMessage(`{"mood":"fine"}`)})
	w.ok(err)
	for i := range 3 {
		_, err := n.Client().Send(w.ctx, "assistant/a", input(fmt.Sprint("q", i), "later"))
		w.ok(err)
	}
	<-never.Reached()
	w.until(n.Client(), "assistant/a", func(e event) bool { return e.field("input") == "q2" })
	told := func(c *cluster.Node) (s string) {
		for _, view := range []string{"history", "state"} {
			for line, err := range c.Client().Query(w.ctx, "assistant/a", messages.Query{View: view}) {
				w.ok(err)
				s += string(line) + "\n"
			}
		}
		for line, err := range c.Client().Query(w.ctx, "assistant/a", messages.Query{View: "show"}) {
			w.ok(err)
			var show struct {
				Phase, Turn string
				Queue       []string
			}
			w.ok(json.Unmarshal(line, &show))
			s += fmt.Sprint(show)
		}
		return s
	}
	before, epochs := told(n), []uint64{w.epoch(n)}
	for _, forget := range [][]string{nil, {"KV_reprise_leases", "KV_reprise_members", "REPRISE_DEF", "REPRISE_DLQ", "REPRISE_IN"}} {
		w.ok(n.Close())
		for _, name := range forget {
			w.ok(w.js.DeleteStream(w.ctx, name))
		}
		never := scripted.NewGate()
		n = w.node(agents(scripted.New(scripted.Held(never, scripted.Say("no"))), nil))
		<-never.Reached() // the turn continues
		if after := told(n); after != before {
			t.Errorf("after a restart without %v:\n%s\nbefore:\n%s", forget, after, before)
		}
		epochs = append(epochs, w.epoch(n))
	}
	if epochs[0] >= epochs[1] || epochs[1] >= epochs[2] {
		t.Errorf("epochs %v", epochs)
	}
}

func (w *world) epoch(n *cluster.Node) uint64 {
	for line, err := range n.Client().Query(w.ctx, "assistant/a", messages.Query{View: "show"}) {
		w.ok(err)
		var show struct{ Epoch uint64 }
		w.ok(json.Unmarshal(line, &show))
		return show.Epoch
	}
	return 0
}

// A node logs that it recovers agents which owe work, and not those that only repeat what may not
// have been received.
func TestSaysWhatItRecovers(t *testing.T) {
	w := newWorld(t)
	n := w.node()
	w.say(n.Client(), "assistant/a", "1", "hello")
	w.ok(n.Close())
	w.ok(w.node().Close())
	if s := w.log.String(); strings.Contains(s, "owe work") {
		t.Errorf("an idle agent is said to owe work:\n%s", s)
	}
	gate := scripted.NewGate()
	n = w.node(agents(scripted.New(scripted.Held(gate, scripted.Say("late"))), nil))
	w.ok(w.nc.Publish("reprise.in.default.assistant.b", []byte("go")))
	<-gate.Reached()
	w.ok(n.Close())
	w.ok(w.node().Close())
	if s := w.log.String(); !strings.Contains(s, `"agents with open work are recovered" node=`) || !strings.Contains(s, "agents=1 ") {
		t.Errorf("it does not say that one agent is recovered:\n%s", s)
	}
}

// A bucket of leases that goes while a node runs: it gives up, takes again under
// higher epochs, and what ran continues.
func TestLeasesDeletedUnderWay(t *testing.T) {
	w := newWorld(t)
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("once")), scripted.Say("twice"))
	n := w.node(agents(model, nil))
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("go")))
	<-gate.Reached()
	before := w.epoch(n)
	w.ok(w.js.DeleteKeyValue(w.ctx, "reprise_leases"))
	done := w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	if after := w.epoch(n); after <= before || done.field("output") != "twice" {
		t.Errorf("epoch %d, was %d; %s", after, before, done.Data)
	}
}

// Partitions that never had an agent have no epoch in the log; the consumers of
// the owner before have one.
func TestLeasesDeletedOfPartitionsWithoutAgents(t *testing.T) {
	w := newWorld(t)
	w.ok(w.node().Close())
	n := w.node() // its leases are of higher revisions than those of a new bucket
	before := w.consumers()
	w.ok(w.js.DeleteKeyValue(w.ctx, "reprise_leases"))
	w.eventually("the partitions are taken again", func() bool {
		return n.Partitions() == messages.Partitions && w.epochsAbove(before)
	})
	for i := range 20 {
		w.ok(w.nc.Publish(fmt.Sprintf("reprise.in.default.assistant.fresh%d", i), []byte("go")))
	}
	for i := range 20 {
		w.until(n.Client(), fmt.Sprintf("assistant/fresh%d", i), ofType("turn.completed"))
	}
	if s := w.log.String(); strings.Contains(s, "of a later owner is there") {
		t.Errorf("it was taken under an epoch of the past; logged:\n%s", s)
	}
}

// consumers are the names of those who pull inputs, by partition.
func (w *world) consumers() map[string]int {
	w.t.Helper()
	stream, err := w.js.Stream(w.ctx, "REPRISE_IN")
	w.ok(err)
	found := map[string]int{}
	names := stream.ConsumerNames(w.ctx)
	for name := range names.Name() {
		if partition, text, ok := strings.Cut(name, "-e"); ok {
			epoch, err := strconv.Atoi(text)
			w.ok(err)
			found[partition] = max(found[partition], epoch)
		}
	}
	w.ok(names.Err())
	return found
}

// epochsAbove reports whether each partition is pulled under a higher epoch than before.
func (w *world) epochsAbove(before map[string]int) bool {
	now := w.consumers()
	for partition, epoch := range before {
		if now[partition] <= epoch {
			return false
		}
	}
	return len(now) == messages.Partitions
}

func TestDamagedAgent(t *testing.T) { // A29
	w := newWorld(t)
	n := w.node()
	w.say(n.Client(), "assistant/a", "1", "hello")
	w.say(n.Client(), "assistant/b", "1", "hello")
	w.ok(n.Close())
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	subject := (messages.Subjects{}).Log(a)
	stream, err := w.js.Stream(w.ctx, fmt.Sprintf("REPRISE_LOG_%d", a.Partition()/4))
	w.ok(err)
	last, err := stream.GetLastMsgForSubject(w.ctx, subject)
	w.ok(err)
	bad := &nats.Msg{Subject: subject, Data: append([]byte(nil), last.Data...), Header: nats.Header{}}
	bad.Data[len(bad.Data)/2] ^= 1
	for name, values := range last.Header {
		if strings.HasPrefix(name, "Reprise-") {
			bad.Header[name] = values
		}
	}
	_, err = w.js.PublishMsg(w.ctx, bad)
	w.ok(err)

	n = w.node()
	c := n.Client()
	if _, err := w.ask(c, "assistant/a", input("2", "still there?")); codeOf(err) != messages.Damaged || !strings.Contains(err.Error(), "assistant/a") {
		t.Errorf("asked: %v", err)
	}
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("by the queue")))
	if l := w.letters(c, "default", 1); l[0].Code != "damaged" || l[0].Body != "by the queue" {
		t.Errorf("letter %+v", l)
	}
	w.say(c, "assistant/b", "2", "the neighbour is fine")
	if info, err := stream.GetLastMsgForSubject(w.ctx, subject); err != nil || info.Sequence != last.Sequence+1 && string(info.Data) != string(bad.Data) {
		t.Errorf("the damaged agent was touched: %v", err)
	}

	_, err = c.Do(w.ctx, "assistant/a", messages.Delete{ID: "d", Last: 1})
	if codeOf(err) != messages.Damaged {
		t.Errorf("a delete of what was known of it: %v", err)
	}
	_, err = c.Do(w.ctx, "assistant/a", messages.Delete{ID: "d2"})
	w.ok(err)
	w.until(c, "assistant/a", ofType("agent.deleted"))
	w.say(c, "assistant/a", "1", "hello again")
}

func TestStartRefuses(t *testing.T) {
	w := newWorld(t)
	start := func(changes ...change) string {
		n, err := cluster.Start(w.ctx, w.config(changes...))
		if err == nil {
			w.ok(n.Close())
			return "started"
		}
		return err.Error()
	}
	_, err := w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: "BAD_LOG_3", Subjects: []string{"bad.log.12.>"}, MaxMsgs: 10})
	w.ok(err)
	_, err = w.js.CreateKeyValue(w.ctx, jetstream.KeyValueConfig{Bucket: "short_leases", TTL: 1e9})
	w.ok(err)
	newer := t.TempDir()
	w.ok(os.WriteFile(filepath.Join(newer, "VERSION"), []byte("2 reprise v9\n"), 0o600))
	embed := func(dir, listen string) change {
		return func(c *cluster.Config) { c.NATS, c.Data, c.Listen = "", dir, listen }
	}
	for name, c := range map[string]struct {
		got  string
		want []string
	}{
		"dangerous stream":  {start(rooted("bad")), []string{"BAD_LOG_3", "max_msgs is 10", "set it to"}},
		"dangerous bucket":  {start(rooted("short")), []string{"short_leases", "max_age is 1s", "set it to 0"}},
		"bad root":          {start(rooted("a.b")), []string{"root", "a.b"}},
		"root of others":    {start(rooted("_actor")), []string{"_actor", "another"}},
		"nothing":           {start(embed("", "")), []string{"NATS", "Data"}},
		"newer folder":      {start(embed(newer, "")), []string{"format 2", "v9"}},
		"port in use":       {start(embed(t.TempDir(), strings.TrimPrefix(w.url, "nats://"))), []string{strings.TrimPrefix(w.url, "nats://"), "another"}},
		"bad listen":        {start(embed(t.TempDir(), "4222")), []string{"4222", "host:port"}},
		"no server":         {start(func(c *cluster.Config) { c.NATS = "nats://me:s3cret@127.0.0.1:1" }), []string{"127.0.0.1:1"}},
		"agent without key": {start(func(c *cluster.Config) { c.Agents[0].Model = "nobody/x" }), []string{"nobody"}},
		"defined twice":     {start(func(c *cluster.Config) { c.Agents = append(c.Agents, c.Agents[0]) }), []string{"twice"}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.got, want) {
				t.Errorf("%s: %q does not say %q", name, c.got, want)
			}
		}
		if strings.Contains(c.got, "s3cret") { // A56
			t.Errorf("%s: %q tells a password", name, c.got)
		}
	}
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	if n, err := cluster.Start(ended, w.config(rooted("late"))); err == nil {
		w.ok(n.Close())
		t.Error("started after the end of ctx")
	}
}
