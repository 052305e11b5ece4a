package ownership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	pingEvery = 200 * time.Millisecond
	// newcomer is for how long a member is not pinged after it was first seen, or after
	// this node's own heartbeats are seen again: in a cluster of servers each learns a
	// little later who subscribes where, and after an outage that all have had the others
	// are on their way.
	newcomer = time.Second
)

// probe pings, until ctx ends, the member that follows this node in the order of ids, and
// removes the key of one whose ping has no subscriber twice: thrice where there are
// several servers, one of which may have died with the member on its way to another. A
// member that is only slow is left alone: its heartbeats decide.
func (o *Ownership) probe(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	suspect, missed := "", 0
	for {
		select {
		case now := <-ticker.C:
			m := o.next(now)
			if m.ID != suspect || !o.unsubscribed(ctx, m.ID) {
				suspect, missed = m.ID, 0
			} else if missed++; missed > min(len(o.conn.Servers()), 2) {
				o.expel(ctx, m)
			}
		case <-ctx.Done():
			return
		}
	}
}

// unsubscribed reports whether a member's ping has no subscriber.
func (o *Ownership) unsubscribed(ctx context.Context, id string) bool {
	if id == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingEvery) // one that dies with a ping in hand never answers it
	defer cancel()
	_, err := o.conn.RequestWithContext(ctx, o.pingSubject(id), nil)
	return errors.Is(err, nats.ErrNoResponders)
}

// expel removes the key of a member that is gone, unless it was renewed meanwhile.
func (o *Ownership) expel(ctx context.Context, m member) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	o.mu.Lock()
	kv := o.members
	o.mu.Unlock()
	if kv.Delete(ctx, memberKey(m.ID), jetstream.LastRevision(m.revision)) != nil {
		return // or another was first
	}
	o.cfg.Logger.Warn("a node is gone: its ping has no subscriber", "member", m.ID)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[m.ID].revision == m.revision { // else it is back already
		delete(o.seen, m.ID)
		o.change()
	}
}

// next returns the member after this one in the order of ids, the first one after the
// last; the zero member: there is no other, or it is not to be pinged yet.
func (o *Ownership) next(now time.Time) member {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(o.seen)), func(id string) bool { return id == o.self.ID })
	if len(ids) == 0 {
		return member{}
	}
	at, _ := slices.BinarySearch(ids, o.self.ID)
	m := o.seen[ids[at%len(ids)]]
	if now.Sub(m.since) < newcomer || now.Sub(o.steady) < newcomer {
		return member{}
	}
	return m
}
