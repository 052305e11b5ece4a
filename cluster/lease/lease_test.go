package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/lease"
	"github.com/reprise-dev/reprise/cluster/member"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// world is a server of a test's own and the nodes there, which have nothing but a
// membership and leases.
type world struct {
	*embeddedtest.World
	js jetstream.JetStream
}

func newWorld(t *testing.T) *world {
	w := &world{World: embeddedtest.New(t)}
	var err error
	w.js, err = jetstream.New(w.Connect())
	w.OK(err)
	return w
}

// bucket is one of the two.
func (w *world) bucket(name string) jetstream.KeyValue {
	w.T.Helper()
	kv, err := w.js.KeyValue(w.Ctx, "reprise_"+name)
	w.OK(err)
	return kv
}

// node is a member that takes partitions. It implements lease.Owner.
type node struct {
	*lease.Leases
	members *member.Members
	die     func() // as a process does

	mu   sync.Mutex
	own  map[messages.Partition]messages.Epoch
	does hooks
}

// hooks are what the test does when the node drains a partition and when it loses one;
// nil: nothing.
type hooks struct{ busy, lost func(messages.Partition) }

// Prepare has seen nobody before.
func (n *node) Prepare(context.Context, messages.Partition) (messages.Epoch, error) { return 0, nil }

// Acquired notes that the partition is the node's.
func (n *node) Acquired(p messages.Partition, epoch messages.Epoch) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.own[p] = epoch
	return nil
}

// Drain waits for what busy does.
func (n *node) Drain(_ context.Context, p messages.Partition) bool {
	if f := n.hooks().busy; f != nil {
		f(p)
	}
	return true
}

// Stay does nothing: the partition is in own all the time.
func (n *node) Stay(messages.Partition) {}

// Lost notes that the partition is the node's no more.
func (n *node) Lost(p messages.Partition) {
	if f := n.hooks().lost; f != nil {
		f(p)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.own, p)
}

func (n *node) hooks() hooks {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.does
}

func (n *node) hook(h hooks) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.does = h
}

// owns is how many partitions the node acts for.
func (n *node) owns() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.own)
}

func (n *node) has(p messages.Partition) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.own[p]
	return ok
}

func (n *node) epoch(p messages.Partition) messages.Epoch {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.own[p]
}

// member makes one that has no leases.
func (w *world) member(id string) (*member.Members, *nats.Conn) {
	w.T.Helper()
	nc := w.Connect()
	m, err := member.Join(w.Ctx, member.Config{Conn: nc, Root: "reprise", Self: member.Info{ID: id, Started: time.Now()}, Logger: w.Log.Logger()})
	w.OK(err)
	w.T.Cleanup(func() { m.Leave(w.Ctx) })
	return m, nc
}

// join makes one that takes partitions.
func (w *world) join(id string) *node {
	w.T.Helper()
	members, nc := w.member(id)
	n := &node{members: members, die: nc.Close, own: make(map[messages.Partition]messages.Epoch)}
	var err error
	n.Leases, err = lease.Open(w.Ctx, lease.Config{
		Conn: nc, Root: "reprise", Members: members, Owner: n, DrainLimit: 20 * time.Second, Logger: w.Log.Logger(),
	})
	w.OK(err)
	w.T.Cleanup(func() { n.Release(w.Ctx) })
	w.OK(n.Settled(w.Ctx))
	return n
}

// two nodes that have 32 partitions each.
func (w *world) two() (a, b *node) {
	w.T.Helper()
	a, b = w.join("a"), w.join("b")
	w.Eventually("shares are even", func() bool { return a.owns() == 32 && b.owns() == 32 })
	return a, b
}

// leased is who has a partition by its lease.
func (w *world) leased(p messages.Partition) string {
	w.T.Helper()
	e, err := w.bucket("leases").Get(w.Ctx, fmt.Sprintf("p.%s", p))
	w.OK(err)
	var v struct{ Member string }
	w.OK(json.Unmarshal(e.Value(), &v))
	return v.Member
}

