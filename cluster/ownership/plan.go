package ownership

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

const (
	// settleTime is for how long another must have been to own a partition before it is handed
	// over: members that come and go, and those whose draining is seen only after their
	// partitions have come, set nothing in motion.
	settleTime = 500 * time.Millisecond
	// grace is how long a free partition waits for the member that is to take it.
	grace = 2 * time.Second
	// patience bounds an attempt to take a partition or to write its lease, how long a
	// drained partition is waited for, and for how long a member that did not take one is
	// given nothing more: it may only have been slow, and shares are uneven meanwhile.
	patience = 10 * time.Second
	// mostDrained is how many partitions are drained at once to make shares even, and
	// mostMoved how many of those are handed over at once; mostLeft are when the node drains.
	mostDrained, mostMoved, mostLeft = 8, 2, 16
)

// state is what a plan follows from: what the watch has shown, and what this node holds
// and does. [Ownership.mu] guards it.
type state struct {
	self Info
	seen map[string]member
	// heard is when the watch last showed a heartbeat of this node, steady since when it
	// has without a gap.
	heard, steady time.Time
	session       int // the number of the newest watch
	partitions    [messages.Partitions]partition
	// unable are members that did not take what was theirs, and until when they are given
	// nothing more.
	unable map[string]time.Time
}

// member is a key in the bucket of members.
type member struct {
	Info
	value    string
	revision uint64
	since    time.Time // when it was first seen
}

// lease is a key in the bucket of leases.
type lease struct {
	Member string `json:"member"`
	// Floor is the least epoch of the owner: more than any seen when it took the partition.
	Floor messages.Epoch `json:"floor"`
	// Next is who is to take a partition that was handed over; Member is empty then.
	Next     string `json:"next,omitempty"`
	revision uint64 // 0: there is no key
}

func (l lease) epoch() messages.Epoch { return max(messages.Epoch(l.revision), l.Floor) }

// partition is what is known of a partition.
type partition struct {
	// lease is the newest that the watch has shown or this node has written, in the session
	// wrote.
	lease lease
	wrote int
	// revision is that of this node's lease, zero: it is not the owner; epoch is its.
	revision uint64
	epoch    messages.Epoch
	doing    action             // what is under way, zero: nothing
	begun    int                // the session in which it began
	cancel   context.CancelFunc // ends the waiting of a drain
	// drained reports that a drain has ended, quiet that nothing was under way then.
	drained, quiet bool
	// meant is the other member that is to own it, since when that is so.
	meant string
	since time.Time
	// free is since when it waits for the member that is to take it, later until when
	// this node does not try again.
	free, later time.Time
}

func (p *partition) held() bool { return p.revision != 0 }

// action is what is done about a partition.
type action int

const (
	take     action = iota + 1 // a free one
	drain                      // begin nothing there that must not be cut off, and wait
	stay                       // end a drain: this node keeps it
	handOver                   // stop what acts there, then free the lease for the next owner
	lose                       // stop what acts there: the lease is not this node's any more
	hurry                      // end the waiting of a drain: the partition is lost
)

// step is an action: about which partition, for whom, and what its lease was.
type step struct {
	do       action
	p        messages.Partition
	to       string
	revision uint64
	epoch    messages.Epoch
}

func (s step) String() string { return fmt.Sprintf("%s@%d", s.p, s.epoch) }

// living reports whether a member was seen within TTL, not counting the time in which this
// node did not see its own heartbeats.
func (s *state) living(id string, now time.Time) bool {
	m, there := s.seen[id]
	return there && (now.Sub(s.heard) > 2*heartbeat || now.Sub(m.Heard) < TTL || now.Sub(s.steady) < TTL)
}

// showMember takes in a member's key. One that has expired is left to its silence: it may be
// that no member could renew its key.
func (s *state) showMember(e jetstream.KeyValueEntry, now time.Time) (changed bool) {
	id := strings.TrimPrefix(e.Key(), memberKey(""))
	m, known := s.seen[id]
	switch e.Operation() {
	case jetstream.KeyValuePurge:
		return false
	case jetstream.KeyValueDelete:
		delete(s.seen, id)
		return known
	}
	if id == s.self.ID {
		if now.Sub(s.heard) > 2*heartbeat {
			s.steady = now
		}
		s.heard = now
	}
	if changed = !known || m.value != string(e.Value()); changed {
		m.Info, m.value = Info{}, string(e.Value())
		_ = json.Unmarshal(e.Value(), &m.Info) // one that cannot be read is there all the same
	}
	if !known {
		m.since = now
	}
	m.ID, m.Heard, m.revision = id, now, e.Revision()
	s.seen[id] = m
	return changed
}

