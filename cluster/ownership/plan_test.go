package ownership

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// entry is a key as a watch shows it.
type entry struct {
	jetstream.KeyValueEntry
	key      string
	value    []byte
	revision uint64
	op       jetstream.KeyValueOp
}

func (e entry) Key() string                     { return e.key }
func (e entry) Value() []byte                   { return e.value }
func (e entry) Revision() uint64                { return e.revision }
func (e entry) Operation() jetstream.KeyValueOp { return e.op }

func shown(key string, revision uint64, v any) entry {
	b, _ := json.Marshal(v)
	return entry{key: key, value: b, revision: revision}
}

// newState is that of node a, which sees the members.
func newState(now time.Time, members ...Info) *state {
	s := &state{self: Info{ID: "a"}, seen: make(map[string]member), unable: make(map[string]time.Time), session: 1}
	for _, i := range members {
		s.showMember(shown(memberKey(i.ID), 1, i), now)
	}
	return s
}

// owns makes node a the owner of a partition.
func (s *state) owns(p int) {
	at := &s.partitions[p]
	at.lease = lease{Member: "a", Floor: 7, revision: 5}
	at.revision, at.epoch = 5, 7
}

// next returns what a plan does about a partition.
func (s *state) next(now time.Time, p int, settled bool) (do action) {
	for _, st := range s.plan(now, settled) {
		if int(st.p) == p {
			do = st.do
		}
	}
	return do
}

// What one plan does about a partition whose lease and members are as given.
func TestPlanOfOne(t *testing.T) {
	now := time.Now()
	a, b, gone := Info{ID: "a"}, Info{ID: "b"}, time.Duration(0)
	drains := Info{ID: "a", Draining: true}
	for name, c := range map[string]struct {
		members []Info
		is      func(s *state)
		after   time.Duration
		want    action
	}{
		"no lease":                       {members: []Info{a}, want: take},
		"another's, which lives":         {members: []Info{a, b}, is: func(s *state) { s.partitions[0].lease.Member = "b" }},
		"another's, which is unknown":    {members: []Info{a}, is: func(s *state) { s.partitions[0].lease.Member = "b" }, want: take},
		"its own lease, not held":        {members: []Info{a, b}, is: func(s *state) { s.partitions[0].lease.Member = "a" }, want: take},
		"its own lease, and it drains":   {members: []Info{drains, b}, is: func(s *state) { s.self.Draining = true; s.partitions[0].lease.Member = "a" }, want: handOver},
		"meant for another":              {members: []Info{a, b}, is: func(s *state) { s.partitions[0].lease.Next = "b" }},
		"meant for another that did not": {members: []Info{a, b}, is: func(s *state) { s.partitions[0].lease.Next = "b" }, after: grace, want: take},
		"tried a moment ago":             {members: []Info{a}, is: func(s *state) { s.partitions[0].later = now.Add(time.Second) }},
		"free, and it drains":            {members: []Info{drains, b}, is: func(s *state) { s.self.Draining = true }, after: grace},
		"free, and all drain":            {members: []Info{drains}, is: func(s *state) { s.self.Draining = true }, want: take},
		"held":                           {members: []Info{a}, is: func(s *state) { s.owns(0) }},
		"held, and it drains":            {members: []Info{drains, b}, is: func(s *state) { s.owns(0); s.self.Draining = true }, want: drain},
		"held, and all drain":            {members: []Info{drains}, is: func(s *state) { s.owns(0); s.self.Draining = true }},
		"drained":                        {members: []Info{drains, b}, is: func(s *state) { s.owns(0); s.self.Draining = true; s.partitions[0].drained = true }, want: handOver},
		"drained, and all drain now":     {members: []Info{drains}, is: func(s *state) { s.owns(0); s.self.Draining = true; s.partitions[0].drained = true }, want: stay},
		"lost":                           {members: []Info{a, b}, is: func(s *state) { s.owns(0); s.partitions[0].lease.revision = 9 }, want: lose},
		"lost, by a lease that is gone":  {members: []Info{a, b}, is: func(s *state) { s.owns(0); s.partitions[0].lease = lease{} }, want: lose},
		"lost while it is drained":       {members: []Info{a, b}, is: func(s *state) { s.owns(0); s.partitions[0].lease.revision, s.partitions[0].doing = 9, drain }, want: hurry},
		"lost while it is handed over":   {members: []Info{a, b}, is: func(s *state) { s.partitions[0].doing = handOver }},
	} {
		s := newState(now, c.members...)
		if c.is != nil {
			c.is(s)
		}
		do := s.next(now, 0, true)
		if c.after != gone {
			do = s.next(now.Add(c.after), 0, true)
		}
		if do != c.want {
			t.Errorf("%s: action %d, want %d", name, do, c.want)
		}
	}
}

