package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// TTL is how long a member without a heartbeat is still believed to be there.
const TTL = 3 * time.Second

const (
	heartbeat = TTL / 4
	// heldUp is how long after a node was cut off it may read what was held up meanwhile.
	heldUp = 5 * time.Second
)

// Info is what a member publishes of itself.
type Info struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	// Kinds are those of the agents that it runs, sorted.
	Kinds []string `json:"kinds,omitempty"`
	// Draining reports that it hands its partitions over and takes none.
	Draining bool `json:"draining,omitempty"`
	// Heard is when its newest heartbeat was seen, by this node's clock.
	Heard time.Time `json:"-"`
}

// trust is what this node knows of its own membership. [Ownership.mu] guards it.
type trust struct {
	revision uint64    // of its key; 0: not there
	trusted  time.Time // the end of the trust window
	// reread reports that the leases must be read again, unsure that something may act
	// here for a partition of another owner: the window had ended before a heartbeat.
	reread, unsure bool
	newest         time.Time // when the newest heartbeat succeeded
	// gap is when the newest heartbeat succeeded that came late, before when the one before
	// it did. Zero: none came late.
	gap, before time.Time
}

// inTime reports whether the trust window is open. The wall clock counts, too: the other
// one stands while the machine is suspended.
func (t *trust) inTime() bool {
	now := time.Now()
	return now.Before(t.trusted) && now.Round(0).Before(t.trusted.Round(0))
}

// renewed notes a heartbeat that began at a time and has succeeded.
func (t *trust) renewed(revision uint64, began time.Time) {
	if !t.inTime() { // another incarnation begins
		t.reread, t.unsure = true, true
	}
	t.revision, t.trusted = revision, began.Add(TTL-heartbeat)
	now := time.Now()
	if now.Sub(t.newest) > heartbeat+heartbeat/3 {
		if now.Sub(t.gap) > heldUp || t.before.IsZero() {
			t.before = t.newest
		}
		t.gap = now
	}
	t.newest = now
}

// Trusted reports whether this node may act as a member and as an owner.
func (o *Ownership) Trusted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.unsure && o.inTime()
}

// There returns when what this node reads now was sent at the earliest: when its newest
// heartbeat succeeded or, for a while after one that came late, the one before that,
// because what was held up meanwhile is still being read. It is by the wall clock, which
// runs while the machine is suspended.
func (o *Ownership) There() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.before.IsZero() && time.Since(o.gap) < heldUp {
		return o.before.Round(0)
	}
	return o.newest.Round(0)
}

// Steady reports whether this node was neither frozen nor cut off around a time: what it
// read then was sent then. That is known once a heartbeat after that time has succeeded.
func (o *Ownership) Steady(at time.Time) (steady, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.before.IsZero() || o.gap.Before(at.Add(-heldUp)), o.newest.After(at)
}

// List returns the living members, sorted by id.
func (o *Ownership) List() []Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]Info, 0, len(o.seen))
	for id, m := range o.seen {
		if o.living(id, time.Now()) {
			list = append(list, m.Info)
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Draining reports whether this node hands its partitions over.
func (o *Ownership) Draining() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.self.Draining
}

// Drain has this node take no partitions and hand its own over, or take part again. When
// it returns without an error the others know, or learn it by a later heartbeat.
func (o *Ownership) Drain(ctx context.Context, on bool) error {
	o.mu.Lock()
	o.self.Draining = on
	o.change()
	o.mu.Unlock()
	_ = o.beat(ctx) // else the next one does
	return ctx.Err()
}

// beat has a heartbeat written now, and returns what came of it.
func (o *Ownership) beat(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case o.renew <- done:
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heartbeats renews this node's key until ctx ends, beside the watch, which must not wait
// for it. Nothing else writes that key.
func (o *Ownership) heartbeats(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = o.heartbeat(ctx) // else the next one is in time, or the warning is logged
		case done := <-o.renew:
			done <- o.heartbeat(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// heartbeat renews this node's key. One that is gone, because the server was away or
// another node removed it, is made again: the leases decide what is still this node's.
func (o *Ownership) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*heartbeat) // a slow answer is better than none
	defer cancel()
	began, key := time.Now(), memberKey(o.self.ID)
	o.mu.Lock()
	kv, at := o.members, o.revision
	value, err := json.Marshal(o.self)
	o.mu.Unlock()
	if err != nil || kv == nil { // nothing is joined yet
		return err
	}
	revision, err := put(ctx, kv, key, value, at)
	if errors.Is(err, jetstream.ErrKeyExists) { // an earlier heartbeat without an answer was stored, or the key is gone
		if at, err = natslog.Revision(ctx, o.conn, kv.Bucket(), key); err != nil {
			return err
		}
		if at == 0 {
			o.mu.Lock()
			o.trusted = time.Time{}
			o.mu.Unlock()
			o.cfg.Logger.Warn("this node's membership had lapsed; it joins again", "member", o.self.ID)
		}
		revision, err = put(ctx, kv, key, value, at)
	}
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.renewed(revision, began)
	if o.warning != nil {
		o.warning.Stop()
	}
	o.warning = time.AfterFunc(time.Until(o.trusted), o.warn)
	return nil
}

// put writes a key in the place of a revision of it; 0: in that of any.
func put(ctx context.Context, kv jetstream.KeyValue, key string, value []byte, at uint64) (uint64, error) {
	if at == 0 {
		return kv.Put(ctx, key, value)
	}
	return kv.Update(ctx, key, value, at)
}

// warn is called when the trust window ends: a publish may wait for as long as a frozen
// connection does.
func (o *Ownership) warn() {
	o.cfg.Logger.Warn("this node's membership was not renewed in time: it owns nothing until it is", "member", o.self.ID)
}

// remove ends this node's membership. It is not called while heartbeats run.
func (o *Ownership) remove() {
	if o.revision != 0 {
		o.warning.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), heartbeat)
		defer cancel()
		_ = o.members.Delete(ctx, memberKey(o.self.ID)) // else it expires
		o.revision = 0
	}
}

func memberKey(id string) string { return "m." + id }

func (o *Ownership) pingSubject(id string) string { return "_actor." + o.cfg.Root + ".ping." + id }

func (o *Ownership) answerPing(msg *nats.Msg) {
	if (messages.Subjects{Root: o.cfg.Root}).AllowReply("", msg.Reply) == nil {
		_ = msg.Respond(nil)
	}
}
