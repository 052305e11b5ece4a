package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// places knows which node each partition is leased to, as the bucket of leases tells.
type places struct {
	mu     sync.Mutex
	owners [messages.Partitions]string
	moves  []move
	failed error
}

// move is a lease that was written.
type move struct {
	partition messages.Partition
	to        string // empty: it was given up
	at        time.Time
}

// watch follows the leases until ctx ends.
func (s *servers) watch(ctx context.Context) (*places, error) {
	kv, err := s.js.KeyValue(ctx, messages.DefaultRoot+"_leases")
	if err != nil {
		return nil, err
	}
	w, err := kv.WatchAll(ctx)
	if err != nil {
		return nil, err
	}
	pl := &places{}
	told := make(chan struct{})
	go func() {
		past := true
		for e := range w.Updates() {
			if e == nil && past {
				past = false
				close(told)
			} else if e != nil {
				pl.note(e)
			}
		}
		pl.mu.Lock()
		defer pl.mu.Unlock()
		pl.failed = errors.New("the watch of the leases has ended")
	}()
	select {
	case <-told:
		return pl, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (pl *places) note(e jetstream.KeyValueEntry) {
	var p messages.Partition
	if _, err := fmt.Sscanf(e.Key(), "p.%d", &p); err != nil || int(p) >= messages.Partitions {
		return
	}
	var lease struct {
		Member string `json:"member"`
	}
	if e.Operation() == jetstream.KeyValuePut {
		_ = json.Unmarshal(e.Value(), &lease) // what cannot be read is nobody's
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if pl.owners[p] != lease.Member {
		pl.owners[p] = lease.Member
		pl.moves = append(pl.moves, move{p, lease.Member, e.Created()})
	}
}

// owner is the node that a partition is leased to.
func (pl *places) owner(p messages.Partition) string {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	return pl.owners[p]
}

// share is how many partitions each node has, and how many leases were ever written.
func (pl *places) share() (owned map[string]int, moves int, err error) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	owned = make(map[string]int)
	for _, id := range pl.owners {
		owned[id]++
	}
	return owned, len(pl.moves), pl.failed
}

// since are the leases written after so many.
func (pl *places) since(moves int) []move {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	return append([]move(nil), pl.moves[moves:]...)
}

const (
	// calm is how long no lease is written once partitions are where they stay.
	calm = time.Second
	// looks is how often it is looked at.
	looks = 10 * time.Millisecond
	// owned bounds how long partitions may be nobody's.
	owned = 60 * time.Second
)

// placed waits until the nodes that run own every partition and each of them at least
// half of an even share. If they own every partition but the shares stay uneven, it
// goes on after Settle and tells of it.
func (t *trial) placed(ctx context.Context) error {
	begun, changed, moves := time.Now(), time.Now(), -1
	for {
		if err := t.running(); err != nil {
			return err
		}
		have, now, err := t.places.share()
		if err != nil {
			return err
		}
		if now != moves {
			moves, changed = now, time.Now()
		}
		whole, even := t.even(have)
		quiet, waited := time.Since(changed) > calm, time.Since(begun)
		switch {
		case whole && even && quiet:
			return nil
		case whole && quiet && waited > t.Settle:
			t.tell("after %v the nodes own %s: an even share did not come", t.Settle, t.shares(have))
			return nil
		case waited > max(owned, t.Settle):
			return fmt.Errorf("after %v the nodes own %s: some partitions are nobody's; the nodes said: %s", waited.Round(time.Second), t.shares(have), t.said())
		}
		if sleep(ctx, looks); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// even says whether the nodes that run own every partition, and each its share.
func (t *trial) even(have map[string]int) (whole, even bool) {
	sum := 0
	even = true
	for _, m := range t.members {
		sum += have[m.id]
		even = even && have[m.id] >= messages.Partitions/(2*len(t.members))
	}
	return sum == messages.Partitions, even
}

func (t *trial) shares(have map[string]int) string {
	var each []string
	for _, m := range t.members {
		each = append(each, fmt.Sprint(have[m.id]))
	}
	return strings.Join(each, " and ") + " partitions"
}

// said is the end of what the nodes have logged.
func (t *trial) said() string {
	var each []string
	for _, m := range t.members {
		each = append(each, m.id+": "+m.log.String())
	}
	return strings.Join(each, "; ")
}

// busiest is the node that owns the most partitions.
func (t *trial) busiest() *member {
	have, _, _ := t.places.share()
	best := t.members[0]
	for _, m := range t.members {
		if have[m.id] > have[best.id] {
			best = m
		}
	}
	return best
}
