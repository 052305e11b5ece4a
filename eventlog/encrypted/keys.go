package encrypted

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

// Bucket keeps small values by name, a name being tokens with dots between. Reads are never
// stale. Safe for concurrent use.
type Bucket interface {
	// Get returns a value and its revision; revision 0: there is none.
	Get(ctx context.Context, name string) (value []byte, revision uint64, err error)
	// Put stores a value if revision is still that of the newest, else it returns ErrChanged.
	// After any other error it may be stored or not.
	Put(ctx context.Context, name string, value []byte, revision uint64) error
	// Erase removes the value that has the revision from memory and disk. It is no error if
	// that value is gone already, and a newer one is left as it is.
	Erase(ctx context.Context, name string, revision uint64) error
	// List returns all names, sorted.
	List(ctx context.Context) ([]string, error)
}

// ErrChanged is the error of a Put for a revision that is not the newest.
var ErrChanged = errors.New("the value has changed")

// ErrNoKey is wrapped by the errors for what is encrypted with a key that is missing.
var ErrNoKey = messages.ErrNoKey

// ErrOff is wrapped by the errors for what is encrypted when no wrapping key is given.
var ErrOff = errors.New("it is encrypted and this process has no wrapping key: start it with the one that the store was encrypted with")

// checks is the name under which a bucket keeps the marks of its wrapping keys. No agent's key
// has that name.
const checks = "wrapping"

// Keys are the keys of the agents of one store. Make them with [Open]. Safe for
// concurrent use.
type Keys struct {
	bucket Bucket
	ring   []Key

	mu    sync.Mutex
	known map[named]*dataKey            // by agent and id
	write map[messages.AgentID]*dataKey // what new frames are encrypted with
}

type named struct {
	agent messages.AgentID
	id    string
}

// maxCached bounds the number of keys in memory. When it is reached all are dropped, and read
// again as they are needed.
const maxCached = 4096

// entry is a key as the bucket keeps it.
type entry struct {
	ID      string `json:"id"`
	By      string `json:"by"` // the wrapping key's id
	Wrapped []byte `json:"wrapped"`
}

// Open returns the keys in the bucket. The first wrapping key wraps what is new; what any of
// them has wrapped can be read. Wrapping keys that are not those of the store are refused, and
// the bucket is left as it was. A new bucket takes them.
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
		if err != nil && !errors.Is(err, ErrChanged) {
			return nil, fmt.Errorf("store the mark of the wrapping key: %w", err)
		}
	}
	return nil, errors.New("store the mark of the wrapping key: other processes changed the marks 16 times meanwhile")
}

// WrappingKeys returns the ids of the store's wrapping keys; none: it is not encrypted.
func WrappingKeys(ctx context.Context, bucket Bucket) (ids []string, err error) {
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

// name returns the name of an agent's key in the bucket.
func name(a messages.AgentID) string { return a.Tenant + "." + a.Kind + "." + a.Key }

// about returns what a wrapped key is bound to: its agent and id.
func about(a messages.AgentID, id string) string { return a.Full() + "\x00" + id }

// get reads the agent's key from the bucket; nil: there is none.
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

// unwrap returns the key that a value of the bucket holds, and the id of the wrapping key that
// wraps it.
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

// Wrapped returns the agent's key as the bucket keeps it, wrapped; nil: it has none.
func (k *Keys) Wrapped(ctx context.Context, a messages.AgentID) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	value, _, err := k.bucket.Get(ctx, name(a))
	return value, err
}

// writing returns the key to encrypt with, made if there is none.
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
		if errors.Is(err, ErrChanged) {
			continue
		}
		if err == nil {
			k.keep(a, key, true)
		}
		return key, err
	}
	return nil, fmt.Errorf("make a key for %s: %w", a, ErrChanged)
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

// reading returns the key with that id. The error wraps ErrNoKey if it is gone.
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
	if len(k.known) >= maxCached || len(k.write) >= maxCached {
		clear(k.known)
		clear(k.write)
	}
	k.known[named{a, key.id}] = key
	if write {
		k.write[a] = key
	}
}

// forget drops the key to encrypt with from memory: another node may have deleted the agent
// since it was read.
func (k *Keys) forget(a messages.AgentID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.write, a)
}

// Shred erases the agent's key, and reports whether it had one. It calls mine once it has found
// the key, and erases nothing if that returns false.
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

// Rotate wraps every key by the newest wrapping key, which is then the store's only one, and
// returns how many it has wrapped. No process may have an older one as its first any more.
// After an error nothing is lost: all keys can be read with those given, and Rotate can be
// called again.
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
	return wrapped, k.becomeOnly(ctx)
}

// becomeOnly records that the newest wrapping key is the store's only one.
func (k *Keys) becomeOnly(ctx context.Context) error {
	value, err := json.Marshal([]Mark{k.check()})
	if err != nil {
		return err
	}
	for range 3 { // another node may do the same at the same time
		_, revision, err := readChecks(ctx, k.bucket)
		if err != nil {
			return err
		}
		if err := k.bucket.Put(ctx, checks, value, revision); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("record the store's wrapping key: %w", ErrChanged)
}

// rotate wraps one key by the newest wrapping key, and reports whether it was not already.
func (k *Keys) rotate(ctx context.Context, name string) (did bool, err error) {
	a, ok := agentOf(name)
	if !ok {
		return false, nil
	}
	for range 3 { // another node may wrap or delete it at the same time
		value, revision, err := k.bucket.Get(ctx, name)
		if err != nil || revision == 0 {
			return false, err
		}
		key, by, err := k.unwrap(a, value)
		if err != nil || by == k.ring[0].ID() {
			return false, err
		}
		if err := k.rewrap(ctx, a, key, revision); !errors.Is(err, ErrChanged) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("wrap the key of %s again: %w", a, ErrChanged)
}

// check returns the mark of the newest wrapping key.
func (k *Keys) check() Mark { return Mark{k.ring[0].ID(), k.ring[0].wrap([]byte(checks), checks)} }
