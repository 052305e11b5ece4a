package lease

import (
	"context"
	"maps"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// looking is one look at all partitions.
type looking struct {
	ctx    context.Context
	now    time.Time
	living map[string]bool
	plan   table
	leaves bool          // this node takes nothing, and gives all away
	wait   time.Duration // until there is something to look at again
}

func (k *looking) within(d time.Duration) { k.wait = min(k.wait, max(d, time.Millisecond)) }

// look begins what is to be done: it gives up what is lost, takes what is this node's
// to take, and hands over what is another's. It says when to look again. A node that
// does not trust its membership does nothing.
func (l *Leases) look(ctx context.Context, s *session) (wait time.Duration, err error) {
	switch term, inTime := l.cfg.Members.Trust(); {
	case term != s.term:
		return 0, errLapsed
	case !inTime:
		return backstop, nil // when it is renewed the members tell
	}
	k := &looking{ctx: ctx, now: time.Now(), living: make(map[string]bool), wait: backstop, leaves: l.cfg.Members.Draining()}
	var all, takers []string
	for _, m := range l.cfg.Members.List() {
		k.living[m.ID] = true
		all = append(all, m.ID)
		if m.ID == l.self && !k.leaves || m.ID != l.self && !m.Draining {
			takers = append(takers, m.ID)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keeps = len(takers) == 0; l.keeps {
		takers, k.leaves = all, false
	}
	l.takers = takers
	maps.DeleteFunc(l.unable, func(_ string, until time.Time) bool { return !k.now.Before(until) })
	l.lose(l.isGone)
	k.plan = l.plan()
	begun := l.takeFree(k)
	l.giveAway(k)
	l.tellGiven()
	l.settle(begun)
	return k.wait, nil
}

// takeFree begins to take what is free. l.mu is held.
func (l *Leases) takeFree(k *looking) (begun []chan struct{}) {
	for p := range messages.Partition(messages.Partitions) {
		_, ours := l.held[p]
		_, busy := l.busy[p]
		v, leased := read(l.seen[p])
		if ours || leased && v.Member != "" && v.Member != l.self && k.living[v.Member] {
			delete(l.free, p)
			continue
		}
		if busy {
			continue
		}
		if until := l.later[p]; k.now.Before(until) {
			k.within(until.Sub(k.now))
			continue
		}
		switch {
		case k.leaves && v.Member == l.self:
			l.handBack(k.ctx, p, v, k.plan[p])
		case l.isMine(k, p, v):
			begun = append(begun, l.take(k.ctx, p))
		}
	}
	return begun
}

// isMine says whether this node is to take a free partition: because it is the one, or
// because the one has not taken it in time. l.mu is held.
func (l *Leases) isMine(k *looking, p messages.Partition, v value) bool {
	switch {
	case k.leaves:
		return false
	case v.Member == l.self, k.plan[p] == l.self:
		return true
	}
	since, waits := l.free[p]
	if !waits {
		since = k.now
		l.free[p] = since
	}
	if left := grace - k.now.Sub(since); left > 0 {
		k.within(left)
		return false
	}
	l.unable[k.plan[p]] = k.now.Add(unfit)
	return true
}

// giveAway begins to hand over what is to be another's. l.mu is held.
func (l *Leases) giveAway(k *looking) {
	most := draining
	if k.leaves {
		most = messages.Partitions
	}
	for p := range messages.Partition(messages.Partitions) {
		to := k.plan[p]
		_, ours := l.held[p]
		if !ours || to == l.self || to == "" || l.keeps {
			delete(l.moves, p)
			continue
		}
		if l.moves[p].to != to {
			l.moves[p] = move{to, k.now}
		}
		if left := calm - k.now.Sub(l.moves[p].since); left > 0 && !k.leaves {
			k.within(left)
			continue
		}
		if _, busy := l.busy[p]; !busy && len(l.giving) < most && !k.now.Before(l.unable[to]) {
			l.give(k.ctx, p, k.leaves)
		}
	}
}

// settle says that the first look is over once what it has begun is. l.mu is held.
func (l *Leases) settle(begun []chan struct{}) {
	if l.looked {
		return
	}
	l.looked = true
	l.working.Go(func() {
		for _, done := range begun {
			<-done
		}
		close(l.settled)
	})
}
