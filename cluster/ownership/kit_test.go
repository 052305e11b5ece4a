package ownership_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/ownership"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// world is a server of a test's own and the nodes there, which have nothing but an
// ownership.
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

// node is a member that takes partitions, if it does.
type node struct {
	*ownership.Ownership
	conn *nats.Conn
	// refuses reports that it takes none.
	refuses bool

	mu   sync.Mutex
	own  map[messages.Partition]messages.Epoch
	does hooks
}

// hooks are what the test does when the node drains a partition, when it loses one, and when it
// was prepared to take one; nil: nothing.
type hooks struct{ busy, lost, prepared func(messages.Partition) }

// owner acts for a node. It implements ownership.Owner.
type owner struct{ *node }

// Prepare has seen no owner before.
func (n owner) Prepare(_ context.Context, p messages.Partition) (messages.Epoch, error) {
	if n.refuses {
		return 0, errors.New("it takes none")
	}
	if f := n.hooks().prepared; f != nil {
		f(p)
	}
	return 0, nil
}

// Acquired notes that the partition is the node's.
func (n owner) Acquired(p messages.Partition, epoch messages.Epoch) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.own[p] = epoch
	return nil
}

// Drain waits for what busy does.
func (n owner) Drain(_ context.Context, p messages.Partition) bool {
	if f := n.hooks().busy; f != nil {
		f(p)
	}
	return true
}

// Stay does nothing: the partition is in own all the time.
func (n owner) Stay(messages.Partition) {}

// Lost notes that the partition is the node's no more.
func (n owner) Lost(p messages.Partition) {
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

// member makes one that takes no partitions.
func (w *world) member(id string) *node {
	w.T.Helper()
	return w.over(w.Connect(), id, true)
}

// join makes one that takes partitions.
func (w *world) join(id string) *node {
	w.T.Helper()
	return w.over(w.Connect(), id, false)
}

// over makes a node; its connection is what a kill of its process ends.
func (w *world) over(nc *nats.Conn, id string, refuses bool) *node {
	w.T.Helper()
	js, err := jetstream.New(nc)
	w.OK(err)
	n := &node{conn: nc, refuses: refuses, own: make(map[messages.Partition]messages.Epoch)}
	n.Ownership = ownership.New(ownership.Config{
		JetStream: js, Root: "reprise", Self: ownership.Info{ID: id, Host: "here", Started: time.Now(), Kinds: []string{id}},
		Owner: owner{n}, Moved: func(messages.Partition) {}, DrainLimit: 20 * time.Second, Logger: w.Log.Logger(),
	})
	w.OK(n.Join(w.Ctx))
	w.T.Cleanup(n.Close)
	w.OK(n.Settled(w.Ctx))
	return n
}

func (n *node) ids() (list []string) {
	for _, i := range n.List() {
		list = append(list, i.ID)
	}
	return list
}

func (w *world) sees(n *node, want ...string) {
	w.T.Helper()
	w.Eventually(fmt.Sprintf("the members are %v", want), func() bool { return slices.Equal(n.ids(), want) })
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

// settled waits until every partition has an owner, by the leases and by the nodes.
func (w *world) settled(nodes map[string]*node) {
	w.T.Helper()
	for p := range messages.Partition(messages.Partitions) {
		w.Eventually("partition "+p.String()+" is somebody's", func() bool {
			n := nodes[w.leased(p)]
			return n != nil && n.has(p)
		})
	}
}