// settled waits until everything is somebody's, by the leases and by the nodes.
func (w *world) settled(nodes map[string]*node) {
	w.T.Helper()
	for p := range messages.Partition(messages.Partitions) {
		w.Eventually("partition "+p.String()+" is somebody's", func() bool {
			n := nodes[w.leased(p)]
			return n != nil && n.has(p)
		})
	}
}

// The consumer of a node's watch is gone, as with the server that it was on, and another
// node leaves: what that had is taken before the library makes the consumer anew.
func TestTheWatchDies(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, b := w.two()
	s, err := w.js.Stream(w.Ctx, "KV_reprise_leases")
	w.OK(err)
	for told := false; !told; {
		names := s.ConsumerNames(w.Ctx)
		for name := range names.Name() {
			if err := s.DeleteConsumer(w.Ctx, name); !errors.Is(err, jetstream.ErrConsumerNotFound) {
				w.OK(err)
			}
		}
		w.OK(names.Err())
		b.Release(w.Ctx)
		b.members.Leave(w.Ctx)
		w.Eventually("all is the other's", func() bool { return a.owns() == messages.Partitions })
		told = strings.Contains(w.Log.String(), "though leases have changed")
		if !told { // the machine stood still: the watch began anew for that, or the library was first
			b = w.join("b")
			w.Eventually("shares are even", func() bool { return a.owns() == 32 && b.owns() == 32 })
		}
	}
	c := w.join("c") // and the new watch tells
	w.Eventually("shares are even", func() bool { return a.owns() == 32 && c.owns() == 32 })
}