// showLease takes in a lease.
func (s *state) showLease(e jetstream.KeyValueEntry) (p messages.Partition, changed bool) {
	var l lease
	if _, err := fmt.Sscanf(e.Key(), "p.%d", &p); err != nil || p >= messages.Partitions || e.Revision() < s.partitions[p].lease.revision {
		return 0, false // this node has written since
	}
	if e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &l) != nil {
		l = lease{} // its owner is not known
	}
	l.revision = e.Revision()
	s.partitions[p].lease = l
	return p, true
}

func (s *state) count(is func(*partition) bool) (n int) {
	for p := range s.partitions {
		if is(&s.partitions[p]) {
			n++
		}
	}
	return n
}

// meant returns which member is to own each partition. Where all drain it is all that count,
// and each keeps what it has.
func (s *state) meant() (meant table, keep bool) {
	var takers []string
	for id, m := range s.seen {
		if id == s.self.ID && !s.self.Draining || id != s.self.ID && !m.Draining {
			takers = append(takers, id)
		}
	}
	if keep = takers == nil; keep {
		takers = slices.Collect(maps.Keys(s.seen))
	}
	for p := range s.partitions {
		at := &s.partitions[p]
		meant[p] = at.lease.Member + at.lease.Next // never both
		if at.held() {
			meant[p] = s.self.ID
		}
	}
	return spread(meant, takers), keep
}

// lost reports whether a partition was this node's and is not any more.
func (s *state) lost(at *partition) bool {
	return at.held() && (at.lease.revision != at.revision || at.lease.Member != s.self.ID)
}

// sure reports whether nothing acts here any more where the newest watch may not agree.
func (s *state) sure() bool {
	return s.count(func(at *partition) bool {
		switch at.doing {
		case 0, drain, stay:
			return s.lost(at)
		case take:
			return at.begun != s.session
		}
		return true
	}) == 0
}

// decide notes that an action begins.
func (s *state) decide(do action, p int, to string) step {
	at := &s.partitions[p]
	st := step{do, messages.Partition(p), to, at.revision, at.epoch}
	if !at.held() {
		st.revision, st.epoch = at.lease.revision, at.lease.epoch()
	}
	switch do {
	case hurry:
		return st
	case take:
		at.free = time.Time{} // the next one that is to take it is waited for again
	case handOver, lose:
		at.revision, at.meant, at.drained = 0, "", false
	}
	at.doing, at.begun = do, s.session
	return st
}

// plan returns what is to be done now: it gives up what is lost, takes what is this node's
// to take and, where that is settled, hands over what is another's. Members that are gone
// are forgotten.
func (s *state) plan(now time.Time, settled bool) (steps []step) {
	maps.DeleteFunc(s.seen, func(id string, _ member) bool { return !s.living(id, now) })
	maps.DeleteFunc(s.unable, func(_ string, until time.Time) bool { return !now.Before(until) })
	for p := range s.partitions {
		switch at := &s.partitions[p]; {
		case !s.lost(at):
		case at.doing == 0:
			steps = append(steps, s.decide(lose, p, ""))
		case at.doing == drain:
			steps = append(steps, s.decide(hurry, p, ""))
		}
	}
	meant, keep := s.meant()
	leaves := s.self.Draining && !keep
	for p := range s.partitions {
		at, do := &s.partitions[p], action(0)
		switch stays := keep || meant[p] == s.self.ID || meant[p] == ""; {
		case at.doing != 0:
		case !at.held():
			do = s.acquire(at, meant[p], leaves, now)
		case settled:
			do = s.release(at, meant[p], stays, leaves, now)
		}
		if do != 0 {
			steps = append(steps, s.decide(do, p, meant[p]))
		}
	}
	return steps
}

// acquire returns what is to be done about a partition that is not this node's.
func (s *state) acquire(at *partition, to string, leaves bool, now time.Time) action {
	mine := at.lease.Member == s.self.ID
	switch {
	case !mine && s.living(at.lease.Member, now):
		at.free = time.Time{}
	case now.Before(at.later), leaves && !mine:
	case leaves: // the lease could not be written when it was handed over
		return handOver
	case mine, to == s.self.ID:
		return take
	case at.free.IsZero():
		at.free = now
	case now.Sub(at.free) >= grace:
		s.unable[to] = now.Add(patience)
		return take
	}
	return 0
}

// release returns what is to be done about a partition of this node's that to is to own.
func (s *state) release(at *partition, to string, stays, leaves bool, now time.Time) action {
	drains, moves := mostDrained, mostMoved
	if leaves {
		drains, moves = messages.Partitions, mostLeft
	}
	if at.meant != to {
		at.meant, at.since = to, now
	}
	switch {
	case at.drained && (stays || !at.quiet && !leaves):
		at.drained = false
		at.since = now.Add(3 * patience)
		return stay
	case at.drained:
		if s.count(func(p *partition) bool { return p.doing == handOver }) < moves {
			return handOver
		}
	case stays, !leaves && now.Sub(at.since) < settleTime, now.Before(s.unable[to]):
	case s.count(func(p *partition) bool { return p.doing == drain || p.drained }) < drains:
		return drain
	}
	return 0
}
