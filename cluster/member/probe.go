package member

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	probeEvery = 200 * time.Millisecond
	// probeTwice is how long after a ping that nobody heard there is another; where
	// there are several servers it is probeMany: one of them may have died, and the
	// member is on its way to another.
	probeTwice = 50 * time.Millisecond
	probeMany  = 300 * time.Millisecond
	// probeLater is for how long a member is not pinged after it was first seen, or
	// after this node's own connection came back: in a cluster of servers each learns
	// a little later who listens where, and after an outage that all have had the
	// others are on their way.
	probeLater = time.Second
)

// probe pings, for as long as ctx lives, the member that follows this node in the
// order of ids, and removes the key of one that nobody answers for. A member that is
// only slow is left alone: its key will tell.
func (m *Members) probe(ctx context.Context) {
	connected := m.nc.StatusChanged(nats.CONNECTED)
	defer m.nc.RemoveStatusListener(connected)
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var from time.Time
	for {
		select {
		case _, ok := <-connected:
			if !ok {
				connected = nil
			}
			from = time.Now().Add(probeLater)
		case now := <-ticker.C:
			for now.After(from) && m.nc.IsConnected() && m.probeNext(ctx, now) {
			}
		case <-ctx.Done():
			return
		}
	}
}

// probeNext says whether it has removed a member, so that there is another to ping.
func (m *Members) probeNext(ctx context.Context, now time.Time) (removed bool) {
	id, e := m.next()
	if id == "" || now.Sub(e.since) < probeLater {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, TTL/3)
	defer cancel()
	between := probeTwice
	if len(m.nc.Servers()) > 1 {
		between = probeMany
	}
	for i := range 2 {
		if i > 0 {
			select {
			case <-time.After(between):
			case <-ctx.Done():
				return false
			}
		}
		// One that dies with a ping in hand never answers it: the next one tells.
		ping, cancel := context.WithTimeout(ctx, probeEvery)
		_, err := m.nc.RequestWithContext(ping, m.pingSubject(id), nil)
		cancel()
		if !errors.Is(err, nats.ErrNoResponders) {
			return false
		}
	}
	if m.bucket().Delete(ctx, prefix+id, jetstream.LastRevision(e.rev)) != nil {
		return false // it has beaten meanwhile, or another was first
	}
	m.logger.Warn("a node is gone: nobody answers its ping", "member", id)
	m.mu.Lock()
	if m.alive[id].rev == e.rev { // else it is back already
		delete(m.alive, id)
	}
	m.mu.Unlock()
	m.tell()
	return true
}

// next is the member after this one in the order of ids, the first one after the
// last; empty if there is no other.
func (m *Members) next() (next string, e entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := ""
	for id := range m.alive {
		if id != m.cfg.Self.ID && (first == "" || id < first) {
			first = id
		}
		if id > m.cfg.Self.ID && (next == "" || id < next) {
			next = id
		}
	}
	if next == "" {
		next = first
	}
	return next, m.alive[next]
}
