package encrypted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Mark identifies a wrapping key without revealing it.
type Mark struct {
	ID    string `json:"id"`
	Check []byte `json:"check"`
}

// Copied is the key of an agent in a copy of a bucket. It is wrapped as it was there, and so of
// no use without the wrapping key.
type Copied struct {
	// Agent is the address in full.
	Agent   string `json:"agent"`
	ID      string `json:"id"`
	By      string `json:"by"` // the wrapping key's id
	Wrapped []byte `json:"wrapped"`
}

// Of returns the agent whose key it is.
func (c Copied) Of() (messages.AgentID, error) {
	a, err := messages.ParseAgentID(c.Agent)
	if err == nil && a.Full() != c.Agent {
		err = messages.Refuse(messages.BadInput, "%q is no address in full", c.Agent)
	}
	return a, err
}

// Marks returns the marks of the bucket's wrapping keys; none: the store is not encrypted.
func Marks(ctx context.Context, bucket Bucket) ([]Mark, error) {
	list, _, err := readChecks(ctx, bucket)
	return list, err
}

// Fits returns an error unless one of the wrapping keys has one of the marks.
func Fits(marks []Mark, ring ...Key) error { return (&Keys{ring: ring}).fits(marks) }

// Agents returns the agents that have a key in the bucket, sorted.
func Agents(ctx context.Context, bucket Bucket) (list []messages.AgentID, err error) {
	names, err := bucket.List(ctx)
	for _, n := range names {
		if a, ok := agentOf(n); ok {
			list = append(list, a)
		}
	}
	return list, err
}

// agentOf returns the agent whose key has that name.
func agentOf(name string) (a messages.AgentID, ok bool) {
	t := strings.Split(name, ".")
	if len(t) != 3 {
		return a, false
	}
	a = messages.AgentID{Tenant: t[0], Kind: t[1], Key: t[2]}
	return a, a.Validate() == nil
}

// Copy returns the agent's key as the bucket keeps it, and its revision; 0: it has none.
func Copy(ctx context.Context, bucket Bucket, a messages.AgentID) (c Copied, revision uint64, err error) {
	value, revision, err := bucket.Get(ctx, name(a))
	if err != nil || revision == 0 {
		return Copied{}, 0, err
	}
	var e entry
	if err := json.Unmarshal(value, &e); err != nil || e.ID == "" {
		return Copied{}, revision, fmt.Errorf("the key of %s is damaged: it cannot be read in its bucket", a)
	}
	return Copied{Agent: a.Full(), ID: e.ID, By: e.By, Wrapped: e.Wrapped}, revision, nil
}

// Unwraps returns an error unless one of the wrapping keys unwraps the key.
func (c Copied) Unwraps(ring ...Key) error {
	a, err := c.Of()
	if err != nil {
		return err
	}
	_, err = c.secret(a, ring)
	return err
}

func (c Copied) secret(a messages.AgentID, ring []Key) ([]byte, error) {
	i := slices.IndexFunc(ring, func(k Key) bool { return k.ID() == c.By })
	if i < 0 {
		return nil, fmt.Errorf("the key of %s is wrapped by %s, which is not given: give it behind the newest one", a, c.By)
	}
	secret, err := ring[i].unwrap(c.Wrapped, about(a, c.ID))
	if err != nil {
		return nil, fmt.Errorf("the key of %s is damaged: wrapping key %s does not unwrap it", a, c.By)
	}
	return secret, nil
}

// Putter puts copied keys back into a bucket. Make it with [PutBack].
type Putter struct {
	bucket Bucket
	ring   []Key
	by     []string // ids of the store's wrapping keys
}

// PutBack returns a Putter for keys that were copied from a bucket with the marks. A bucket
// without marks takes them over. With wrapping keys each key is unwrapped, and wrapped again by
// the first; wrong ones are refused and the bucket is left as it was. Without wrapping keys, keys
// are put back as they are.
func PutBack(ctx context.Context, bucket Bucket, marks []Mark, ring ...Key) (*Putter, error) {
	if len(marks) == 0 {
		return nil, errors.New("the copy names no wrapping key")
	}
	now, revision, err := readChecks(ctx, bucket)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]Mark{marks, now} {
		if err := Fits(list, ring...); err != nil && len(ring) > 0 {
			return nil, err
		}
	}
	if len(now) == 0 {
		value, err := json.Marshal(marks)
		if err == nil {
			err = bucket.Put(ctx, checks, value, revision)
		}
		if errors.Is(err, ErrChanged) { // another process was first
			return PutBack(ctx, bucket, marks, ring...)
		}
		if err != nil {
			return nil, fmt.Errorf("store the marks of the wrapping keys: %w", err)
		}
		now = marks
	}
	p := &Putter{bucket: bucket, ring: ring}
	for _, m := range now {
		p.by = append(p.by, m.ID)
	}
	if len(ring) > 0 {
		_, err = Open(ctx, bucket, ring...) // it adds the newest one
	}
	return p, err
}

