package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/cluster/ownership"
)

// kinds are the kinds of agents that other members of the cluster define. The
// zero value knows of no members yet. Safe for concurrent use.
type kinds struct {
	self string

	mu   sync.Mutex
	list func() []ownership.Info
	// until is how long any kind may still turn out to be known.
	until time.Time
	seen  map[string]time.Time // when another member last defined a kind
}

const (
	// kindGrace is how long a kind counts as known after the last member that
	// defines it has gone: as long as a node may take to be started again.
	kindGrace = 30 * time.Second
	// kindsToCome is how long a node waits for others to come before it says that
	// a kind is unknown: those that are starting with it.
	kindsToCome = ownership.TTL
)

// follow has the members listed by list. They must be looked at now and then.
func (k *kinds) follow(list func() []ownership.Info) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list, k.until = list, time.Now().Add(kindsToCome)
}

func (k *kinds) look(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		return
	}
	if k.seen == nil {
		k.seen = make(map[string]time.Time)
	}
	for _, m := range k.list() {
		if m.ID == k.self {
			continue
		}
		for _, kind := range m.Kinds {
			k.seen[kind] = now
		}
	}
}

// elsewhere reports whether a member that lives defines the kind.
func (k *kinds) elsewhere(kind string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list != nil && slices.ContainsFunc(k.list(), func(m ownership.Info) bool { return m.ID != k.self && slices.Contains(m.Kinds, kind) })
}

// expected reports whether a member defines the kind, has defined it until a moment
// ago, or may still come and do so.
func (k *kinds) expected(kind string) bool {
	now := time.Now()
	k.look(now)
	k.mu.Lock()
	defer k.mu.Unlock()
	last, known := k.seen[kind]
	return k.list == nil || now.Before(k.until) || known && now.Sub(last) < kindGrace
}