// A member that was once too slow to take a partition is waited for again when it is handed over to it
// once more.
func TestWaitsForTheNextOwner(t *testing.T) {
	now := time.Now()
	s := newState(now, Info{ID: "a"}, Info{ID: "b"})
	for revision := range uint64(3) {
		at := &s.partitions[0]
		at.lease, at.revision, at.doing = lease{Next: "b", revision: 5 + revision}, 0, 0 // handed over
		for when, want := range []action{0, take} {
			now := now.Add(time.Duration(revision)*2*patience + time.Duration(when)*grace)
			for id := range s.seen {
				s.showMember(shown(memberKey(id), 2, Info{ID: id}), now)
			}
			if do := s.next(now, 0, true); do != want {
				t.Errorf("handed over %d times, after %v: action %d, want %d", revision+1, time.Duration(when)*grace, do, want)
			}
		}
	}
}

// Where shares are uneven partitions are handed over a few at a time, after a while, and not
// as long as it is unsure what this node owns; one that does not come to rest is left alone.
func TestSmallSteps(t *testing.T) {
	now := time.Now()
	s := newState(now, Info{ID: "a"}, Info{ID: "b"})
	for p := range s.partitions {
		s.owns(p)
	}
	step := func(when time.Duration, settled bool, want action, n int) (steps []step) {
		t.Helper()
		s.showMember(shown(memberKey("a"), 2, Info{ID: "a"}), now.Add(when))
		s.showMember(shown(memberKey("b"), 2, Info{ID: "b"}), now.Add(when))
		steps = s.plan(now.Add(when), settled)
		if len(steps) != n || slices.ContainsFunc(steps, func(st step) bool { return st.do != want || st.to != "b" }) {
			t.Fatalf("after %v: %+v, want %d times %d", when, steps, n, want)
		}
		return steps
	}
	step(0, false, 0, 0)
	step(0, true, 0, 0)
	step(settleTime-1, true, 0, 0)
	step(3*settleTime, false, 0, 0)
	began := step(3*settleTime, true, drain, mostDrained)
	for i, st := range began {
		at := &s.partitions[st.p]
		at.doing, at.drained, at.quiet = 0, true, i > 0
	}
	steps := s.plan(now.Add(3*settleTime), true)
	count := func(do action) (n int) {
		for _, st := range steps {
			if st.do == do {
				n++
			}
		}
		return n
	}
	if count(handOver) != mostMoved || count(stay) != 1 {
		t.Fatalf("%+v", steps)
	}
	s.partitions[began[0].p].doing = 0
	for _, st := range s.plan(now.Add(time.Second), true) {
		if st.p == began[0].p {
			t.Errorf("the one that stays is drained again: %+v", st)
		}
	}
}

// Another is not sure to be gone while this node did not see its own heartbeats.
func TestSilence(t *testing.T) {
	now := time.Now()
	s := newState(now, Info{ID: "a"}, Info{ID: "b"})
	beats := func(at time.Duration) { s.showMember(shown(memberKey("a"), 2, Info{ID: "a"}), now.Add(at)) }
	lives := func(at time.Duration, want bool) {
		t.Helper()
		if is := s.living("b", now.Add(at)); is != want {
			t.Errorf("after %v: living %v", at, is)
		}
	}
	lives(TTL, true) // nothing is seen at all
	beats(TTL)
	lives(2*TTL-1, true)
	for at := TTL; at <= 2*TTL; at += heartbeat {
		beats(at)
	}
	lives(2*TTL, false)
	if s.showMember(entry{key: memberKey("b"), op: jetstream.KeyValuePurge}, now); s.seen["b"].ID != "b" {
		t.Error("a key that expires ends a membership")
	}
	if s.showMember(entry{key: memberKey("b"), op: jetstream.KeyValueDelete}, now); s.living("b", now) {
		t.Error("a key that is removed does not")
	}
}

// What is done in the background may concern a partition that is another's by now: it is not
// sure that nothing acts there, until it has ended.
func TestSure(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		is   func(s *state, at *partition)
		want bool
	}{
		"nothing":                         {func(*state, *partition) {}, true},
		"held":                            {func(s *state, _ *partition) { s.owns(0) }, true},
		"lost":                            {func(s *state, at *partition) { s.owns(0); at.lease.revision = 9 }, false},
		"it is lost now":                  {func(_ *state, at *partition) { at.doing = lose }, false},
		"drained":                         {func(s *state, at *partition) { s.owns(0); at.doing = drain }, true},
		"drained, and another's":          {func(s *state, at *partition) { s.owns(0); at.lease.revision, at.doing = 9, drain }, false},
		"handed over":                     {func(_ *state, at *partition) { at.doing = handOver }, false},
		"taken by what this watch shows":  {func(_ *state, at *partition) { at.doing, at.begun = take, 1 }, true},
		"taken by what another has shown": {func(_ *state, at *partition) { at.doing, at.begun = take, 0 }, false},
	} {
		s := newState(now, Info{ID: "a"})
		c.is(s, &s.partitions[0])
		if s.sure() != c.want {
			t.Errorf("%s: sure %v", name, s.sure())
		}
	}
}

// sim is a bucket of leases and the nodes that plan on it. Each sees what is written later
// than it is.
type sim struct {
	t        *testing.T
	r        *rand.Rand
	now      time.Time
	revision uint64
	leases   [messages.Partitions]lease
	epochs   [messages.Partitions]messages.Epoch
	nodes    map[string]*simNode
}

