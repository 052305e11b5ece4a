package ownership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// watch shows both buckets from a time on.
type watch struct {
	members, leases *bucket
	end             context.CancelFunc
}

// bucket is one bucket and what is shown of it.
type bucket struct {
	kv      jetstream.KeyValue
	stream  jetstream.Stream
	updates <-chan jetstream.KeyValueEntry
	past    []jetstream.KeyValueEntry // what it held when the watch began
	newest  uint64                    // the highest revision that was shown, or was there when the watch began
	behind  bool                      // the bucket had more at the last check, and nothing was shown since
}

// open finds or makes the buckets, renews this node's key and reads both buckets. ctx bounds
// that; the watch continues until run ends.
func (o *Ownership) open(ctx, run context.Context) (w *watch, err error) {
	run, end := context.WithCancel(run)
	bound := context.AfterFunc(ctx, end)
	defer func() {
		if !bound() || err != nil {
			end()
		}
	}()
	w = &watch{end: end}
	// A server that comes back has forgotten the members, which is why their bucket is in
	// memory: their keys expire.
	w.members, err = o.find(run, jetstream.KeyValueConfig{
		Bucket: o.cfg.Root + "_members", Description: "reprise: nodes that are alive",
		TTL: TTL, LimitMarkerTTL: time.Second, Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		return nil, err
	}
	w.leases, err = o.find(run, jetstream.KeyValueConfig{Bucket: o.cfg.Root + "_leases", Description: "reprise: who owns which partition", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.members, o.leases = w.members.kv, w.leases.kv
	o.session++ // what is written from now on is shown by the new watch
	o.mu.Unlock()
	if err := o.beat(run); err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.reread = false
	o.mu.Unlock()
	for _, b := range []*bucket{w.members, w.leases} {
		if err := b.read(run); err != nil {
			return nil, fmt.Errorf("bucket %s: %w", b.kv.Bucket(), err)
		}
	}
	o.replace(w)
	return w, nil
}

// find never changes a bucket that exists: its replicas are the administrator's.
func (o *Ownership) find(ctx context.Context, want jetstream.KeyValueConfig) (*bucket, error) {
	kv, err := o.cfg.JetStream.KeyValue(ctx, want.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		want.History, want.Replicas = 1, max(o.cfg.Replicas, 1)
		if kv, err = o.cfg.JetStream.CreateKeyValue(ctx, want); errors.Is(err, jetstream.ErrBucketExists) { // another node was first
			kv, err = o.cfg.JetStream.KeyValue(ctx, want.Bucket)
		}
	}
	b := &bucket{kv: kv}
	if err == nil {
		b.stream, err = o.cfg.JetStream.Stream(ctx, "KV_"+want.Bucket)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", want.Bucket, err)
	}
	b.newest = b.stream.CachedInfo().State.LastSeq
	if age := b.stream.CachedInfo().Config.MaxAge; want.TTL == 0 && age != 0 {
		return nil, fmt.Errorf("bucket %s cannot be trusted: max_age is %v, set it to 0: leases would expire while their owners live", want.Bucket, age)
	}
	return b, nil
}

const damaged = "if this lasts, the newest message in its stream is damaged: remove that stream, it is made again"

// read begins to watch a bucket, and reads what it holds.
func (b *bucket) read(ctx context.Context) error {
	watcher, err := b.kv.WatchAll(ctx)
	if err != nil {
		return err
	}
	b.updates = watcher.Updates()
	for {
		select {
		case e := <-b.updates:
			if e == nil {
				return ctx.Err()
			}
			b.newest = max(b.newest, e.Revision())
			b.past = append(b.past, e)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", damaged, context.DeadlineExceeded)
		}
	}
}

// replace puts what a new watch has read in the place of what the one before has shown, but
// for what this node has written since. Members that it does not show have TTL to come back.
func (o *Ownership) replace(w *watch) {
	o.mu.Lock()
	o.steady = time.Now()
	var before [messages.Partitions]lease
	for p := range o.partitions {
		before[p] = o.partitions[p].lease
	}
	for p := range o.partitions {
		if at := &o.partitions[p]; at.wrote != o.session {
			at.lease = lease{}
		}
	}
	for _, e := range w.members.past {
		o.showMember(e, time.Now())
	}
	for _, e := range w.leases.past {
		o.showLease(e)
	}
	var moved []messages.Partition
	for p := range o.partitions {
		if o.partitions[p].lease != before[p] {
			moved = append(moved, messages.Partition(p))
		}
	}
	o.change()
	o.mu.Unlock()
	for _, p := range moved {
		o.cfg.Moved(p)
	}
}

// run plans on what is watched until ctx ends; a watch that was lost is begun again.
func (o *Ownership) run(ctx context.Context, w *watch) {
	connected := o.conn.StatusChanged(nats.CONNECTED)
	defer o.conn.RemoveStatusListener(connected)
	ticker := time.NewTicker(heartbeat / 3)
	defer ticker.Stop()
	for {
		err := o.follow(ctx, w, connected, ticker.C)
		w.end()
		for err != nil && ctx.Err() == nil {
			o.cfg.Logger.Warn("members and leases are read again", "because", err)
			within, cancel := context.WithTimeout(ctx, TTL)
			if w, err = o.open(within, ctx); err != nil {
				<-ticker.C
			}
			cancel()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// follow plans on what a watch shows. Its error is why another is needed.
func (o *Ownership) follow(ctx context.Context, w *watch, connected <-chan nats.Status, ticks <-chan time.Time) (err error) {
	for n := 0; err == nil; {
		select {
		case e, ok := <-w.members.updates:
			err = o.show(w.members, e, ok)
		case e, ok := <-w.leases.updates:
			err = o.show(w.leases, e, ok)
		case _, ok := <-connected:
			if ok {
				return errors.New("the connection was made again")
			}
			connected = nil
		case <-ticks:
			o.poke()
			if n++; n%6 == 0 {
				err = errors.Join(w.members.check(ctx), w.leases.check(ctx))
			}
		case <-o.wake:
			if len(w.members.updates)+len(w.leases.updates) > 0 { // first everything that is known
				o.poke()
				continue
			}
			err = o.carryOut()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// show takes in what the watch has shown of a bucket.
func (o *Ownership) show(b *bucket, e jetstream.KeyValueEntry, ok bool) error {
	switch {
	case !ok:
		return errors.New("the watch was closed")
	case e == nil:
		return nil
	}
	b.newest, b.behind = max(b.newest, e.Revision()), false
	o.mu.Lock()
	if b.kv == o.members {
		if o.showMember(e, time.Now()) {
			o.change()
		}
		o.mu.Unlock()
		return nil
	}
	p, changed := o.showLease(e)
	o.change()
	o.mu.Unlock()
	if changed {
		o.cfg.Moved(p)
	}
	return nil
}

// check looks whether a bucket is still there, and whether what was written to it was shown.
// The consumer of a watch has one copy: where that dies with its server the library waits
// for ten seconds, and where the server forgot the bucket, for revisions that come much later.
func (b *bucket) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	created := b.stream.CachedInfo().Created
	is, err := b.stream.Info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), err == nil && (!is.Created.Equal(created) || is.State.LastSeq < b.newest):
		return fmt.Errorf("bucket %s is not the one it was", b.kv.Bucket())
	case err != nil:
		return nil // a server that does not answer is no reason to give anything up
	}
	again := b.behind
	if b.behind = is.State.LastSeq > b.newest; again && b.behind {
		return fmt.Errorf("bucket %s: its watch shows nothing though keys have changed: %s", b.kv.Bucket(), damaged)
	}
	return nil
}
