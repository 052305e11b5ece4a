package sealed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// Bucket keeps small values by name, a name being tokens with dots between. What
// it gives is never stale. Safe for concurrent use.
type Bucket interface {
	// Get gives a value and its revision; revision 0: there is none.
	Get(ctx context.Context, name string) (value []byte, revision uint64, err error)
	// Put stores a value if revision is still that of the newest. ErrTaken says
	// that it is not; after any other error it may be stored or not.
	Put(ctx context.Context, name string, value []byte, revision uint64) error
	// Erase removes the value that has the revision so that nothing stays of it. A
	// value that has gone already, or is a newer one, is left as it is.
	Erase(ctx context.Context, name string, revision uint64) error
	// List gives all names, sorted.
	List(ctx context.Context) ([]string, error)
}

// ErrTaken says that another value is in the bucket than the one expected.
var ErrTaken = errors.New("the value has changed")

// ErrNoKey is wrapped by the errors for what is sealed with a key that is missing.
var ErrNoKey = messages.ErrNoKey

// ErrOff is wrapped by the errors for what is sealed when no wrapping key is given.
var ErrOff = errors.New("it is sealed and this process has no wrapping key: start it with the one that the store was encrypted with")

// checks is the name under which a bucket keeps what tells wrapping keys from
// others. No agent has it.
const checks = "wrapping"

// Keys are the keys of the agents of one store. Make them with [Open]. Safe for
// concurrent use.
type Keys struct {
	bucket Bucket
	ring   []Key

	mu    sync.Mutex
	known map[named]*dataKey            // by agent and id
	write map[messages.AgentID]*dataKey // what to seal with
}

type named struct {
	agent messages.AgentID
	id    string
}

// most is how many keys are kept in memory. Those that are needed again are read
// again.
const most = 4096

// entry is a key as the bucket keeps it.
type entry struct {
	ID      string `json:"id"`
	By      string `json:"by"` // the wrapping key's
	Wrapped []byte `json:"wrapped"`
}

// Open gives the keys in the bucket. The first wrapping key wraps what is new;
// what any of them has wrapped can be read. Keys that are not those of the store
// are refused, and the bucket is left as it was. A bucket that is new becomes
// theirs.
func Open(ctx context.Context, bucket Bucket, ring ...Key) (*Keys, error) {
	if len(ring) == 0 {
		return nil, errors.New("encryption needs a wrapping key")
	}
	k := &Keys{bucket: bucket, ring: ring, known: make(map[named]*dataKey), write: make(map[messages.AgentID]*dataKey)}
	for range 16 { // other nodes may do the same
		list, revision, err := readChecks(ctx, bucket)
		if err != nil {
			return nil, err
		}
		if err := k.fits(list); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(c Mark) bool { return c.ID == ring[0].ID() }) {
			return k, nil
		}
		list = append(list, k.check())
		value, err := json.Marshal(list)
		if err == nil {
			err = bucket.Put(ctx, checks, value, revision)
		}
		if err != nil && !errors.Is(err, ErrTaken) {
			return nil, fmt.Errorf("note the wrapping key: %w", err)
		}
	}
	return nil, errors.New("note the wrapping key: the bucket changes all the time")
}

// Encrypted says whether the bucket belongs to a store that is encrypted, and
// with which wrapping keys.
func Encrypted(ctx context.Context, bucket Bucket) (ids []string, err error) {
	list, _, err := readChecks(ctx, bucket)
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids, err
}

func readChecks(ctx context.Context, bucket Bucket) (list []Mark, revision uint64, err error) {
	value, revision, err := bucket.Get(ctx, checks)
	if err == nil && revision != 0 {
		err = json.Unmarshal(value, &list)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read which wrapping keys the store has: %w", err)
	}
	return list, revision, nil
}

// fits refuses a ring that holds none of the store's wrapping keys.
func (k *Keys) fits(list []Mark) error {
	if len(list) == 0 {
		return nil
	}
	var want, have []string
	for _, c := range list {
		for _, key := range k.ring {
			if c.ID != key.ID() {
				continue
			}
			if _, err := key.unwrap(c.Check, checks); err != nil {
				return fmt.Errorf("the check of wrapping key %s is damaged: %w", c.ID, err)
			}
			return nil
		}
		want = append(want, c.ID)
	}
	for _, key := range k.ring {
		have = append(have, key.ID())
	}
	return fmt.Errorf("the wrapping key is not the store's: it was encrypted under %s, this process has %s; start it with the right key, or to rotate give the new key first and the old one behind it",
		strings.Join(want, " or "), strings.Join(have, " and "))
}

// name is an agent's in the bucket.
func name(a messages.AgentID) string { return a.Tenant + "." + a.Kind + "." + a.Key }

// about binds a wrapped key to its agent and id.
func about(a messages.AgentID, id string) string { return a.Full() + "\x00" + id }

// get reads the agent's key from the bucket; nil if there is none.
func (k *Keys) get(ctx context.Context, a messages.AgentID) (*dataKey, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	value, revision, err := k.bucket.Get(ctx, name(a))
	if err != nil || revision == 0 {
		return nil, err
	}
	key, by, err := k.unwrap(a, value)
	if err == nil && by != k.ring[0].ID() {
		_ = k.rewrap(ctx, a, key, revision) // else the next reader does it
	}
	return key, err
}

