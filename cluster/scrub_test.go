package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// TestFlippedFrames flips one bit on disk of a stored frame of each of three agents: below
// the snapshot, above it, and of the newest frame. Two are refused with their place when
// they are activated, the third is found by the scrub; none is touched, and their
// neighbours work.
func TestFlippedFrames(t *testing.T) { // A29
	w := newWorld(t)
	often := func(c *cluster.Config) { c.SnapshotEvery = 4 }
	c := w.node(often).Client()
	agents := kin(4)
	below, above, newest, sound := agents[0], agents[1], agents[2], agents[3]
	stream := natslog.NamesOf(messages.Subjects{}).Log(below.Partition())
	say := func(id string) {
		t.Helper()
		for _, a := range agents {
			w.say(c, a.String(), id, "hello "+id)
		}
	}
	w.say(c, sound.String(), "first", "so that no damaged frame comes to be the first of the stream") // see natslog.Scrub.Hidden
	for i := 0; w.snapshot(below) < 12; i++ {
		say(fmt.Sprint("s", i))
	}
	w.ok(w.last.Close())
	c = w.node(func(c *cluster.Config) { c.SnapshotEvery = -1 }).Client()
	say("3") // which are in no snapshot
	say("4")
	frames := func(a messages.AgentID) (all []event) { // the first event of each
		for _, e := range w.events(c, a.String()) {
			if len(all) == 0 || all[len(all)-1].Frame != e.Frame {
				all = append(all, e)
			}
		}
		return all
	}
	// A frame's id stands last in the frame that follows it.
	hit := map[messages.AgentID]event{below: frames(below)[1], above: last(frames(above), 2), newest: last(frames(newest), 1)}
	text := map[messages.AgentID]string{below: frames(below)[0].Frame, above: last(frames(above), 3).Frame, newest: last(frames(newest), 1).Frame}
	w.ok(w.last.Close())
	w.bounce(func() {
		for _, id := range text {
			embeddedtest.Flip(t, w.dir, stream, id)
		}
	})
	n := w.node(often)
	c = n.Client()

	for _, a := range []messages.AgentID{above, newest} {
		held := w.held(a)
		if _, err := w.ask(c, a.String(), input("5", "hello")); codeOf(err) != messages.Damaged || !strings.Contains(err.Error(), a.String()) || !strings.Contains(err.Error(), "sequence") && a == above {
			t.Errorf("%s, hit at sequence %d, answered %v", a, hit[a].Seq, err)
		}
		if now := w.held(a); now != held || held == 0 {
			t.Errorf("%s had %d messages and has %d: it was touched", a, held, now)
		}
	}
	w.say(c, below.String(), "5", "it works, from its snapshot")
	w.say(c, sound.String(), "5", "the neighbour is fine")
	for a, e := range hit {
		w.wantDamaged(c, a, e.N)
	}

	n.ScrubAt(w.ctx, time.Now())
	found, _ := w.examined(c, messages.Query{})
	for a, e := range hit {
		if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Check == "scrub" && f.Status == doctor.Fail && f.Stream == stream && f.Seq == e.Seq && f.Agent == a && f.Remedy != ""
		}) {
			t.Errorf("doctor does not name %s at sequence %d: %+v", a, e.Seq, found)
		}
		if logged := strings.Count(w.log.String(), fmt.Sprintf("stream=%s sequence=%d agent=%s", stream, e.Seq, a)); logged != 1 {
			t.Errorf("%s at sequence %d was logged %d times", a, e.Seq, logged)
		}
	}
	if said := w.scrubbed(c); said == nil || !said.Whole || !strings.Contains(said.Detail, "each stream of the log was last read to its end on") {
		t.Errorf("doctor says of the scrub %+v", said)
	}
	if why := n.Unready(); len(why) > 0 {
		t.Errorf("not ready: %+v", why)
	}

	// What is left of a deleted agent stays until the damage is taken out, for a purge could
	// take others along. What was found is found again a day later, and not logged again.
	ctx, stop := context.WithCancel(w.ctx)
	var deleting sync.WaitGroup
	deleting.Go(func() {
		if _, err := c.Do(ctx, sound.String(), messages.Delete{ID: "d"}); err == nil {
			t.Error("the delete was answered, though its log stays")
		}
	})
	defer deleting.Wait()
	defer stop()
	w.eventually("what can be removed is", func() bool { return w.snapshot(sound) == 0 })
	w.eventually("its purge waits", func() bool { return strings.Contains(w.log.String(), "nothing is purged from stream "+stream) })
	n.ScrubAt(w.ctx, time.Now().Add(scrubAgain))
	if logged := strings.Count(w.log.String(), "a message of the log cannot be read"); logged != len(hit) {
		t.Errorf("%d damaged messages were logged %d times", len(hit), logged)
	}
}