// Put is what became of a copied key.
type Put int

// What became of a copied key.
const (
	Restored Put = iota + 1 // it is in the bucket again
	Present                 // the bucket had it already
	Replaced                // the agent has another key, since it was deleted and created again
	Unused                  // nothing of the agent's present life is encrypted with it
)

// Put puts a key back, never over another that can be read. mine reports whether the agent's
// present life is encrypted with it. It is called before and after, since a delete at the same
// time may have found no key to erase.
func (p *Putter) Put(ctx context.Context, c Copied, mine func(context.Context) (bool, error)) (Put, error) {
	a, err := c.Of()
	if err != nil {
		return 0, err
	}
	value, err := p.value(a, c)
	if err != nil {
		return 0, err
	}
	if ok, err := mine(ctx); err != nil || !ok {
		return Unused, err
	}
	put := p.bucket.Put(ctx, name(a), value, 0)
	if errors.Is(put, ErrChanged) {
		became, revision, err := p.present(ctx, a, c)
		if err != nil || became != Restored {
			return became, err
		}
		put = p.bucket.Put(ctx, name(a), value, revision)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit) // what was begun is ended
	defer cancel()
	ok, err := mine(ctx)
	switch {
	case err == nil && ok && put == nil:
		return Restored, nil
	case err == nil && !ok || err != nil && put == nil: // nothing is lost: the copy has it
		return Unused, errors.Join(err, p.erase(ctx, a, c))
	}
	return 0, fmt.Errorf("put the key of %s back, outcome unknown: %w", a, errors.Join(put, err))
}

// present returns what becomes of a key for which the bucket has a value: Restored if the value
// is damaged, or is this key and no wrapping key unwraps it.
func (p *Putter) present(ctx context.Context, a messages.AgentID, c Copied) (became Put, revision uint64, err error) {
	have, revision, err := Copy(ctx, p.bucket, a)
	switch {
	case err != nil && revision == 0:
		return 0, 0, err
	case err != nil:
		return Restored, revision, nil
	case have.ID != c.ID:
		return Replaced, 0, nil
	case len(p.ring) > 0 && have.Unwraps(p.ring...) != nil:
		return Restored, revision, nil
	}
	return Present, 0, nil
}

// value returns a key as the bucket keeps it, wrapped by the newest wrapping key if there is
// one here.
func (p *Putter) value(a messages.AgentID, c Copied) ([]byte, error) {
	if len(p.ring) == 0 {
		if !slices.Contains(p.by, c.By) {
			return nil, fmt.Errorf("the key of %s is wrapped by %s, which is no longer a wrapping key of the store: give the store's wrapping key, and %s behind it", a, c.By, c.By)
		}
		return json.Marshal(entry{c.ID, c.By, c.Wrapped})
	}
	secret, err := c.secret(a, p.ring)
	if err != nil {
		return nil, err
	}
	if c.By == p.ring[0].ID() {
		return json.Marshal(entry{c.ID, c.By, c.Wrapped})
	}
	return json.Marshal(entry{c.ID, p.ring[0].ID(), p.ring[0].wrap(secret, about(a, c.ID))})
}

// endLimit is the time to end what was begun when the caller has given up.
const endLimit = 10 * time.Second

// erase erases a key, whichever wrapping key it is wrapped by now.
func (p *Putter) erase(ctx context.Context, a messages.AgentID, c Copied) error {
	have, revision, err := Copy(ctx, p.bucket, a)
	if err == nil && revision != 0 && have.ID == c.ID {
		err = p.bucket.Erase(ctx, name(a), revision)
	}
	if err != nil {
		return fmt.Errorf("the key of %s may be in the bucket though it should not, and could not be erased: put keys back again, or see what `reprise doctor` says: %w", a, err)
	}
	return nil
}
