//go:build unix

package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// observer sees who is given which partition. It is notified of each change, but not of what
// changes twice while it is not connected. Safe for concurrent use.
type observer struct {
	done chan struct{} // closed when it looks no more

	mu      sync.Mutex
	now     map[messages.Partition]string
	granted map[grant]string // to whom
	moves   int
	moved   time.Time // when the newest of them was
	faults  []string
	newest  uint64 // the highest revision that it was notified of
}

// grant is a partition under an epoch.
type grant struct {
	partition messages.Partition
	epoch     messages.Epoch
}

// observe begins to look at the leases and returns when it knows those of now.
func observe(ctx context.Context, js jetstream.JetStream) (*observer, error) {
	kv, err := insist(ctx, func(ctx context.Context) (jetstream.KeyValue, error) {
		return js.KeyValue(ctx, messages.DefaultRoot+"_leases")
	})
	if err != nil {
		return nil, fmt.Errorf("the leases: %w", err)
	}
	// The library waits for the server's answer until the deadline of a watch that has one,
	// and for seconds otherwise; an answer can be lost with its server.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, stop)
	watch, err := kv.WatchAll(run)
	if err != nil {
		return nil, err
	}
	o := &observer{done: make(chan struct{}), now: make(map[messages.Partition]string), granted: make(map[grant]string)}
	told := make(chan struct{})
	go func() {
		defer close(o.done)
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		late := 0
		past := true
		for {
			select {
			case e, ok := <-watch.Updates():
				switch {
				case !ok:
					return
				case e != nil:
					o.see(e)
				case past:
					past = false
					close(told)
				}
			case <-ticker.C:
				if late++; !o.behind(ctx, kv) {
					late = 0
				}
				if late < 2 {
					continue
				}
				if again, err := kv.WatchAll(run); err == nil { // the other died with its server
					go func(old jetstream.KeyWatcher) { _ = old.Stop() }(watch)
					watch, late = again, 0
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	select {
	case <-told:
		return o, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lookEvery is how often the observer checks whether it was notified of everything.
const lookEvery = time.Second

// behind reports whether leases were written of which it was not notified.
func (o *observer) behind(ctx context.Context, kv jetstream.KeyValue) bool {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	status, err := kv.Status(ctx)
	if err != nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	is, ok := status.(*jetstream.KeyValueBucketStatus)
	return ok && is.StreamInfo().State.LastSeq > o.newest
}

func (o *observer) see(e jetstream.KeyValueEntry) {
	o.mu.Lock()
	o.newest = max(o.newest, e.Revision())
	o.mu.Unlock()
	number, is := strings.CutPrefix(e.Key(), "p.")
	n, err := strconv.ParseUint(number, 10, 8)
	if !is || err != nil || n >= messages.Partitions {
		return // of something else
	}
	var lease struct {
		Member string
		Floor  messages.Epoch
	}
	if e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &lease) != nil {
		return
	}
	p, epoch := messages.Partition(n), max(messages.Epoch(e.Revision()), lease.Floor)
	o.mu.Lock()
	defer o.mu.Unlock()
	if was := o.now[p]; was != lease.Member && lease.Member != "" {
		o.moves, o.moved = o.moves+1, e.Created()
	}
	o.now[p] = lease.Member
	if lease.Member == "" {
		return
	}
	g := grant{p, epoch}
	if other, taken := o.granted[g]; taken && other != lease.Member {
		o.faults = append(o.faults, fmt.Sprintf("partition %s was given to %s and to %s under epoch %d", p, other, lease.Member, epoch))
	}
	o.granted[g] = lease.Member
}

// holder is who a partition is leased to, dead or alive; empty if no one.
func (o *observer) holder(p messages.Partition) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now[p]
}

// held is how many partitions are leased to each member.
func (o *observer) held() map[string]int {
	by := make(map[string]int)
	if o == nil {
		return by
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, member := range o.now {
		if member != "" {
			by[member]++
		}
	}
	return by
}

// writer is who a partition was given to under an epoch; empty if that is not known.
func (o *observer) writer(p messages.Partition, epoch messages.Epoch) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.granted[grant{p, epoch}]
}