// scrubAgain is longer than a stream that was read to its end is left alone.
const scrubAgain = 25 * time.Hour

// kin are agents of one partition.
func kin(n int) (agents []messages.AgentID) {
	for i := 0; len(agents) < n; i++ {
		if a := (messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}); a.Partition() == 7 {
			agents = append(agents, a)
		}
	}
	return agents
}

// last returns the n-th from the end.
func last(all []event, n int) event { return all[len(all)-n] }

// snapshot is the last event that an agent's snapshot holds; 0 if it has none.
func (w *world) snapshot(a messages.AgentID) messages.EventNumber {
	w.t.Helper()
	nc, err := natslog.Connect(w.url, unhurried)
	w.ok(err)
	defer nc.Close()
	log, err := natslog.Open(w.ctx, natslog.Config{Conns: []*nats.Conn{nc}})
	w.ok(err)
	stored, err := log.Snapshot(w.ctx, a, turn.SnapshotName())
	w.ok(err)
	var kept struct {
		Tail      eventlog.Position `json:"tail"`
		State     any               `json:"state"`
		IDs       any               `json:"ids"`
		Replies   any               `json:"replies"`
		Ended     any               `json:"ended"`
		Scheduled any               `json:"scheduled"`
	}
	if stored != nil {
		w.ok(messages.DecodeSnapshot(a, turn.SnapshotName(), stored, &kept))
	}
	return kept.Tail.Last
}

// held is how many messages of an agent its stream has, by its own account.
func (w *world) held(a messages.AgentID) uint64 {
	w.t.Helper()
	subject := messages.Subjects{}.Log(a)
	stream, err := w.js.Stream(w.ctx, natslog.NamesOf(messages.Subjects{}).Log(a.Partition()))
	w.ok(err)
	info, err := stream.Info(w.ctx, jetstream.WithSubjectFilter(subject))
	w.ok(err)
	return info.State.Subjects[subject]
}

// wantDamaged has the views of an agent show what is before an event, and end with an
// error.
func (w *world) wantDamaged(c *client.Client, a messages.AgentID, at messages.EventNumber) {
	w.t.Helper()
	for _, view := range []string{"events", "history"} {
		shown := messages.EventNumber(0)
		var failed error
		for line, err := range c.Query(w.ctx, a.String(), messages.Query{View: view}) {
			if failed = err; err != nil {
				continue
			}
			var e event
			w.ok(json.Unmarshal(line, &e))
			shown = max(shown, e.N)
		}
		if messages.AsError(failed).Code != messages.Damaged || shown >= at {
			w.t.Errorf("%s of %s shows event %d, is damaged at %d, and ends with %v", view, a, shown, at, failed)
		}
	}
}

// scrubbed is how far the log was read through, as doctor says.
func (w *world) scrubbed(c *client.Client) (said *doctor.Scrubbed) {
	w.t.Helper()
	for line, err := range c.QueryStore(w.ctx, messages.Query{View: "doctor"}) {
		w.ok(err)
		var e gateway.Examined
		w.ok(json.Unmarshal(line, &e))
		if e.Scrubbed != nil {
			said = e.Scrubbed
		}
	}
	return said
}
