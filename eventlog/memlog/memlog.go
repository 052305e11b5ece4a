// Package memlog keeps the event log in memory: the same promises as natslog
// but for surviving the process. Use [New] in tests, and to try things out.
//
// It keeps bytes, not structures, and checks them on each read, so that what
// works here works with a real log.
package memlog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Log is a log in memory. Make it with [New]. Safe for concurrent use.
type Log struct {
	mu          sync.Mutex
	seq         uint64
	agents      map[messages.AgentID][]*stored // only ever appended to or replaced
	parts       [messages.Partitions]partition
	definitions map[messages.Digest][]byte
	blobs       map[messages.AgentID]map[messages.Digest][]byte
	snapshots   map[messages.AgentID]map[string][]byte
	// beside counts what was stored beside the log, places is where each blob and snapshot
	// is in that count.
	beside uint64
	places map[place]uint64
}

// place names a blob or a snapshot of an agent.
type place struct {
	agent messages.AgentID
	name  string
}

var (
	_ eventlog.Log  = (*Log)(nil)
	_ eventlog.Feed = (*Log)(nil)
)

// NewStore returns an empty store, all of it in one log.
func NewStore() eventlog.Store { return New().Store() }

// Store returns the log with what is kept beside it.
func (l *Log) Store() eventlog.Store {
	return eventlog.Store{Log: l, Blobs: l, Snapshots: l, Definitions: l}
}

// stored is one message on an agent's subject. It never changes.
type stored struct {
	head  eventlog.Head
	time  time.Time // the frame's
	types []string
	bytes []byte
}

// partition holds every message in the order of storing. It is a shard.
type partition struct {
	all  []*stored     // only ever appended to or replaced
	more chan struct{} // closed when a message is added; nil if none waits
}

// New returns an empty log.
func New() *Log {
	return &Log{
		agents:      make(map[messages.AgentID][]*stored),
		definitions: make(map[messages.Digest][]byte),
		blobs:       make(map[messages.AgentID]map[messages.Digest][]byte),
		snapshots:   make(map[messages.AgentID]map[string][]byte),
		places:      make(map[place]uint64),
	}
}

// Append stores a frame; see eventlog.Appender. Its outcome is never unknown,
// unless ctx had ended before.
func (l *Log) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if err := ctx.Err(); err != nil {
		return eventlog.Position{}, err
	}
	if err := e.Validate(); err != nil {
		return eventlog.Position{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	actual := l.tail(e.Agent)
	switch mine := e.Position(actual.Seq); {
	case actual.Frame == mine.Frame && actual.Digest == mine.Digest:
		return mine, nil
	case actual.Frame != e.Expect.Frame || actual.Digest != e.Expect.Digest:
		return eventlog.Position{}, &eventlog.ConflictError{Agent: e.Agent, Expect: e.Expect, Actual: actual}
	}
	return e.Position(l.store(e, false)), nil
}

// Inject stores the entry's bytes as they are: no fence, no check. With
// foreign they come without any header, as if another client had published
// them. It is for tests of damage, and returns the sequence.
func (l *Log) Inject(e eventlog.Entry, foreign bool) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store(e, foreign)
}

func (l *Log) store(e eventlog.Entry, foreign bool) uint64 {
	l.seq++
	m := &stored{bytes: slices.Clone(e.Bytes), head: eventlog.Head{Agent: e.Agent, Seq: l.seq, Time: time.Now().UTC(), Foreign: foreign}}
	if !foreign {
		f := e.Frame
		m.head.ID, m.time = f.ID, time.Unix(0, f.Time.UnixNano()).UTC()
		m.head.Epoch, m.head.First, m.head.Last = f.Epoch, f.First, f.Last()
		m.types, m.head.Summary = strings.Split(e.Types(), " "), e.Summary
		if !e.Summary.Due.IsZero() {
			m.head.Due = time.Unix(0, e.Summary.Due.UnixNano()).UTC()
		}
	}
	l.agents[e.Agent] = append(l.agents[e.Agent], m)
	p := &l.parts[e.Agent.Partition()]
	p.all = append(p.all, m)
	if p.more != nil {
		close(p.more)
		p.more = nil
	}
	return l.seq
}

