package actors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// attic is a log that keeps every snapshot that was ever left in it, and gives
// any of them, a damaged one, none or an error, as its dice have it. Pages of
// ids, too, are there or not.
type attic struct {
	eventlog.Log

	mu    sync.Mutex
	dice  *rand.Rand
	kept  map[messages.AgentID]map[string][][]byte
	given map[string]int // undamaged ones, by the beginning of their names
	tidy  bool
}

func newAttic(log eventlog.Log, dice *rand.Rand) *attic {
	return &attic{Log: log, dice: dice, kept: make(map[messages.AgentID]map[string][][]byte), given: make(map[string]int)}
}

var errAttic = errors.New("the attic is locked")

// tidied makes it keep and give everything undamaged, and the newest of a name.
func (k *attic) tidied() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tidy = true
}

// only makes it give that snapshot in place of all others of the name.
func (k *attic) only(a messages.AgentID, name string, snapshot []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[a][name] = [][]byte{snapshot}
}

// PutSnapshot keeps a snapshot, or fails.
func (k *attic) PutSnapshot(_ context.Context, a messages.AgentID, name string, snapshot []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.tidy && k.dice.IntN(10) == 0 {
		return errAttic
	}
	if k.kept[a] == nil {
		k.kept[a] = make(map[string][][]byte)
	}
	k.kept[a][name] = append(k.kept[a][name], bytes.Clone(snapshot))
	return nil
}

// Snapshot gives one.
func (k *attic) Snapshot(_ context.Context, a messages.AgentID, name string) ([]byte, error) {
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
		return nil, errAttic
	case n == 1:
		return nil, nil
	case n == 2:
		b[k.dice.IntN(len(b))] ^= 1 << k.dice.IntN(8)
	case n == 3:
		b = b[:k.dice.IntN(len(b))]
	case n == 4: // another object of the agent's
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

// versions are all snapshots of that name.
func (k *attic) versions(a messages.AgentID, name string) [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[a][name]
}

// differ says where two loads of one agent differ; empty: nowhere.
func differ(a, b actors.Activation) string {
	for _, l := range []*actors.Activation{&a, &b} {
		l.Resumed = false
		l.State.History.Digest() // which is kept, once it was asked for
		im, err := l.State.Image()
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