// unwrap gives the key that a value of the bucket holds, and by which wrapping
// key it is wrapped.
func (k *Keys) unwrap(a messages.AgentID, value []byte) (key *dataKey, by string, err error) {
	var e entry
	if err := json.Unmarshal(value, &e); err != nil {
		return nil, "", fmt.Errorf("the key of %s is damaged: %w: %w", a, messages.ErrLocked, err)
	}
	i := slices.IndexFunc(k.ring, func(key Key) bool { return key.ID() == e.By })
	if i < 0 {
		return nil, "", fmt.Errorf("the key of %s is wrapped by %s, which this process does not have: %w: give it behind the newest one", a, e.By, messages.ErrLocked)
	}
	secret, err := k.ring[i].unwrap(e.Wrapped, about(a, e.ID))
	if err != nil {
		return nil, "", fmt.Errorf("the key of %s is damaged: %w: %w", a, messages.ErrLocked, err)
	}
	return newDataKey(e.ID, secret), e.By, nil
}

// rewrap wraps a key by the newest wrapping key.
func (k *Keys) rewrap(ctx context.Context, a messages.AgentID, key *dataKey, revision uint64) error {
	value, err := k.entry(a, key)
	if err != nil {
		return err
	}
	return k.bucket.Put(ctx, name(a), value, revision)
}

func (k *Keys) entry(a messages.AgentID, key *dataKey) ([]byte, error) {
	return json.Marshal(entry{key.id, k.ring[0].ID(), k.ring[0].wrap(key.secret, about(a, key.id))})
}

// Wrapped is the agent's key as the bucket keeps it, wrapped; nil if it has none.
func (k *Keys) Wrapped(ctx context.Context, a messages.AgentID) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	value, _, err := k.bucket.Get(ctx, name(a))
	return value, err
}

// writing is the key to seal with, made if there is none.
func (k *Keys) writing(ctx context.Context, a messages.AgentID) (*dataKey, error) {
	k.mu.Lock()
	key := k.write[a]
	k.mu.Unlock()
	if key != nil {
		return key, nil
	}
	for range 4 { // another node may make it at the same time
		key, err := k.get(ctx, a)
		if err == nil && key == nil {
			key, err = k.make(ctx, a)
		}
		if errors.Is(err, ErrTaken) {
			continue
		}
		if err == nil {
			k.keep(a, key, true)
		}
		return key, err
	}
	return nil, fmt.Errorf("make a key for %s: %w", a, ErrTaken)
}

func (k *Keys) make(ctx context.Context, a messages.AgentID) (*dataKey, error) {
	b := make([]byte, 8+32)
	_, _ = rand.Read(b) // never fails
	key := newDataKey(hex.EncodeToString(b[:8]), b[8:])
	value, err := k.entry(a, key)
	if err != nil {
		return nil, err
	}
	return key, k.bucket.Put(ctx, name(a), value, 0)
}

// reading is the key with that id. An error wraps ErrNoKey if it is gone.
func (k *Keys) reading(ctx context.Context, a messages.AgentID, id string) (*dataKey, error) {
	k.mu.Lock()
	key := k.known[named{a, id}]
	k.mu.Unlock()
	if key != nil {
		return key, nil
	}
	key, err := k.get(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case key == nil || key.id != id:
		return nil, fmt.Errorf("key %s of %s: %w", id, a, ErrNoKey)
	}
	k.keep(a, key, false)
	return key, nil
}

func (k *Keys) keep(a messages.AgentID, key *dataKey, write bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= most || len(k.write) >= most {
		clear(k.known)
		clear(k.write)
	}
	k.known[named{a, key.id}] = key
	if write {
		k.write[a] = key
	}
}

// forget has the key to seal with read again: another node may have deleted the
// agent since.
func (k *Keys) forget(a messages.AgentID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.write, a)
}

// Shred erases the key that the agent has now, and says whether it had one. It
// asks mine once it has found it, and erases nothing if that says no.
func (k *Keys) Shred(ctx context.Context, a messages.AgentID, mine func(context.Context) (bool, error)) (had bool, err error) {
	if err := a.Validate(); err != nil {
		return false, err
	}
	_, revision, err := k.bucket.Get(ctx, name(a))
	if err != nil {
		return false, err
	}
	if ok, err := mine(ctx); err != nil || !ok {
		return false, err
	}
	if revision != 0 {
		if err := k.bucket.Erase(ctx, name(a), revision); err != nil {
			return false, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.write, a)
	for n := range k.known {
		if n.agent == a {
			delete(k.known, n)
		}
	}
	return revision != 0, nil
}

// Rotate wraps every key by the newest wrapping key, and from then on the store
// knows only that one. It says how many it has wrapped anew. No process may go on
// with an older one as its first. After an error nothing is lost: all keys are
// still readable with those given, and it can be done again.
func (k *Keys) Rotate(ctx context.Context) (wrapped int, err error) {
	names, err := k.bucket.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		did, err := k.rotate(ctx, n)
		if err != nil {
			return wrapped, err
		}
		if did {
			wrapped++
		}
	}
	_, revision, err := readChecks(ctx, k.bucket)
	if err != nil {
		return wrapped, err
	}
	value, err := json.Marshal([]Mark{k.check()})
	if err != nil {
		return wrapped, err
	}
	return wrapped, k.bucket.Put(ctx, checks, value, revision)
}

// rotate wraps one key by the newest wrapping key, unless it is.
func (k *Keys) rotate(ctx context.Context, name string) (did bool, err error) {
	a, is := agentOf(name)
	if !is {
		return false, nil
	}
	value, revision, err := k.bucket.Get(ctx, name)
	if err != nil || revision == 0 {
		return false, err
	}
	key, by, err := k.unwrap(a, value)
	if err != nil || by == k.ring[0].ID() {
		return false, err
	}
	return true, k.rewrap(ctx, a, key, revision)
}

// check is what the newest wrapping key is known by.
func (k *Keys) check() Mark { return Mark{k.ring[0].ID(), k.ring[0].wrap([]byte(checks), checks)} }