// tail is the newest frame's by its head, with the newest message's sequence.
func (l *Log) tail(a messages.AgentID) eventlog.Position {
	var t eventlog.Position
	all := l.agents[a]
	for _, m := range slices.Backward(all) {
		if !m.head.Foreign {
			t = eventlog.Position{Frame: m.head.ID, Digest: messages.DigestOf(m.bytes), Last: m.head.Last, Epoch: m.head.Epoch, Time: m.time}
			break
		}
	}
	if len(all) > 0 {
		t.Seq = all[len(all)-1].head.Seq
	}
	return t
}

// Head returns the position of the agent's newest frame; see eventlog.Reader.
func (l *Log) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	if err := cmp.Or(ctx.Err(), a.Validate()); err != nil {
		return eventlog.Position{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail(a), nil
}

// Read yields the agent's frames as of the call; see eventlog.Reader.
func (l *Log) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		all, err := l.subject(a)
		tail := r.After
		if err = cmp.Or(err, ctx.Err()); err == nil {
			tail, all, err = behind(a, all, r.After)
		}
		if err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		if r.Upto != nil {
			all = all[:first(all, r.Upto.Seq+1)]
		}
		read(ctx, a, tail, all, func(rec eventlog.Recorded, err error) bool {
			return err == nil && rec.Frame.Last() <= r.After.Last || yield(rec, err)
		})
	}
}

// behind returns the messages behind a position, and the tail that they must follow.
func behind(a messages.AgentID, all []*stored, after eventlog.Position) (eventlog.Position, []*stored, error) {
	if after.Frame != "" {
		n := first(all, after.Seq)
		if n == len(all) || !all[n].is(after) {
			return after, nil, fmt.Errorf("read %s on from event %d at sequence %d: %w", a, after.Last, after.Seq, eventlog.ErrElsewhere)
		}
		return after, all[n+1:], nil
	}
	for n, m := range all { // what is before a tombstone does not matter to who reads from there
		if m.head.First == after.Last+1 && len(m.types) == 1 && messages.Is(m.types[0], messages.EndsAgent) {
			return eventlog.Position{}, all[n:], nil
		}
	}
	// At most one frame before the one that holds the event is read: not that one either if
	// it is damaged.
	for event := after.Last; event > 0 && event <= after.Last+1; event++ {
		n := slices.IndexFunc(all, func(m *stored) bool { return !m.head.Foreign && m.head.Last >= event })
		if n < 0 || all[n].head.First > event {
			break
		}
		if f, err := messages.DecodeFrame(a, all[n].bytes); err == nil {
			return eventlog.Position{Frame: f.Prev, Digest: f.PrevDigest, Last: f.First - 1, Epoch: f.Epoch}, all[n:], nil
		}
	}
	return eventlog.Position{}, all, nil
}

// subject returns what is stored on the agent's subject now.
func (l *Log) subject(a messages.AgentID) ([]*stored, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agents[a], nil
}

// read yields the frames among all, which must follow tail.
func read(ctx context.Context, a messages.AgentID, tail eventlog.Position, all []*stored, yield func(eventlog.Recorded, error) bool) {
	for _, m := range all {
		if m.head.Foreign {
			continue
		}
		r, err := record(ctx, a, tail, m)
		if err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		if tail = r.Position(); !yield(r, nil) {
			return
		}
	}
}

func record(ctx context.Context, a messages.AgentID, tail eventlog.Position, m *stored) (eventlog.Recorded, error) {
	if err := ctx.Err(); err != nil {
		return eventlog.Recorded{}, err
	}
	f, err := messages.DecodeFrame(a, m.bytes)
	if err != nil {
		return eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Seq: m.head.Seq, Event: tail.Last + 1, Err: err}
	}
	r := eventlog.Recorded{Agent: a, Seq: m.head.Seq, Frame: f, Digest: messages.DigestOf(m.bytes), Size: len(m.bytes)}
	return r, eventlog.Check(tail, r)
}