// Two nodes drain at the same time, and nobody else is there: each keeps what it has.
// Once one takes part again it gets everything.
func TestAllDrain(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, b := w.two()
	given, end := make(chan struct{}, messages.Partitions), make(chan struct{})
	wait := func(messages.Partition) { given <- struct{}{}; <-end }
	tool := func(p messages.Partition) { // in every other one
		if p%2 == 0 {
			<-end
		}
	}
	a.hook(hooks{busy: tool, lost: wait})
	b.hook(hooks{busy: tool, lost: wait})
	w.OK(a.members.Drain(w.Ctx, true))
	<-given // to the other, which is not told yet
	w.OK(b.members.Drain(w.Ctx, true))
	w.Eventually("both know", func() bool { return !a.Others() && !b.Others() })
	a.hook(hooks{})
	b.hook(hooks{})
	close(end)
	if left := a.Empty(w.Ctx) + b.Empty(w.Ctx); left == 0 {
		t.Error("both say that they have nothing left")
	}
	w.settled(map[string]*node{"a": a, "b": b})
	w.OK(b.members.Drain(w.Ctx, false))
	w.Eventually("it has everything", func() bool { return b.owns() == messages.Partitions })
	if left := a.Empty(w.Ctx); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// A drained node whose peers have gone takes what is free: nobody else does.
func TestDrainedAndLeftAlone(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, b := w.two()
	w.OK(a.members.Drain(w.Ctx, true))
	w.Eventually("it has given all away", func() bool { return a.Empty(w.Ctx) == 0 })
	w.Eventually("the other has everything", func() bool { return b.owns() == messages.Partitions })
	b.die()
	w.Eventually("the drained one has everything", func() bool { return a.owns() == messages.Partitions })
	c := w.join("c")
	w.Eventually("it gives it all to one that takes partitions", func() bool { return c.owns() == messages.Partitions })
	w.Eventually("and knows", func() bool { return a.Kept() == 0 })
}

// However many partitions a node hands over, it says so in one line for all that are
// under way together, with whom they go to and how many.
func TestHandOverIsOneLine(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, b := w.two()
	w.OK(a.members.Drain(w.Ctx, true))
	w.Eventually("it has given all away", func() bool { return a.Empty(w.Ctx) == 0 })
	w.Eventually("the other has everything", func() bool { return b.owns() == messages.Partitions })
	told := func() (lines, partitions int) {
		for line := range strings.Lines(w.Log.String()) {
			if _, rest, found := strings.Cut(line, "handed over\" partitions="); found {
				var n, to int
				if _, err := fmt.Sscanf(rest, "%d to=map[b:%d]", &n, &to); err != nil || n != to || strings.Count(line, "@") != n+1 || !strings.Contains(line, "level=INFO") {
					t.Fatalf("%v in %q", err, line)
				}
				lines, partitions = lines+1, partitions+n
			}
		}
		return lines, partitions
	}
	w.Eventually("all is told", func() bool { _, n := told(); return n >= messages.Partitions })
	if lines, _ := told(); lines > 8 { // two, unless the other was slow to take some
		t.Errorf("%d lines tell of two hand-overs:\n%s", lines, w.Log)
	}
}

// A lease that names a drained node which does not have the partition, because it
// could not be written when that was handed over, is freed by that node.
func TestLeaseThatCouldNotBeWritten(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, b := w.two()
	kv := w.bucket("leases")
	var once sync.Once
	var broken messages.Partition
	var before messages.Epoch
	a.hook(hooks{lost: func(p messages.Partition) {
		once.Do(func() {
			broken, before = p, a.epoch(p)
			_, err := kv.Put(w.Ctx, "p."+p.String(), []byte(`{"member":"a"}`))
			if err != nil {
				t.Error(err)
			}
		})
	}})
	w.OK(a.members.Drain(w.Ctx, true))
	w.Eventually("it has given all away", func() bool { return a.Empty(w.Ctx) == 0 })
	w.Eventually("the other has everything", func() bool { return b.owns() == messages.Partitions })
	if !strings.Contains(w.Log.String(), "could not be handed over") {
		t.Error("all could be written")
	}
	if is := b.epoch(broken); is <= before {
		t.Errorf("partition %s has epoch %d after %d", broken, is, before)
	}
}

// A node whose key was removed while it hands partitions over, one of which waits for
// its turn and is another's by now: that one is given up at once, and the node is
// trusted again only when nothing acts any more where it may not.
func TestBusyIsJudgedBeforeTrust(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a := w.join("a")
	quiet, stuck, lost := make(chan messages.Partition, messages.Partitions), make(chan messages.Partition, messages.Partitions), make(chan messages.Partition, messages.Partitions)
	end := make(chan struct{})
	var mu sync.Mutex
	var taken *messages.Partition
	a.hook(hooks{
		busy: func(p messages.Partition) { quiet <- p },
		lost: func(p messages.Partition) {
			mu.Lock()
			isTaken := taken != nil && *taken == p
			mu.Unlock()
			if isTaken {
				if a.members.Trusted() {
					t.Error("it is trusted and acts for a partition of another")
				}
				lost <- p
				return
			}
			stuck <- p
			<-end
		},
	})
	release := sync.OnceFunc(func() { close(end) })
	t.Cleanup(release)
	w.member("b") // which takes nothing
	begun, full := make(map[messages.Partition]bool), make(map[messages.Partition]bool)
	for len(full) < 2 { // as many as are handed over at once
		full[<-stuck] = true
	}
	for len(begun) < 3 {
		begun[<-quiet] = true
	}
	mu.Lock()
	for p := range begun {
		if !full[p] {
			taken = &p
		}
	}
	mu.Unlock()
	term, _ := a.members.Trust() // it may have lapsed before anything was stuck, and been trusted since
	w.OK(w.bucket("members").Delete(w.Ctx, "m.a"))
	w.Eventually("it has joined again", func() bool { is, _ := a.members.Trust(); return is != term })
	_, err := w.bucket("leases").Put(w.Ctx, "p."+taken.String(), []byte(`{"member":"b"}`))
	w.OK(err)
	select {
	case <-lost:
	case <-w.Ctx.Done():
		t.Fatalf("it goes on acting for what is another's; logged:\n%s", w.Log)
	}
	if a.members.Trusted() {
		t.Error("it is trusted while partitions are still given up")
	}
	release()
	w.Eventually("it is trusted again", a.members.Trusted)
	if a.has(*taken) {
		t.Error("it has what is another's")
	}
	a.hook(hooks{}) // what the other leaves when it goes may be taken, and is lost with the test
}