type simNode struct {
	state
	dead    bool
	unseen  []entry
	pending []step
}

func (m *sim) join(id string) {
	n := &simNode{state: *newState(m.now)}
	n.self.ID = id
	n.session = 1
	for p, l := range m.leases {
		if l.revision > 0 {
			n.showLease(shown(fmt.Sprintf("p.%d", p), l.revision, l))
		}
	}
	m.nodes[id] = n
}

// write puts a lease in the place of the one that a step was decided on.
func (m *sim) write(n *simNode, st step, l lease) (lease, bool) {
	if m.leases[st.p].revision != st.revision {
		n.partitions[st.p].later = m.now.Add(heartbeat)
		return l, false
	}
	m.revision++
	l.revision = m.revision
	m.leases[st.p], n.partitions[st.p].lease = l, l
	for _, other := range m.nodes {
		other.unseen = append(other.unseen, shown("p."+st.p.String(), l.revision, l))
	}
	return l, true
}

// do ends what a node has begun.
func (m *sim) do(n *simNode, st step) {
	at, was := &n.partitions[st.p], m.leases[st.p]
	switch at.doing = 0; st.do {
	case take:
		l, ok := m.write(n, st, lease{Member: n.self.ID, Floor: st.epoch + 1})
		if !ok {
			return
		}
		if owner := m.nodes[was.Member]; owner != nil && was.Member != n.self.ID && !owner.dead {
			m.t.Fatalf("partition %s was taken from %s, which lives", st.p, was.Member)
		}
		if l.epoch() <= m.epochs[st.p] {
			m.t.Fatalf("partition %s has epoch %d after %d", st.p, l.epoch(), m.epochs[st.p])
		}
		m.epochs[st.p] = l.epoch()
		at.revision, at.epoch = l.revision, l.epoch()
	case drain:
		at.drained, at.quiet = true, m.r.IntN(8) > 0
	case handOver:
		m.write(n, st, lease{Floor: st.epoch, Next: st.to})
	}
}

// round is a quarter of a second.
func (m *sim) round() {
	m.now = m.now.Add(250 * time.Millisecond)
	for _, n := range m.nodes {
		if n.dead {
			continue
		}
		for id, other := range m.nodes {
			if !other.dead {
				n.showMember(shown(memberKey(id), m.revision, other.self), m.now)
			}
		}
		seen := m.r.IntN(len(n.unseen) + 1)
		for _, e := range n.unseen[:seen] {
			n.showLease(e)
		}
		n.unseen = n.unseen[seen:]
		for _, st := range n.plan(m.now, n.sure()) {
			if st.do != hurry {
				n.pending = append(n.pending, st)
			}
		}
		m.r.Shuffle(len(n.pending), func(i, j int) { n.pending[i], n.pending[j] = n.pending[j], n.pending[i] })
		ended := n.pending[:m.r.IntN(len(n.pending)+1)]
		n.pending = slices.Clone(n.pending[len(ended):])
		for _, st := range ended {
			m.do(n, st)
		}
	}
}

// Nodes join, drain and die in any order: no partition is taken from a node that lives, no
// epoch comes twice, and once that ends shares are even.
func TestNodesPlanTogether(t *testing.T) {
	for seed := range uint64(6) {
		m := &sim{t: t, r: rand.New(rand.NewPCG(seed, 1)), now: time.Now(), nodes: make(map[string]*simNode)}
		m.join("n0")
		for i := range 150 {
			switch m.r.IntN(12) {
			case 0:
				if len(m.nodes) < 5 {
					m.join(fmt.Sprintf("n%d", i+1))
				}
			case 1:
				for _, n := range m.nodes {
					n.dead = n.dead || m.r.IntN(len(m.nodes)+1) == 0
				}
			case 2:
				for _, n := range m.nodes {
					n.self.Draining = m.r.IntN(3) == 0
				}
			}
			for id, n := range m.nodes {
				if n.dead && m.r.IntN(8) == 0 {
					delete(m.nodes, id)
				}
			}
			m.round()
		}
		m.join("last")
		wrong := "unknown"
		for i := 0; wrong != "" && i < 1000; i++ {
			m.round()
			wrong = m.wrong()
		}
		if wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
	}
}

// wrong returns what is not as it should be when nothing happens any more.
func (m *sim) wrong() string {
	takers := 0
	for _, n := range m.nodes {
		if !n.dead && !n.self.Draining {
			takers++
		}
	}
	for id, n := range m.nodes {
		held := n.count((*partition).held)
		for p := range n.partitions {
			if at := &n.partitions[p]; !n.dead && at.held() && (m.leases[p].Member != id || m.leases[p].revision != at.revision) {
				return fmt.Sprintf("%s acts for partition %d, whose lease is %+v", id, p, m.leases[p])
			}
		}
		switch least := messages.Partitions / takers; {
		case n.dead:
		case n.self.Draining && held > 0, !n.self.Draining && (held < least || held > least+1):
			return fmt.Sprintf("%s of %d, draining %v, has %d", id, takers, n.self.Draining, held)
		}
	}
	return ""
}
