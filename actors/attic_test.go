package actors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// faultySnapshots keeps every snapshot that was ever stored in it, removed or
// not. A read returns one of them at random, or a damaged one, none, or an error, as dice
// decides.
type faultySnapshots struct {
	mu   sync.Mutex
	dice *rand.Rand
	kept map[messages.AgentID]map[string][][]byte
	// held are the snapshots that were not removed, by agent and name, with the host that
	// stored each.
	held  map[messages.AgentID]map[string]left
	count uint64         // number of snapshots stored so far
	given map[string]int // undamaged snapshots that were returned, by the first part of their names
	slow  bool           // some snapshots are stored late
	tidy  bool
}

func newFaultySnapshots(dice *rand.Rand) *faultySnapshots {
	return &faultySnapshots{dice: dice, kept: make(map[messages.AgentID]map[string][][]byte), held: make(map[messages.AgentID]map[string]left), given: make(map[string]int)}
}

var errSnapshot = errors.New("injected snapshot failure")

// tidied makes the log return only undamaged snapshots, and the newest of each name.
func (k *faultySnapshots) tidied() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tidy = true
}

// only replaces all snapshots of the name with the given one.
func (k *faultySnapshots) only(a messages.AgentID, name string, snapshot []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[a][name] = [][]byte{snapshot}
}

// PutSnapshot stores a snapshot at once or late, or fails.
func (k *faultySnapshots) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	if !k.tidy {
		switch n := k.dice.IntN(20); {
		case n == 0:
			return errSnapshot
		case n == 1:
			err = errSnapshot // fails although it is stored
		case n < 4 && k.slow:
			pause := time.Duration(k.dice.IntN(3000)) * time.Millisecond
			if n == 2 {
				err = errSnapshot
			}
			k.mu.Unlock()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			k.mu.Lock()
		}
	}
	if k.kept[a] == nil {
		k.kept[a] = make(map[string][][]byte)
	}
	if k.held[a] == nil {
		k.held[a] = make(map[string]left)
	}
	k.kept[a][name] = append(k.kept[a][name], bytes.Clone(snapshot))
	k.count++
	by, _ := ctx.Value(puts{}).(*host)
	k.held[a][name] = left{by, k.count}
	return err
}

// puts is the context key of the host that stores a snapshot.
type puts struct{}

// PutSnapshot stores a snapshot under a context that names the host.
func (h *host) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	return h.Store.PutSnapshot(context.WithValue(ctx, puts{}, h), a, name, snapshot)
}

// left is a snapshot that was not removed.
type left struct {
	by *host
	at uint64
}

// left returns the names of an agent's snapshots that owner stored. Those of replaced hosts do
// not count: they may arrive after the owner has removed late ones.
func (k *faultySnapshots) left(a messages.AgentID, owner *host) (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, l := range k.held[a] {
		if l.by == owner {
			names = append(names, name)
		}
	}
	return names
}

// ListSnapshots returns the names of the snapshots that were not removed.
func (k *faultySnapshots) ListSnapshots(_ context.Context, a messages.AgentID) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.held[a])), nil
}

// LastSnapshot returns the count of snapshots stored here.
func (k *faultySnapshots) LastSnapshot(context.Context, messages.AgentID) (uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count, nil
}

// RemoveSnapshots removes an agent's snapshots, or fails. Reads may still return removed ones:
// a purge does not fence.
func (k *faultySnapshots) RemoveSnapshots(_ context.Context, a messages.AgentID, upto uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.tidy && k.dice.IntN(10) == 0 {
		return errSnapshot
	}
	maps.DeleteFunc(k.held[a], func(_ string, l left) bool { return l.at <= upto })
	return nil
}

// Snapshot returns one of the stored snapshots, or a fault.
func (k *faultySnapshots) Snapshot(_ context.Context, a messages.AgentID, name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.kept[a][name]
	if len(all) == 0 {
		return nil, nil
	}
	if k.tidy {
		return bytes.Clone(all[len(all)-1]), nil
	}
	b := bytes.Clone(all[k.dice.IntN(len(all))])
	switch n := k.dice.IntN(16); {
	case n == 0:
		return nil, errSnapshot
	case n == 1:
		return nil, nil
	case n == 2:
		b[k.dice.IntN(len(b))] ^= 1 << k.dice.IntN(8)
	case n == 3:
		b = b[:k.dice.IntN(len(b))]
	case n == 4: // another object of the same agent
		for _, other := range []string{turn.SnapshotName(), "ids-1-0"} {
			if list := k.kept[a][other]; other != name && len(list) > 0 {
				b = bytes.Clone(list[0])
			}
		}
	default:
		kind, _, _ := strings.Cut(name, "-")
		k.given[kind]++
	}
	return b, nil
}

// versions returns all snapshots of that name.
func (k *faultySnapshots) versions(a messages.AgentID, name string) [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[a][name]
}

// differ describes the first difference between two loads of an agent; it is empty if there is
// none.
func differ(a, b actors.Activation) string {
	for _, l := range []*actors.Activation{&a, &b} {
		l.Resumed = false
		l.State.History.Digest() // computed on first use and kept
		im, err := l.State.Snapshot()
		if err != nil {
			return err.Error()
		}
		if l.State, err = im.State(); err != nil {
			return err.Error()
		}
		if len(l.Replies) == 0 {
			l.Replies = nil
		}
		if len(l.Ended) == 0 {
			l.Ended = nil
		}
	}
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return fmt.Sprintf("%+v %+v\n%+v %+v", a, *a.State, b, *b.State)
}
