package ownership_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// The consumer of a node's watch is gone, as with the server that it was on, and another
// node leaves: what that had is taken before the library makes the consumer again.
func TestTheWatchDies(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, b := w.two()
	s, err := w.js.Stream(w.Ctx, "KV_reprise_leases")
	w.OK(err)
	for silent := false; !silent; {
		names := s.ConsumerNames(w.Ctx)
		for name := range names.Name() {
			if err := s.DeleteConsumer(w.Ctx, name); !errors.Is(err, jetstream.ErrConsumerNotFound) {
				w.OK(err)
			}
		}
		w.OK(names.Err())
		b.Close()
		w.Eventually("all is the other's", func() bool { return a.owns() == messages.Partitions })
		silent = strings.Contains(w.Log.String(), "though keys have changed")
		if !silent { // the machine stalled: the watch began again for that, or the library was first
			b = w.join("b")
			w.Eventually("shares are even", func() bool { return a.owns() == 32 && b.owns() == 32 })
		}
	}
	c := w.join("c") // and the new watch shows it
	w.Eventually("shares are even", func() bool { return a.owns() == 32 && c.owns() == 32 })
}

// Two nodes drain at the same time, and there is no other: each keeps what it has.
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
	w.OK(a.Drain(w.Ctx, true))
	<-given // to the other, which does not know yet
	w.OK(b.Drain(w.Ctx, true))
	w.Eventually("both know", func() bool { return !a.Others() && !b.Others() })
	a.hook(hooks{})
	b.hook(hooks{})
	close(end)
	if left := a.Empty(w.Ctx) + b.Empty(w.Ctx); left == 0 {
		t.Error("both say that they have nothing left")
	}
	w.settled(map[string]*node{"a": a, "b": b})
	w.OK(b.Drain(w.Ctx, false))
	w.Eventually("it has everything", func() bool { return b.owns() == messages.Partitions })
	if left := a.Empty(w.Ctx); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// A drained node whose peers have gone takes what is free: no other does.
func TestDrainedAndLeftAlone(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, b := w.two()
	w.OK(a.Drain(w.Ctx, true))
	w.Eventually("it has given all away", func() bool { return a.Empty(w.Ctx) == 0 })
	w.Eventually("the other has everything", func() bool { return b.owns() == messages.Partitions })
	b.conn.Close()
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
	w.OK(a.Drain(w.Ctx, true))
	w.Eventually("it has given all away", func() bool { return a.Empty(w.Ctx) == 0 })
	w.Eventually("the other has everything", func() bool { return b.owns() == messages.Partitions })
	logged := func() (lines, partitions int) {
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
	w.Eventually("all is logged", func() bool { _, n := logged(); return n >= messages.Partitions })
	if lines, _ := logged(); lines > 8 { // two, unless the other was slow to take some
		t.Errorf("%d lines for two handovers:\n%s", lines, w.Log)
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
	w.OK(a.Drain(w.Ctx, true))
	w.Eventually("it has given all away", func() bool { return a.Empty(w.Ctx) == 0 })
	w.Eventually("the other has everything", func() bool { return b.owns() == messages.Partitions })
	if !strings.Contains(w.Log.String(), "could not be taken, or handed over") {
		t.Error("all could be written")
	}
	if is := b.epoch(broken); is <= before {
		t.Errorf("partition %s has epoch %d after %d", broken, is, before)
	}
}

// A partition that another takes while a node prepares to take it is lost to the node: what it has
// read of it is dropped.
func TestTakenByAnother(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a := w.join("a")
	kv := w.bucket("leases")
	var once sync.Once
	var lost atomic.Int32
	a.hook(hooks{lost: func(messages.Partition) { lost.Add(1) }, prepared: func(p messages.Partition) {
		once.Do(func() {
			if _, err := kv.Put(w.Ctx, "p."+p.String(), []byte(`{"member":"gone"}`)); err != nil {
				t.Error(err)
			}
		})
	}})
	before := a.epoch(9)
	a.GiveUp(9)
	w.Eventually("it has it back", func() bool { return a.epoch(9) > before })
	if n := lost.Load(); n != 2 {
		t.Errorf("it lost a partition that was given up, and was not taken at first, %d times", n)
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
				if a.Trusted() {
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
	w.OK(w.bucket("members").Delete(w.Ctx, "m.a"))
	w.Eventually("it is not trusted", func() bool { return !a.Trusted() })
	w.Eventually("it has joined again", func() bool { return strings.Contains(w.Log.String(), "had lapsed; it joins again") })
	_, err := w.bucket("leases").Put(w.Ctx, "p."+taken.String(), []byte(`{"member":"b"}`))
	w.OK(err)
	select {
	case <-lost:
	case <-w.Ctx.Done():
		t.Fatalf("it keeps acting for what is another's; logged:\n%s", w.Log)
	}
	if a.Trusted() {
		t.Error("it is trusted while partitions are still given up")
	}
	release()
	w.Eventually("it is trusted again", a.Trusted)
	if a.has(*taken) {
		t.Error("it has what is another's")
	}
	a.hook(hooks{}) // what the other leaves when it goes may be taken, and is lost with the test
}
